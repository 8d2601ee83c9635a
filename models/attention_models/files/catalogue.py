"""The checkpoints that ship with the program, listed from their cards alone: no torch, no weights read."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attention_models.files.names import is_hub, parse, title_of, whole_of
from attention_models.files.training_steps import step_of
from attention_models.protocol.errors import CheckpointError

WEIGHTS = Path(__file__).parents[1] / "weights"

# in the order of the menu
SHIPPED = (
    "story-gpt",
    "story-bert",
    "story-next",
    "en-es",
    "recurrent-en-es-bahdanau",
    "recurrent-en-es-bottleneck",
    "dates-bahdanau",
    "dates-luong",
    "dates-bottleneck",
    "vit-cifar10",
    "vit-quickdraw",
)

FIRST = SHIPPED[0]
"""What a first start opens."""

TUNABLE = ("story-gpt", "story-bert", "story-next", "en-es")
"""Those that can be fine-tuned."""

CLASSIFIERS = ("story-next",)
"""Those of them that tell classes of texts apart; all read pairs."""

DATE_MODELS = ("dates-bahdanau", "dates-luong", "dates-bottleneck")
RECURRENT_TRANSLATORS = ("recurrent-en-es-bahdanau", "recurrent-en-es-bottleneck")
TRANSFORMER_TRANSLATOR = "en-es"

HANDED_OVER = "python:"
"""Prefix of the reference of a model that was handed over as a Python object."""

_CARD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Card:
    """`explorer.json` of a checkpoint folder: how the program presents it."""

    name: str
    folder: Path
    title: str
    summary: str = ""  # what it is
    look: str = ""  # what to look at in it
    example: str = ""
    second: str = ""  # the example's second text, of a model that was made for pairs
    prefix: str = ""  # put before every text, where training did so and the tokenizer does not
    reads: str = ""  # the language of its texts as a code of two or three letters: "en"

    @property
    def sentences(self) -> str:
        """What it is, and what to look at."""
        return f"{self.summary} {self.look}".strip()


def shipped() -> tuple[Card, ...]:
    return tuple(read_card(WEIGHTS / name) for name in SHIPPED)


def shipped_unchanged(reference: str) -> bool:
    """Whether it is a checkpoint that ships with the program, and its settings and tokenizer are what was shipped."""
    folder = WEIGHTS / reference
    if reference not in SHIPPED:
        return False
    try:
        listed = (line.split() for line in (WEIGHTS / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
        sums = {name: digest for digest, name in listed if name.startswith(f"{reference}/")}
        there = {f"{reference}/{path.name}": path.read_bytes() for path in folder.glob("*.json")}
    except (OSError, ValueError):
        return False
    return sums == {name: hashlib.sha256(content).hexdigest() for name, content in there.items()}


def folder_of(reference: str) -> Path:
    """The folder or GGUF file of a checkpoint: a shipped name, "hf://…" in huggingface_hub's cache, else a path.

    Of a snapshot, `my-model@400`, it is the folder of its training; of a text half, `my-clip#text`, that of the whole.

    Raises:
        CheckpointError: no valid name on a hub, or one that the cache does not hold.
    """
    whole = whole_of(reference)
    if whole is not None:
        return folder_of(whole)
    if is_hub(reference):
        return _fetched(reference)
    shipped_folder = WEIGHTS / reference
    if reference in {entry.name for entry in WEIGHTS.iterdir()} and shipped_folder.is_dir():
        return shipped_folder
    step = step_of(reference)
    return step.folder if step is not None else Path(reference).expanduser()


def weights_place_of(reference: str) -> Path:
    """The folder or file whose content tells the checkpoint from others: of a snapshot its own file.

    Raises:
        CheckpointError: as `folder_of`.
    """
    step = None if is_hub(reference) or reference in SHIPPED else step_of(reference)
    return step.path if step is not None else folder_of(reference)


def _fetched(reference: str) -> Path:
    """Where the cache holds what "hf://…" names."""
    from attention_models.files.hub_cache import HubCache

    name, cache = parse(reference), HubCache()
    found = cache.path_of(name)
    if found is not None:
        return found
    ggufs = [] if name.file else [file.name for file in cache.ggufs_of(name)]
    if ggufs:
        raise CheckpointError(
            f"{name.repository} has GGUF files on this computer; name one of them, as in "
            f"“{name.with_file(ggufs[0]).reference}”."
        )
    wanted = f"{name.file} of {name.repository}" if name.file else name.repository
    raise CheckpointError(
        f"{wanted} is not on this computer yet. Fetch it with File > Open a checkpoint, or with "
        f"“hf download {name.repository}{name.file and f' {name.file}'}”."
    )


def read_card(folder: Path) -> Card:
    """The card in `folder`, or one that says only its name. Never raises: a card is a courtesy, not a requirement."""
    card: dict[str, Any] = {}
    path = folder / "explorer.json"
    try:
        if path.is_file() and path.stat().st_size <= _CARD_BYTES:  # a pipe would be waited for
            read = json.loads(path.read_text(encoding="utf-8"))
            card = read if isinstance(read, dict) else {}
    except (OSError, ValueError, RecursionError):
        pass
    if not re.fullmatch("[a-z]{2,3}", str(card.get("reads", ""))):
        card.pop("reads", None)
    fields = ("title", "summary", "look", "example", "second", "prefix", "reads")
    texts = {key: card[key] for key in fields if isinstance(card.get(key), str)}
    return Card(**{"name": folder.name, "folder": folder, "title": title_of(folder), **texts})
