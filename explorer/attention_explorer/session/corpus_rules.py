"""A file of texts that is read through the model, and one that roles are found on: how an intent changes it. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.corpus import corpus_view
from attention_explorer.session.intents import (
    AskCorpus,
    ChooseCorpus,
    ChooseProbe,
    ReadCorpus,
    RestoreDocument,
    ShowPlace,
)
from attention_explorer.session.rules import rule, without_notice
from attention_explorer.session.state import BatchText, Selection, State
from attention_explorer.session.texts import with_texts
from attention_models.protocol.corpus import CorpusRequest, CorpusView
from attention_models.protocol.roles import RolesRequest, RolesView

_MOST_RECENT = 8


@rule.register
def _(intent: ChooseCorpus, state: State) -> State:
    corpus = replace(state.document.corpus, path=intent.path)
    return _used(_from_the_beginning(state.with_document(corpus=corpus)), intent.path)


@rule.register
def _(intent: AskCorpus, state: State) -> State:
    if intent.question == state.document.corpus.question:
        return state
    asked = state.with_document(corpus=replace(state.document.corpus, question=intent.question))
    return without_notice(replace(asked, reading=bool(asked.document.corpus.path)), {CorpusRequest.lane})


@rule.register
def _(intent: ReadCorpus, state: State) -> State:
    if intent.on == state.reading or (intent.on and not state.document.corpus.path):
        return state
    if not intent.on:
        return replace(state, reading=False)
    view = corpus_view(state)
    if view is None or view.ended:
        return _from_the_beginning(state)
    return without_notice(replace(state, reading=True), {CorpusRequest.lane})


@rule.register
def _(intent: ShowPlace, state: State) -> State:
    loaded = state.results.loaded
    if loaded is None:
        return state
    translates = loaded.info.family == "seq2seq"
    second = intent.second if loaded.info.pairs and not translates else None
    text = BatchText(intent.text, second, intent.second if translates else None)
    selection = Selection(intent.site, intent.head, intent.query, intent.key, chosen=True)
    document = replace(with_texts(state.document, (text,), 0), chat=False, selection=selection)
    return rule(RestoreDocument(document), state)


@rule.register
def _(intent: ChooseProbe, state: State) -> State:
    if intent.path == state.document.probe:  # its texts may be others by now
        state = replace(state, results=state.results.without(RolesView))
    chosen = without_notice(state.with_document(probe=intent.path), {RolesRequest.lane})
    return _used(chosen, intent.path) if intent.path else chosen


def _from_the_beginning(state: State) -> State:
    state = replace(state, reading=True, results=state.results.without(CorpusView))
    return without_notice(state, {CorpusRequest.lane})


def _used(state: State, path: str) -> State:
    recent = (path, *(other for other in state.recent_texts if other != path))[:_MOST_RECENT]
    return replace(state, recent_texts=recent)
