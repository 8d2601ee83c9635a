"""What README and docs speak of is there: files, links, anchors, models, panels, commands; docs/ is a site."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from attention_explorer.cli.arguments import _parser
from attention_explorer.panels.registry import TITLES
from attention_models.files.catalogue import shipped

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "resources/README.md"]

_LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]*))?\)")
_INSTALLED = "attention_explorer/resources/"  # where an installed copy has what stands beside it in the source
_NAMED = re.compile(r"`((?:models|explorer|attention_explorer|resources|tests|docs|packaging)/[\w./-]*)`")


def text_of(document: Path) -> str:
    return re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)


def links_of(document: Path) -> list[tuple[str, str]]:
    """The file and the anchor of each link; either may be empty."""
    return [link for link in _LINK.findall(text_of(document)) if "://" not in link[0]]


def anchors_of(document: Path) -> set[str]:
    """One a heading, as GitHub spells them; MkDocs checks its own when it builds."""
    headings = re.findall(r"^#+ (.+)$", text_of(document), re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_links_and_names_are_found() -> None:
    assert len(DOCUMENTS) > 70
    assert sum(len(links_of(document)) for document in DOCUMENTS) > 120
    assert sum(len(_NAMED.findall(text_of(document))) for document in DOCUMENTS) > 50
    assert any(anchor for document in DOCUMENTS for _, anchor in links_of(document))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_is_named_is_there(document: Path) -> None:
    missing = [link for link, _ in links_of(document) if not (document.parent / link).exists()]
    missing += [name for name in _NAMED.findall(text_of(document)) if name != _INSTALLED and not (ROOT / name).exists()]
    assert missing == []
    anchors = [(document.parent / link if link else document, anchor) for link, anchor in links_of(document) if anchor]
    assert [anchor for path, anchor in anchors if anchor not in anchors_of(path)] == []


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 900


def test_every_page_is_listed() -> None:
    """On the first page, in the README or in the list of decisions; and in the site's menu."""
    listed = {
        (path.parent / link).resolve()
        for path in DOCUMENTS
        for link, _ in links_of(path)
        if path.stem in ("index", "README")
    }
    pages = set((ROOT / "docs").rglob("*.md"))
    assert pages - listed == {ROOT / "docs/index.md"}
    menu = set(re.findall(r"- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    assert menu == {*(path.name for path in (ROOT / "docs").glob("*.md")), "decisions/index.md"}


def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 70
    loads = re.compile(r"""<(?:script|img|iframe|link)[^>]*(?:src|href)=["']?(?:https?:)?//""")
    assert [page.name for page in pages if loads.search(page.read_text("utf-8"))] == []
    styles = [path.name for path in tmp_path.rglob("*.css") if "url(http" in path.read_text("utf-8")]
    assert styles == []


def test_nothing_is_promised_that_is_not_there() -> None:
    folders = {path.name for path in (ROOT / "resources").iterdir() if path.is_dir()}
    for document in DOCUMENTS:
        for word in ("lessons", "translations of the interface"):
            assert word in folders or word not in text_of(document), document


def test_every_included_model_is_listed() -> None:
    listed = re.search(r"## Included models(.*?)## ", text_of(ROOT / "docs/models.md"), re.DOTALL)
    assert listed is not None
    for card in shipped():
        assert card.name in listed[1], card.name


def test_the_number_of_included_models_is_right() -> None:
    numbers = dict(zip(("nine", "ten", "eleven", "twelve", "thirteen"), range(9, 14), strict=True))
    said = re.search(r"(\w+) small\s+models\s+are\s+included", text_of(ROOT / "README.md"))
    assert said is not None
    assert numbers[said[1].lower()] == len(shipped())


def commands() -> list[str]:
    """The program's own, of README and docs, without what follows a #."""
    blocks = [block for path in DOCUMENTS for block in re.findall(r"```bash\n(.*?)```", path.read_text("utf-8"), re.S)]
    lines = (re.split(r"\s#\s", line)[0].strip() for block in blocks for line in block.splitlines())
    return [line for line in lines if re.match(r"(attention-explorer|python -m attention_explorer)( |$)", line)]


@pytest.mark.parametrize("command", commands())
def test_every_command_is_one(command: str) -> None:
    words = shlex.split(command)
    _parser().parse_args(words[1:] if words[0] == "attention-explorer" else words[3:])


def test_every_option_that_is_named_is_there() -> None:
    known = {option for action in _parser()._actions for option in action.option_strings}
    for path in chain((ROOT / "packaging").rglob("*.py"), (ROOT / "tests" / "benchmarks").rglob("*.py")):
        known |= set(re.findall(r"""add_argument\(\s*"(--[a-z-]+)""", path.read_text("utf-8")))
    known |= {"--no-deps", "--dist", "--tests", "--strict"}  # of pip, pytest, libraries.sh and mkdocs
    known |= {"--force", "--ignore", "--keychain-profile", "--wait"}  # of pipx and packaging
    known |= {"--keep", "--assess", "--type", "--verbose"}
    for document in DOCUMENTS:
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", document.read_text("utf-8"))) <= known, document


@pytest.mark.parametrize("document", ["README.md", "resources/help.md"])
def test_every_panel_is_described(document: str) -> None:
    rows = re.findall(r"^\| \**([^|*]+)\** \|", (ROOT / document).read_text("utf-8"), re.MULTILINE)
    called = {"Head": "Layer, head"} if document.startswith("resources") else {}
    assert [title for title in TITLES.values() if called.get(title, title) not in rows] == []


def test_every_panel_has_a_section() -> None:
    sections = re.findall(r"^## (.+)$", (ROOT / "docs/panels.md").read_text("utf-8"), re.MULTILINE)
    assert [title for title in TITLES.values() if title not in sections] == []


@pytest.mark.parametrize(
    ("folder", "listed"),
    [("models/attention_models", ["docs/architecture.md"]), ("resources", ["resources/README.md"])],
)
def test_every_package_and_every_folder_of_data_is_listed(folder: str, listed: list[str]) -> None:
    there = {path.name for path in (ROOT / folder).iterdir() if path.is_dir() and path.name != "__pycache__"}
    for document in listed:
        text = (ROOT / document).read_text("utf-8")
        missing = {name for name in there if f"`{name}`" not in text and f"`{name}/`" not in text}
        assert missing == set(), document


_KEY = r"(?:(?:Ctrl|Alt|Shift)\+)+(?:\w+|[^\s\"{])|F\d+"
_ARROW = re.compile(r"\+(?:Up|Down|Left|Right)$")


def keys_of_the_help() -> set[str]:
    """In the table of keys; of arrow keys what is held with them."""
    table = (ROOT / "resources/help.md").read_text("utf-8").replace("−", "-").partition("## Keys")[2]
    return {*re.findall(_KEY, table), *re.findall(r"^\| ([\w+]+ \+ arrow keys) \|", table, re.MULTILINE)}


def keys_of_the_window() -> set[str]:
    """Those that its source spells whole; others are counted, as Ctrl+1."""
    sources = (path.read_text("utf-8") for path in (ROOT / "explorer/attention_explorer/window").rglob("*.py"))
    keys = {key for source in sources for key in re.findall(rf'"({_KEY})"', source)}
    return {_ARROW.sub(" + arrow keys", key) for key in keys}


def test_every_key_of_the_menus_is_in_the_help() -> None:
    keys = keys_of_the_window()
    assert len(keys) > 40
    assert keys - keys_of_the_help() == {"Ctrl+=", "Ctrl+Shift+Z", "Ctrl+Return"}  # beside Ctrl++, Ctrl+Y, Ctrl+Enter


def test_every_key_of_the_help_is_one() -> None:
    counted = {"Ctrl+1", "Ctrl+2", "Ctrl+Shift+1", "Ctrl+Alt+1"}
    of_widgets = {"Shift+Enter", "Shift+Tab", "Ctrl+F", "F2"}
    assert keys_of_the_help() - keys_of_the_window() == counted | of_widgets | {"Alt+Shift"}  # of its arrow keys
