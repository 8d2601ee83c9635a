"""What the (i) of Corpus says. Pure."""

from __future__ import annotations

import numpy as np

from attention_explorer.panels.about import About
from attention_explorer.panels.corpus.corpus_sentences import asked_words, many, name_of, refusal
from attention_explorer.panels.corpus.figures import mean_map, ranked_heads
from attention_explorer.panels.selected_head import name_of_head
from attention_explorer.session.corpus import corpus_means, corpus_view
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.values import SiteRef

_WHAT = (
    "Every text of a file is run through the open model as it is now, changes included. Map is the mean weight of the "
    "selected head between places counted from the beginning of a text; Distance the mean weight by how far the key "
    "lies before the query, in rows where more than one key is visible."
)
_SUMS = "Nothing is kept of a text but sums, and the places that are listed, so a file may be as long as it likes."
_TRY = "Try: ask what attends to the token before, take the head that leads, and look at Map and Distance."


def about(state: State) -> About:
    loaded = state.results.loaded
    sentence = refusal(None if loaded is None else loaded.info)
    if sentence:
        return About((sentence, _WHAT))
    means = corpus_means(state)
    if means is None:
        return About((_WHAT, _SUMS), _TRY)
    return About.of((_WHAT, _counted(state), _largest(state), _asked(state)), _TRY)


def _counted(state: State) -> str:
    means = corpus_means(state)
    assert means is not None
    so_far = "" if means.ended else " so far"
    return (
        f"These are {many(means.texts, 'text')} of {name_of(means.request.path)}{so_far}, "
        f"{many(means.tokens, 'token')}."
    )


def _largest(state: State) -> str:
    means, selection = corpus_means(state), state.selection
    found = None if means is None or selection.site is None else mean_map(means, selection.site, selection.head)
    if found is None:
        return ""
    values = np.where((~np.isnan(found.values)).sum(axis=1, keepdims=True) > 1, found.values, np.nan)
    if np.isnan(values).all():
        return ""
    query, key = divmod(int(np.nanargmax(values)), values.shape[1])
    return (
        f"The largest mean of the selected head, in a row with a choice, is {value_text(float(values[query, key]))}: "
        f"from place {query} to place {key}, over {many(int(found.texts[query, key]), 'text')}."
    )


def _asked(state: State) -> str:
    view, site = corpus_view(state), state.selection.site
    if view is None or site is None or not view.request.question.attends_to:
        return ""
    heads, even = ranked_heads(view, site.stack)
    if not heads or even is None:
        return ""
    layer, head, _, score = heads[0]
    name = name_of_head(SiteRef(site.stack, layer), head, view.sites)
    return (
        f"Of all heads {name} {asked_words(view.request.question)} most, {value_text(score)} of its attention where "
        f"there is such a key; a head that attends evenly would give {value_text(even)}."
    )
