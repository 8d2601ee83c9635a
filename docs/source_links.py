"""A hook of mkdocs.yml: links to source files become plain text, because the site holds only these pages."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^]]+)\]\(([^):#]+)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def within_site(link: re.Match[str]) -> str:
        outside = posixpath.normpath(posixpath.join(folder, link[2])).startswith("..")
        return link[1] if outside else link[0]

    return _LINK.sub(within_site, markdown)
