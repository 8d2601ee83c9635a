"""What the (i) of masks and scales says, with the numbers before and after. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.panels.mask_scale.numbers import loss_text
from attention_explorer.panels.selected_head import head_name, site_words
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import counted, entropy_text, percent_text, value_text
from attention_models.protocol.comparison import CompareView

_WHAT = (
    "Change what tokens may look at, how sharply, or which parts of a block work: the live model answers, in "
    "every panel."
)
_AS_TRAINED = "Nothing is changed now: this is the model as it was trained."
_TEXTBOOK = (
    "Masks and scales are for transformers: a recurrent model looks at the whole source, and its scores are not scaled."
)
_TRY = (
    "Try: choose Sliding window and a small n, or drag the scale to 0, where all keys weigh the same; Ctrl+Z "
    "takes it back."
)
_TRY_BACK = "Try: switch one entry of the list off and on, and watch what the model says; Clear takes all back."


def about(state: State) -> About:
    loaded, ran, site = state.results.loaded, state.ran, state.site
    if loaded is not None and loaded.info.textbook:
        return About((_TEXTBOOK, _WHAT), "Try: open story-gpt and change what one of its heads may look at.")
    view = state.results.of(CompareView)
    chosen = state.selection
    if (
        ran is None
        or site is None
        or view is None
        or (view.request.run, view.request.site, view.request.head) != (ran.run, site.ref, chosen.head)
    ):
        return About(
            (
                _WHAT,
                "When the model has run, the numbers of the selected head stand below: before, and after the change.",
            ),
            _TRY,
        )
    queries, keys = site_words(ran, site)
    query = min(chosen.query, len(view.top_key_after) - 1)
    count = len(ran.inputs.interventions)
    if not count:
        row = _row(view, state, query, keys, after=True)
        return About.of(
            (_WHAT, f"{_AS_TRAINED} {head_name(state)}: the row of “{queries[query]}” has {row}.", _loss(view, state)),
            _TRY,
        )
    before, after = (_row(view, state, query, keys, after=side) for side in (False, True))
    return About.of(
        (
            f"{_WHAT} Now {counted(count, 'change')} {'acts' if count == 1 else 'act'}.",
            f"{head_name(state)}, the row of “{queries[query]}”: before, {before}; now, {after}.",
            _loss(view, state),
            _token(view),
        ),
        _TRY_BACK,
    )


def _row(view: CompareView, state: State, query: int, keys: list[str], *, after: bool) -> str:
    weights, places, entropies = (
        (view.top_after, view.top_key_after, view.entropy_after)
        if after
        else (view.top_before, view.top_key_before, view.entropy_before)
    )
    if after and query in view.dead_rows:
        return "no key to look at, and no weight"
    bits = entropy_text(float(entropies[query]), state.document.view.unit)
    return f"{value_text(float(weights[query]))} on “{keys[int(places[query])]}” at most and an entropy of {bits}"


def _loss(view: CompareView, state: State) -> str:
    if view.loss_after is None or view.loss_before is None or view.done < 1:
        return ""
    unit = state.document.view.unit
    what = "The loss on this text, how badly each next token is foreseen,"
    before, after = loss_text(view.loss_before, unit), loss_text(view.loss_after, unit)
    return f"{what} is {after}." if before == after else f"{what} was {before} and is {after}."


def _token(view: CompareView) -> str:
    if not view.token_changes:
        return ""
    first = view.token_changes[0]
    before, after = (percent_text(v) if first.is_share else value_text(v) for v in (first.before, first.after))
    return f"“{first.label.lstrip('␣') or first.label}” had {before} and has {after}."
