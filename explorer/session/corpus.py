"""What was found in a file of texts, where it is of what is on screen. Pure."""

from __future__ import annotations

from dataclasses import replace

from explorer.session.state import State
from models.protocol.corpus import CorpusView


def corpus_view(state: State) -> CorpusView | None:
    """What was found in the document's file of texts, by the open model with the interventions that are on."""
    view = state.results.of(CorpusView)
    return view if view is not None and replace(view.request, have=0) == state.document.corpus_request else None


def corpus_means(state: State) -> CorpusView | None:
    """What of it is so whatever is looked for: the means."""
    view, asked = state.results.of(CorpusView), state.document.corpus_request
    is_this = view is not None and replace(view.request, have=0, question=asked.question) == asked
    return view if is_this else None
