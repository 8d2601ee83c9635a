"""What the input panel asks of the state: the kind of model, its mask, what is odd about the text. Pure."""

from __future__ import annotations

from attention_explorer.panels.input.input_sentences import (
    language_remark,
    padding_remark,
    separator_remark,
    template_remark,
    typed_padding,
    typed_separators,
    unknown_remark,
)
from attention_explorer.session.state import State
from attention_models.protocol.batch import Batch
from attention_models.protocol.interventions import Mask
from attention_models.protocol.prompt import plain_text, shown_of
from attention_models.protocol.values import CheckpointInfo

_ONE_CHOICE = (
    "This model chooses between texts. Type what comes first as text A, and one choice as text B; "
    "“+ Choice” adds another."
)
_ONE_TEXT = "This model chooses between texts: “+ Choice” adds another."


def info_of(state: State) -> CheckpointInfo | None:
    """What the open checkpoint is."""
    return state.results.loaded.info if state.results.loaded is not None else None


def sees_pictures(state: State) -> bool:
    """Whether the open model is one for pictures."""
    info = info_of(state)
    return info is not None and info.family == "vision"


def mask_token(state: State) -> str | None:
    info = info_of(state)
    return info.mask_token if info is not None else None


def remark(state: State) -> str:
    """What is odd about the text; "" where nothing is."""
    info, ran, document = info_of(state), state.ran, state.document
    said = template_remark(ran.tokens) if ran is not None and document.chat else ""
    if said or info is None or state.loading is not None:
        return said
    if ran is None or ran.inputs.prompt != document.prompt:
        return language_remark(document.prompt, info)
    tokens = ran.source or ran.tokens
    if info.class_head is not None and info.class_head.of == "choice" and not isinstance(document.prompt, Batch):
        return _ONE_CHOICE if info.pairs else _ONE_TEXT
    said = separator_remark(tokens, info) or padding_remark(tokens) or unknown_remark(ran, info)
    return said or language_remark(document.prompt, info)


def continued_words(state: State) -> str:
    """What the model has written after the text, or the text with its masks filled; "" where nothing is shown of it."""
    ran = state.ran
    if ran is None or ran.whole is None or not ran.continued or not state.up_to_date:
        return ""
    before, whole = plain_text(shown_of(ran.inputs.prompt)), plain_text(shown_of(ran.whole))
    if whole.startswith(before):
        return f"and the model went on: {' '.join(whole[len(before) :].split())}"
    return f"as the model filled it: {' '.join(whole.split())}"


def remedy(state: State) -> str:
    """What a button beside the remark does; "" where the remark offers nothing."""
    info, ran = info_of(state), state.ran
    if info is None or ran is None or not state.up_to_date:
        return ""
    tokens = ran.source or ran.tokens
    if typed_separators(tokens, info):
        return "Read it as two texts"
    is_masked = any(isinstance(item, Mask) and item.paints for item in ran.inputs.interventions)
    can_mask = not (info.weights_only or info.textbook or is_masked)
    return "Mask it" if can_mask and typed_padding(tokens) else ""
