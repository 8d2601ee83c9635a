"""The text half of a checkpoint that holds texts against pictures (CLIP, SigLIP), named `my-clip#text`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from attention_models.files.gguf import is_named_gguf
from attention_models.protocol.errors import CheckpointError

# Names of checkpoints: `hf://owner/name@revision:file.gguf`, what people type or paste for it, titles of folders.


SCHEME = "hf://"
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPOSITORY = re.compile(f"{_PART}(?:/{_PART})?")
_PLACE = re.compile(r"[/~.\\]|[A-Za-z]:[/\\]")  # on a disk
_ELSEWHERE = re.compile(r"[/\\]{2}|[/\\]\?\?[/\\]|(?!hf:)[a-z][a-z0-9+.-]+:[/\\]|file:", re.IGNORECASE)
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}")
_FILE_PART = r'[^/\\:<>"|?*\x00-\x1f\x7f]{1,200}'  # what every disk can hold
_FILE = re.compile(f"(?:{_FILE_PART}/){{0,4}}{_FILE_PART}")


@dataclass(frozen=True, slots=True)
class HubName:
    """A repository on a hub, at a branch, tag or commit, or one GGUF file of it.

    `revision` and `file` are "" where none was named.
    """

    repository: str
    revision: str = ""
    file: str = ""

    @property
    def reference(self) -> str:
        """What the program calls it: "hf://owner/name", with "@revision" and ":file.gguf" where they were named."""
        revision, file = self.revision and f"@{self.revision}", self.file and f":{self.file}"
        return f"{SCHEME}{self.repository}{revision}{file}"

    @property
    def title(self) -> str:
        return (self.file or self.repository).rsplit("/", 1)[-1]

    @property
    def branch(self) -> str:
        return self.revision or "main"

    @property
    def cache_folder(self) -> str:
        """The folder below huggingface_hub's cache in which all of this repository lies."""
        return "models--" + self.repository.replace("/", "--")

    def with_file(self, file: str) -> HubName:
        """One GGUF file of the same repository; all of it for ""."""
        return replace(self, file=file)


def is_hub(reference: str) -> bool:
    return reference.startswith(SCHEME)


def is_elsewhere(place: str) -> bool:
    r"""Whether a place names a share or an address: \\server\share, //server/share, file:…, https://….

    Told by its text alone. Windows sends a person's name, and what their password can be guessed from, to the server of
    a share at the first look, even at whether something is there; so a place that somebody else wrote is asked this
    before anything else is done with it.
    """
    return _ELSEWHERE.match(place) is not None


def parse(text: str) -> HubName:
    """What `text` names: "owner/name", "owner/name@revision", "owner/name:file.gguf", the same after "hf://", or the
    address of a model's page or of a GGUF file on it.

    Raises:
        CheckpointError: it can be no name on a hub.
    """
    asked = text.strip()
    shown = asked if len(asked) <= 100 else asked[:99] + "…"
    name = asked.removeprefix(SCHEME)
    if name.startswith(("http://", "https://")):
        name = _of_address(name)
    if _PLACE.match(name):
        raise CheckpointError(
            f"“{shown}” is no name on a hub (owner/name). A folder or a GGUF file of this computer is opened by its "
            "place, without hf://, or chosen with Folder or GGUF file."
        )
    name, colon, file = name.partition(":")
    repository, _, revision = name.partition("@")
    sound = _REPOSITORY.fullmatch(repository) and ".." not in repository and "--" not in repository
    if sound and revision:
        sound = _REVISION.fullmatch(revision) and ".." not in revision
    if sound and colon and not is_sound_file(file):
        raise CheckpointError(
            f"“{shown}” names no GGUF file. Write the file's whole name, as in owner/name:model-Q4_K_M.gguf, or "
            "owner/name alone to see which there are."
        )
    if not sound:
        raise CheckpointError(
            f"“{shown}” is no name on a hub. Write owner/name, as in openai-community/gpt2, owner/name@revision, or "
            "owner/name:file.gguf for one GGUF file."
        )
    return HubName(repository, revision, file)


def is_sound_file(file: str) -> bool:
    """Whether a repository's GGUF file can be called by this name, and kept under it."""
    parts = file.split("/")
    return bool(_FILE.fullmatch(file)) and is_named_gguf(file) and not any(part.strip(". ") == "" for part in parts)


def _of_address(address: str) -> str:
    """ "https://hub/owner/name/blob/revision/file.gguf" as "owner/name@revision:file.gguf"."""
    try:
        parts = [unquote(part) for part in urlsplit(address).path.split("/") if part]
    except ValueError:
        return ""
    if len(parts) > 3 and parts[2] in ("tree", "blob", "resolve"):
        file = "/".join(parts[4:])
        return f"{parts[0]}/{parts[1]}@{parts[3]}" + (f":{file}" if is_named_gguf(file) else "")
    return "/".join(parts[:2])


def title_of(path: Path) -> str:
    """What a person calls the checkpoint at `path`: the name of its folder or file.

    In huggingface_hub's cache folders are named by a commit, which says nothing: there it is the repository's name.
    """
    repository = path.parent.parent.name
    if path.parent.name == "snapshots" and repository.startswith("models--"):
        return repository.rsplit("--", 1)[-1]
    if path.name not in ("", "..") or is_elsewhere(str(path)):  # the root of a share has no name of its own
        return path.name or str(path)
    return path.resolve().name or str(path)  # ".", "..", "/"


SUFFIX = "#text"


def whole_of(reference: str) -> str | None:
    """The checkpoint whose text half `reference` names; None where it names a checkpoint as it is.

    Names of folders may end in "#text": a folder of this very name comes first.
    """
    whole = reference.removesuffix(SUFFIX)
    if not whole or whole == reference:
        return None
    try:
        return None if not is_hub(reference) and Path(reference).expanduser().exists() else whole
    except (OSError, RuntimeError, ValueError):
        return None
