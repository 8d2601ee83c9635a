"""What each page of Effects asks the engine, and why it asks nothing of some models. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from attention_explorer.panels.predicted import is_body
from attention_explorer.panels.selected_head import answer_position, name_of_head
from attention_explorer.session.effects_choices import EffectsChoices
from attention_explorer.session.state import State
from attention_models.protocol.effects import (
    AdversarialAttentionRequest,
    AdversarialAttentionView,
    AttributionRequest,
    AttributionView,
    EffectsRequest,
    EffectsView,
    ExplanationRequest,
    ExplanationView,
    InContextRequest,
    LensRequest,
    LensView,
    Metric,
    MetricValue,
    MetricView,
    PatchRequest,
    PatchView,
    SiteEffects,
    place_of_word,
)
from attention_models.protocol.information import Unit, from_nats
from attention_models.protocol.request import Request, Result
from attention_models.protocol.values import COARSE, SiteRef

# What answers, losses and layers are called in Effects. Pure.


_STACKS = {"encoder": "enc", "decoder": "dec", "cross": "cross"}

Told = TypeVar("Told", EffectsView, PatchView)


def site_labels(sites: Sequence[SiteRef]) -> tuple[str, ...]:
    """ "5", or "enc 5" where a model has several stacks."""
    several = len({site.stack for site in sites}) > 1
    return tuple(f"{_STACKS[site.stack]} {site.layer}" if several else str(site.layer) for site in sites)


def layer_name(site: SiteRef, sites: Sequence[SiteRef]) -> str:
    """ "layer 5" within a sentence; of `sites` of several stacks "decoder layer 5"."""
    return name_of_head(site, 0, sites).rpartition(",")[0]


def in_unit(view: Told, unit: Unit) -> Told:
    """`view`, all losses in it in `unit`; an answer has them in nats."""
    if isinstance(view, PatchView):
        if view.aim.measure != "loss":
            return view
        aim = replace(view.aim, value=from_nats(view.aim.value, unit))
        return replace(
            view, aim=aim, other_value=from_nats(view.other_value, unit), values=view.values * from_nats(1, unit)
        )
    measure = view.aim.measure
    now, before = (None if said is None else _said(said, measure, unit) for said in (view.now, view.before))
    assert now is not None
    if measure != "loss":
        return replace(view, now=now, before=before)
    sites = tuple(SiteEffects(at.site, at.heads * from_nats(1, unit)) for at in view.sites)
    return replace(
        view, aim=replace(view.aim, value=from_nats(view.aim.value, unit)), now=now, before=before, sites=sites
    )


def _said(said: MetricValue, measure: str, unit: Unit) -> MetricValue:
    loss = None if said.loss is None else from_nats(said.loss, unit)
    return replace(said, value=from_nats(said.value, unit) if measure == "loss" else said.value, loss=loss)


def aim_words(aim: MetricView, unit: Unit = "nats") -> str:
    """ "the logit of “Tom”", "“Tom” less “Anna”", "the loss in nats"."""
    if aim.measure == "loss":
        return f"the loss in {unit}"
    target, against = plain(aim.target_label), plain(aim.against_label)
    return f"the logit of “{target}”" if aim.measure == "logit" else f"“{target}” less “{against}”"


def plain(label: str) -> str:
    return label.lstrip("␣") or label


HEADS, LENS, SUM, PATCH, TOKENS, WORDS = range(6)

View = EffectsView | LensView | AttributionView | PatchView | ExplanationView
VIEWS: tuple[type[View], ...] = (EffectsView, LensView, AttributionView, PatchView, ExplanationView)
"""Of each page but the last what it draws in its grid."""

InParts = EffectsRequest | PatchRequest | AdversarialAttentionRequest
"""Answered as far as a moment goes, and asked again until all is there."""

WAITING = "What each head does appears here when the model has run."
TYPE = "Type another text above, best one that differs in a single word."
RECURRENT = "A recurrent model has no residual stream to take parts out of. Open a transformer."
_NO_HEAD = "This model gives vectors, not words: it has no output head, so nothing it says could change."
_CHOICE = "This model chooses among the texts that run together, so that no text can be run again by itself."
_NO_GRADIENTS = "Gradients in half precision are rounded too much to be told apart. Open the model in float32."
_ONE_STACK = "Tokens are weighed in models of one stack that read text."
_NO_TEXT = "This model reads pictures and no words."
_OF_ENCODER = "The answer is read in the decoder. Select one of its heads, or one of cross-attention."
_NO_SHARES = "This model does not share out a whole among its answers, so that no distance between two is defined."


def request_of(page: int, state: State) -> Request | None:
    """What a page asks of the run that is on screen; None where something is still to be typed."""
    assert state.ran is not None
    run, asked = state.ran.run, state.document.effects
    if page == WORDS:
        return words_request(state)
    aim = aim_of(page, state)
    if page == HEADS:
        return EffectsRequest(run=run, aim=aim)
    if page == LENS:
        return LensRequest(run=run, target=None if asked.followed is None else asked.followed.wanted)
    if page == SUM:
        return AttributionRequest(run=run, aim=aim)
    if page == TOKENS:
        return ExplanationRequest(run=run, aim=aim)
    if not asked.other.strip():
        return None
    return PatchRequest(run=run, other=asked.other, kind=asked.copied, align=asked.aligned, aim=aim)


def aim_of(page: int, state: State) -> Metric:
    assert state.ran is not None
    position = 0 if state.ran.seen is not None else answer_position(state, state.ran)  # of a picture the classes'
    if state.document.effects.loss and page in (HEADS, PATCH) and has_loss(state):
        return Metric(measure="loss", position=position)
    return state.document.effects.aim(position)


def has_loss(state: State) -> bool:
    """Whether the model says how likely it finds the text's own tokens: only one that goes on with a text does."""
    loaded = state.results.loaded
    return loaded is not None and loaded.info.family == "causal" and loaded.info.class_head is None


def weights_request(state: State) -> AdversarialAttentionRequest | None:
    """The search for other weights of the selected head, or of those with it; None while no head is selected.

    Heads that are changed together are asked for by the first of them, whichever of them is selected.
    """
    ran, site, asked = state.ran, state.site, state.document.effects
    if ran is None or site is None:
        return None
    ref, head = site.ref, state.selection.head
    if asked.scope != "head":
        head = 0
    if asked.scope == "stack":
        ref = next(other.ref for other in ran.sites if other.stack == ref.stack)
    position = 0 if ran.seen is not None else answer_position(state, ran)
    return AdversarialAttentionRequest(
        run=ran.run, site=ref, head=head, scope=asked.scope, position=position, epsilon=asked.epsilon
    )


def words_request(state: State) -> InContextRequest | None:
    """The comparison of two words; None while a text does not have its word."""
    asked = state.document.effects
    if missing_word(asked) or state.ran is None:
        return None
    return InContextRequest(
        texts=asked.texts, words=asked.words, starts=asked.starts, interventions=state.ran.inputs.interventions
    )


def missing_word(asked: EffectsChoices) -> str:
    """What is still to be typed; "" where both texts have their words."""
    for name, text, word in zip("AB", asked.texts, asked.words, strict=True):
        if not text.strip():
            return f"Type a text {name}."
        if not word.strip():
            return f"Click a word of text {name}, or type it."
        if place_of_word(text, word) is None:
            return f"Text {name} does not have “{word}” in it: click a word of it, or type one as it stands there."
    return ""


def why_not(page: int, state: State) -> str:
    """Why a page has nothing to show of this model; "" where it has."""
    loaded = state.results.loaded
    if loaded is None:
        return WAITING
    info = loaded.info
    if info.textbook:
        return RECURRENT
    if page == WORDS:
        return _NO_TEXT if info.family == "vision" else ""
    if is_body(state) or info.wordless:
        return _NO_HEAD
    if info.class_head is not None and info.class_head.of == "choice":
        return _CHOICE
    if info.weights_only and page != LENS:
        return f"{info.weights_only} So no part of it can be changed."
    if page == TOKENS and loaded.placement.dtype in COARSE:
        return _NO_GRADIENTS
    if page in (TOKENS, PATCH) and (info.family == "vision" or (page == TOKENS and info.family == "seq2seq")):
        return _ONE_STACK
    return ""


def why_no_weights(state: State) -> str:
    """Why no other weights can be searched for; "" where they can."""
    loaded, site = state.results.loaded, state.site
    if loaded is None or site is None:
        return WAITING
    why = why_not(HEADS, state)
    if why:
        return why
    if loaded.placement.dtype in COARSE:
        return _NO_GRADIENTS
    if loaded.info.family == "seq2seq" and site.stack == "encoder":
        return _OF_ENCODER
    head = loaded.info.class_head
    if head is not None and (head.scale != "softmax" or head.of == "span"):
        return _NO_SHARES
    return ""


def still_wanted(wanted: Request, view: Result | None) -> Request | None:
    """What of `wanted` is not in `view`, the newest answer of its kind."""
    if view is None or not is_of(view, wanted):
        return wanted
    if isinstance(wanted, InParts):
        assert isinstance(view, (EffectsView, PatchView, AdversarialAttentionView))
        return None if view.done == 1 else replace(wanted, have=view.done)
    return None


def is_of(view: Result, wanted: Request | None) -> bool:
    """Whether an answer is to that, all of it or in part."""
    asked = view.request
    return (replace(asked, have=0.0) if isinstance(asked, InParts) else asked) == wanted


def same_heads(view: AdversarialAttentionView, site: SiteRef, head: int) -> int:
    """Which of the heads that are changed this is; 0 where it is none of them."""
    return view.heads.index((site, head)) if (site, head) in view.heads else 0
