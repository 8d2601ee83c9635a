"""What the opening of a model does to the state: what fits it of text, picture, selection and changes stays. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.example_rules import changed_everywhere, unfit_words, untouched_examples
from attention_explorer.session.examples import Example
from attention_explorer.session.intents import Intent, SetPair, SetText
from attention_explorer.session.prompt_modes import as_text
from attention_explorer.session.state import Document, InterventionItem, Notice, Selection, State
from attention_explorer.session.texts import alone, each_text, texts_of
from attention_models.files.sample_pictures import default_picture
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.chat import Pair
from attention_models.protocol.export import ExportRequest
from attention_models.protocol.interventions import Adapter, Mask, Positions, Scale, acts_outside_of_attention
from attention_models.protocol.loading import Loaded
from attention_models.protocol.values import CheckpointInfo


def with_model(state: State, result: Loaded) -> State:
    """The state with the model that was opened, which is the one that is wanted."""
    if state.opening is not None and state.opening.checkpoint == result.request.reference:
        document, place = state.opening, state.opening_place
        state = replace(state, document=document, opening=None, restored=True, example=place, opening_place=None)
    document, before = state.document, state.results.loaded
    said = state.notice
    if said is not None and said.lane != ExportRequest.lane and (before is not None or said.lane is not None):
        state = replace(state, notice=None)  # it was said of another model; a file stays written, or not, all the same
    if document.chat and not result.info.chat:
        document = as_text(document)
        sentence = f"{result.info.name} has no chat template: it reads what the turns say as plain text."
        state = replace(state, notice=Notice("info", sentence))
    left = None if state.restored else before  # whose text, picture and heads are in the document
    untouched = () if left is None else untouched_examples(document)
    if any(document.interventions == changed_everywhere(example) for example in untouched):
        document = replace(document, interventions=())
    if result.info.example and _is_for_an_example(document, left):
        second = (document.second if not document.text else None) or result.info.second or None
        document = replace(document, text=result.info.example, second=second)
    others = len(document.before) + len(document.after)
    if others and result.info.textbook and result.info.family != "vision":  # beside a picture texts wait
        them = "the other was" if others == 1 else f"the {others:,} others were"
        state = replace(state, notice=Notice("info", f"{result.info.name} takes one text at a time: {them} taken out."))
        document = alone(document)
    if not result.info.pairs:
        if any(isinstance(text.prompt, Pair) for text in texts_of(document)):
            sentence = f"{result.info.name} reads no pairs of texts: the second text was taken out."
            state = replace(state, notice=Notice("info", sentence))
        document = each_text(document, second=None)
    unfit = "" if state.restored or document.chat else unfit_words(document.text, result.info)
    if unfit and state.notice is None:
        example = example_text(result.info)
        state = replace(state, notice=Notice("info", unfit, action_label="Use the example", action=example))
    if result.info.adapter is not None and result.info.adapter.why and state.notice is None:
        sentence = f"An adapter lies beside the weights. {result.info.adapter.words}. The model runs without it."
        state = replace(state, notice=Notice("info", sentence))
    selection = document.selection
    if left is not None:
        document = each_text(document, target=None)
        selection = Selection()  # another model's heads mean something else: the first run chooses
        kept = tuple(i for i in document.interventions if _is_global(i) and _takes(result.info, i))
        document = replace(document, interventions=kept)
        normalisation = "none" if document.view.normalisation == "difference" else document.view.normalisation
        document = replace(document, view=replace(document.view, painting="off", normalisation=normalisation))
        if left.info.reference != result.info.reference:
            document = replace(document, effects=document.effects.without_answers())
    document = replace(document, interventions=tuple(_named(i, result.info) for i in document.interventions))
    picture = document.picture
    if result.info.family == "vision" and (not picture or (not state.restored and _came_along(picture, untouched))):
        picture = default_picture(result.info.channels)
    document = replace(document, checkpoint=result.info.reference, picture=picture, selection=selection)
    results = state.results.of_no_model().keeping(result)
    return replace(
        state,
        document=document,
        results=results,
        loading=None,
        refused=None,
        reading=False,
        stepping=None,
        snapshots=(),
        following=(state.following and _of_one_training(before, result)) or _begins_to_learn(state, before, result),
    )


def _of_one_training(before: Loaded | None, now: Loaded) -> bool:
    one, other = None if before is None else before.info.training, now.info.training
    return one is not None and other is not None and one.reference == other.reference


def _begins_to_learn(state: State, before: Loaded | None, now: Loaded) -> bool:
    """Whether it is the model that learns in this window, opened for the first time: what is shown follows it."""
    if state.live.learning is None or now.info.training is None or _of_one_training(before, now):
        return False
    return state.live.learning.folder == now.info.training.reference


def _is_for_an_example(document: Document, before: Loaded | None) -> bool:
    """Whether nothing was typed: there is no text, or an example of the model that was open `before`."""
    if document.before or document.after:
        return False
    if before is None or not document.text:
        return not document.text
    return shows_example(document, before.info) or any(one.text for one in untouched_examples(document))


def shows_example(document: Document, info: CheckpointInfo) -> bool:
    """Whether the text is the example that the model came with."""
    return (document.text, document.second or "") == (info.example, info.second)


def _came_along(picture: str, untouched: tuple[Example, ...]) -> bool:
    """Whether nobody chose it: it is an example's, or the first sample of some kind of model."""
    return picture in (default_picture(1), default_picture(3), *(example.picture for example in untouched))


def _takes(info: CheckpointInfo, listed: InterventionItem) -> bool:
    """Whether the model can be run with this change: a textbook model takes none, some take no other scores."""
    if isinstance(listed.value, Adapter):
        return info.put_on is not None
    if info.additive and isinstance(listed.value, Scale):
        return False
    return not info.textbook and (not info.weights_only or acts_outside_of_attention(listed.value))


def _named(listed: InterventionItem, info: CheckpointInfo) -> InterventionItem:
    """With the stack that a command left out."""
    value = listed.value
    return replace(listed, value=value.of_stack(info.predicting_stack)) if isinstance(value, Ablation) else listed


def _is_global(listed: InterventionItem) -> bool:
    """Whether it means the same in any model: it names no layer and no head, and paints no cell."""
    value = listed.value
    return isinstance(value, (Positions, Adapter)) or (
        not isinstance(value, Ablation)
        and value.site is None
        and value.head is None
        and not (isinstance(value, Mask) and value.paints)
    )


def example_text(info: CheckpointInfo) -> Intent:
    """What puts a model's own example into the input."""
    return SetPair(Pair(info.example, info.second)) if info.second else SetText(info.example)
