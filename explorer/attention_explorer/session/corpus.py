"""What was found in files of texts, where it is of what is on screen. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.state import State
from attention_models.protocol.corpus import CorpusView
from attention_models.protocol.roles import RolesView


def corpus_view(state: State) -> CorpusView | None:
    """What was found in the document's file of texts, by the open model with the interventions that are on."""
    view = state.results.of(CorpusView)
    return view if view is not None and replace(view.request, have=0) == state.document.corpus_request else None


def corpus_means(state: State) -> CorpusView | None:
    """What of it is so whatever is looked for: the means."""
    view, asked = state.results.of(CorpusView), state.document.corpus_request
    is_this = view is not None and replace(view.request, have=0, question=asked.question) == asked
    return view if is_this else None


def probe_of(state: State) -> str:
    """The file that roles are found on; "" for the texts that come along, or the pictures for a vision model."""
    loaded = state.results.loaded
    return "" if loaded is not None and loaded.info.family == "vision" else state.document.probe


def roles_view(state: State) -> RolesView | None:
    """The roles that were found on it, or how far that is."""
    view = state.results.of(RolesView)
    return view if view is not None and view.request.probe == probe_of(state) else None
