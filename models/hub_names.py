"""Names of checkpoints on a hub: `hf://owner/name@revision`, and what people type or paste for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from models.errors import CheckpointError

SCHEME = "hf://"
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPOSITORY = re.compile(f"{_PART}(?:/{_PART})?")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}")


@dataclass(frozen=True, slots=True)
class HubName:
    """A repository on a hub, at a branch, tag or commit; `revision` is "" where none was named."""

    repository: str
    revision: str = ""

    @property
    def reference(self) -> str:
        """What the program calls it: "hf://owner/name" or "hf://owner/name@revision"."""
        return f"{SCHEME}{self.repository}" + (f"@{self.revision}" if self.revision else "")

    @property
    def title(self) -> str:
        return self.repository.rsplit("/", 1)[-1]

    @property
    def branch(self) -> str:
        return self.revision or "main"

    @property
    def cache_folder(self) -> str:
        """The folder below huggingface_hub's cache in which all of this repository lies."""
        return "models--" + self.repository.replace("/", "--")


def is_hub(reference: str) -> bool:
    return reference.startswith(SCHEME)


def parse(text: str) -> HubName:
    """What `text` names: "owner/name", "owner/name@revision", the same after "hf://", or the address of a model's page.

    Raises:
        CheckpointError: it can be no name on a hub.
    """
    asked = text.strip()
    name = asked.removeprefix(SCHEME)
    if name.startswith(("http://", "https://")):
        name = _of_address(name)
    repository, _, revision = name.partition("@")
    sound = _REPOSITORY.fullmatch(repository) and ".." not in repository and "--" not in repository
    if not sound or (revision and (not _REVISION.fullmatch(revision) or ".." in revision)):
        raise CheckpointError(
            f"“{asked}” is no name on a hub. Write owner/name, as in openai-community/gpt2, or owner/name@revision."
        )
    return HubName(repository, revision)


def _of_address(address: str) -> str:
    """ "https://hub/owner/name/tree/revision" as "owner/name@revision"."""
    try:
        parts = [unquote(part) for part in urlsplit(address).path.split("/") if part]
    except ValueError:
        return ""
    if len(parts) > 3 and parts[2] in ("tree", "blob", "resolve"):
        return f"{parts[0]}/{parts[1]}@{parts[3]}"
    return "/".join(parts[:2])


def cached_folder(name: HubName, cache: Path | None = None) -> Path | None:
    """Where huggingface_hub's cache holds `name`, weights and all; None where it does not. Reads no network."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name.repository, "config.json", revision=name.branch, cache_dir=cache)
    if not isinstance(found, str):
        return None
    folder = Path(found).parent
    return folder if any(folder.glob("*.safetensors")) else None  # what was only looked up has no weights


def cache_location() -> str:
    """The folder of huggingface_hub's cache (HF_HOME, HF_HUB_CACHE, or the default)."""
    from huggingface_hub import constants

    return constants.HF_HUB_CACHE
