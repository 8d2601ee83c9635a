"""What the Corpus panel says. Pure."""

from __future__ import annotations

from pathlib import PurePath

from attention_explorer.widgets.token_text import apart
from attention_models.protocol.corpus import WORD, CorpusQuestion, CorpusView
from attention_models.protocol.roles import ROLE_NAMES
from attention_models.protocol.values import CheckpointInfo

INVITE = (
    "Choose a file of texts, or drop one here: .txt with a text a line, .csv, .tsv or .jsonl; a second column makes "
    "pairs, or gives a translator what its decoder says. The model reads a few at a time, and the window goes "
    "on meanwhile."
)
NOT_READ = "Not read yet: press Read."
OTHERWISE = "What was read is of another file, or of other changes to the model. Press Read to read it as it is now."


def name_of(path: str) -> str:
    """A file's name, for sentences."""
    return apart(PurePath(path).name)


def refusal(info: CheckpointInfo | None) -> str:
    """Why the open model reads no file of texts; "" where it does."""
    if info is None:
        return ""
    if info.family == "vision":
        return f"{info.name} looks at pictures. Open a model of text to read a file of texts."
    if not info.stacks and info.textbook:
        return f"{info.name} has no attention, so there is nothing to gather."
    return ""


def status(view: CorpusView, reading: bool) -> str:
    """How much was read, and how fast."""
    parts = [many(view.texts, "text"), many(view.tokens, "token")]
    if view.seconds > 0:
        rate = view.texts / view.seconds
        parts.append(f"{rate:,.0f} texts a second" if rate >= 10 else f"{rate:.1f} texts a second")
    if reading:
        parts.append(f"{view.share:.0%} read")
    elif view.ended and not view.broken:
        parts.append("read to the end")
    elif view.broken:
        parts.append(f"broken off after line {view.lines:,}")
    else:
        parts.append(f"stopped at {view.share:.0%}")
    return " · ".join(parts)


def remarks(view: CorpusView) -> str:
    """What was left out and why, and what was written in the place of a target, in one line."""
    count = [f"{view.left_out_count:,} left out."] if view.left_out_count > 1 else []
    return " ".join((*_of_file(view), *count, *view.left_out[:1]))


def whole_remarks(view: CorpusView) -> tuple[str, ...]:
    """The same with every sentence there is."""
    more = view.left_out_count - len(view.left_out)
    return (*_of_file(view), *view.left_out, *((f"And {more:,} more.",) if more else ()))


def _of_file(view: CorpusView) -> list[str]:
    said = [view.broken] if view.broken else []
    if view.written:
        whose = "has no second text" if view.written == 1 else "have no second text"
        said.append(f"{many(view.written, 'line')} {whose}: there the decoder says what the model writes itself.")
    return said


def many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def asked_words(question: CorpusQuestion) -> str:
    """What was asked, as a clause: "attends to the token before"; "" for nothing."""
    asked = question.attends_to
    if asked.startswith(WORD):
        return f"attends to “{asked.removeprefix(WORD)}”"
    return f"attends to {ROLE_NAMES[asked].title}" if asked in ROLE_NAMES else ""
