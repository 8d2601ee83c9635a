"""The selected head, for the panels that show it: what to ask for, what has come, and what it is called. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import percent_text
from attention_explorer.widgets.token_text import in_and_out, in_lines, shortened
from attention_models.protocol.cell import CellRequest
from attention_models.protocol.comparison import CompareRequest, CompareView
from attention_models.protocol.head import HeadRequest, HeadView, RowRequest, RowView, ScoresRequest
from attention_models.protocol.matrices import MatricesRequest, window_start
from attention_models.protocol.running import Ran
from attention_models.protocol.two_runs import RunSide
from attention_models.protocol.values import CheckpointInfo, Site, SiteRef, Token, site_tokens
from attention_models.protocol.word_spans import Words, word_label
from attention_models.protocol.word_spans import site_words as words_of_site

NEXT = "⟨next⟩"
"""What the last row of cross-attention wrote: a word that does not stand in the target."""

NO_HEADS = "This model has no attention: there are no heads to look at."


def wanted_head(state: State) -> HeadRequest | RowRequest | None:
    """The weights of the selected head, unless they are here; of a long text those of the selected query alone."""
    ran, site, head = state.ran, state.site, state.selection.head
    if ran is None or site is None:
        return None
    if site.is_long:
        request = RowRequest(run=ran.run, site=site.ref, head=head, query=state.selection.query)
        return None if state.results.has_answer_to(request) else request
    wanted = HeadRequest(run=ran.run, site=site.ref, head=head, words=state.document.view.words)
    return None if state.results.has_answer_to(wanted) else wanted


def selected_head_request(state: State) -> HeadRequest | None:
    """What a script of the selected head and cell is asked by; None before anything has run, and of a long text."""
    ran, site, chosen = state.ran, state.site, state.selection
    if ran is None or site is None or site.is_long:
        return None
    return HeadRequest(run=ran.run, site=site.ref, head=chosen.head, cell=(chosen.query, chosen.key))


def selected_cell_request(state: State) -> CellRequest | None:
    """The selected cell; None before anything has run."""
    ran, site, chosen = state.ran, state.site, state.selection
    if ran is None or site is None:
        return None
    return CellRequest(run=ran.run, site=site.ref, head=chosen.head, query=chosen.query, key=chosen.key)


def by_words(state: State) -> bool:
    """Whether panels show words instead of pieces: not of a long text, whose weights come pooled."""
    return state.document.view.words and (state.site is None or not state.site.is_long)


def head_shown(state: State) -> HeadView | RowView | None:
    """The newest weights of the run on screen that are here: of a whole head, or of a long text one of its rows."""
    site, ran = state.site, state.ran
    view = state.results.of(RowView) if site is not None and site.is_long else state.results.of(HeadView)
    return view if view is not None and ran is not None and view.request.run == ran.run else None


def row_of(view: HeadView | RowView, query: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Weights and mask of one query, (keys,) each; of a view that holds one row, that one."""
    if isinstance(view, RowView):
        return view.weights, view.masked
    return view.weights[query], None if view.masked is None else view.masked[query]


def wanted_comparison(state: State) -> CompareRequest | None:
    """The selected head and the next token, beside the model as it is; None where that is here.

    Of a long text it comes in parts: this asks for what is missing.
    """
    ran, site, selection = state.ran, state.site, state.selection
    if ran is None or site is None:
        return None
    position = answer_position(state, ran)
    request = CompareRequest(run=ran.run, site=site.ref, head=selection.head, position=position)
    view = state.results.of(CompareView)
    if view is None or replace(view.request, have=0.0) != request:
        return request
    return None if view.done == 1 else replace(request, have=view.done)


def wanted_scores(state: State) -> ScoresRequest | None:
    """What the selected head's weights were made of, unless it is here. Of a site that is not long."""
    ran, site = state.ran, state.site
    if ran is None or site is None or site.is_long:
        return None
    wanted = ScoresRequest(run=ran.run, site=site.ref, head=state.selection.head)
    return None if state.results.has_answer_to(wanted) else wanted


def wanted_matrices(state: State) -> MatricesRequest | None:
    """The selected head as matrices, of a long text a window about the selected cell, unless they are here."""
    ran, site, selection = state.ran, state.site, state.selection
    if ran is None or site is None:
        return None
    starts = window_start(selection.query, site.queries), window_start(selection.key, site.keys)
    wanted = MatricesRequest(
        run=ran.run, site=site.ref, head=selection.head, first_query=starts[0], first_key=starts[1]
    )
    return None if state.results.has_answer_to(wanted) else wanted


def why_no_matrices(info: CheckpointInfo) -> str:
    """Why a model's attention cannot be shown as a product of matrices; "" where it can."""
    return "A recurrent model scores one pair after the other: see Cell." if info.textbook else info.weights_only


def head_name(state: State) -> str:
    """ "Layer 5, head 5", with the stack where a model has several."""
    site, ran = state.site, state.ran
    if site is None or ran is None:
        return "No head"
    name = name_of_head(site.ref, state.selection.head, [s.ref for s in ran.sites])
    return name[0].upper() + name[1:]


def name_of_head(site: SiteRef, head: int, sites: Iterable[SiteRef]) -> str:
    """ "layer 5, head 5" within a sentence; of `sites` of several stacks, the stack too."""
    several = len({each.stack for each in sites}) > 1
    stack = {"encoder": "encoder ", "decoder": "decoder ", "cross": "cross-attention "}[site.stack]
    return f"{stack if several else ''}layer {site.layer}, head {head}"


def why_first(state: State) -> str:
    """Why this head and cell are the first that one sees of a text; "" where they are somebody's choice."""
    ran, site, selection = state.ran, state.site, state.selection
    if ran is None or site is None or ran.looks is None or selection.chosen:
        return ""
    look = ran.looks.of(ran.sites, site, selection.head)
    if look is None or (ran.looks.query, look.key) != (selection.query, selection.key):
        return ""
    queries, keys = site_words(ran, site)
    return in_lines(
        f"Shown first: from “{queries[selection.query]}” this head gives “{keys[look.key]}” "
        f"{percent_text(look.weight)} of its row. A head that rests on the first token, on itself or on a neighbour is "
        "not begun with. Click a thumbnail for another one."
    )


def token_word(state: State, position: int) -> str:
    """What the row at `position` of the selected site is called in a sentence: "to", or "El → gato"."""
    ran, site = state.ran, state.site
    if ran is None:
        return ""
    if site is not None and site.stack == "cross":
        queries = _site_words(ran, site)[0]
        return queries[position] if 0 <= position < len(queries) else ""
    tokens = ran.tokens if site is None else site_tokens(ran, site)[0]
    return shortened(tokens[position].word) if 0 <= position < len(tokens) else ""


def site_words(ran: Ran | RunSide, site: Site) -> tuple[list[str], list[str]]:
    """What to call each query and each key of `site`; numbers where they are no tokens of the run's texts.

    A query of cross-attention is called by the token that went in and the one that it wrote: "El → gato".
    """
    queries, keys = _site_words(ran, site)
    return list(queries), list(keys)


@lru_cache(maxsize=8)  # panels ask at every change of state
def _site_words(ran: Ran | RunSide, site: Site) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sides = zip(site_tokens(ran, site), (site.queries, site.keys), strict=True)
    queries, keys = (
        tuple(shortened(token.word) for token in tokens) if len(tokens) == count else tuple(map(str, range(count)))
        for tokens, count in sides
    )
    if site.stack == "cross" and len(ran.tokens) == site.queries:
        queries = tuple(map(in_and_out, queries, (*queries[1:], NEXT)))
    return queries, keys


@lru_cache(maxsize=8)
def padding_of(ran: Ran | None, site: Site | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which queries and keys of `site` fill up a text of a batch."""
    if ran is None or site is None:
        return (), ()
    sides = zip(site_tokens(ran, site), (site.queries, site.keys), strict=True)
    queries, keys = (
        tuple(i for i, token in enumerate(tokens) if token.padding) if len(tokens) == count else ()
        for tokens, count in sides
    )
    return queries, keys


def word_labels(tokens: Sequence[Token], words: Words) -> list[str]:
    """What to call each word in a sentence or on an axis."""
    labels = (word_label([tokens[i] for i in words.tokens(word)]) for word in range(len(words)))
    return [shortened(label.lstrip("␣") or label) for label in labels]


def site_word_labels(ran: Ran, site: Site) -> tuple[list[str], list[str]]:
    """As `site_words`, of the words that queries and keys are merged into."""
    names = site_words(ran, site)
    sides = zip(words_of_site(ran, site), site_tokens(ran, site), names, strict=True)
    queries, keys = (pieces if words.are_tokens else word_labels(tokens, words) for words, tokens, pieces in sides)
    if site.stack == "cross" and len(ran.tokens) == site.queries:
        queries = list(map(in_and_out, _words_read(ran), words_written(ran, merged=True)))
    return queries, keys


def words_written(ran: Ran, merged: bool = False) -> list[str]:
    """For each row of cross-attention the word that it wrote: the token after its own, or where they are `merged` the
    word that such tokens make up.
    """
    if merged:
        return [*word_labels(ran.tokens[1:], Words.of(ran.tokens[1:])), NEXT]
    return [*(shortened(token.word) for token in ran.tokens[1:]), NEXT]


def _words_read(ran: Ran) -> list[str]:
    """The word that went in where each word began to be written."""
    read, written = Words.of(ran.tokens), Words.written(ran.tokens)
    labels = word_labels(ran.tokens, read)
    return [labels[read.word(start)] for start in written.starts]


def site_texts(ran: Ran, site: Site) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What each query and each key of `site` adds to the run's texts, with the white space before it."""
    queries, keys = (_texts(tokens) for tokens in site_tokens(ran, site))
    return queries, keys


def _texts(tokens: tuple[Token, ...]) -> tuple[str, ...]:
    texts, end = [], 0
    for token in tokens:
        gap = " " if token.start > end else ""  # what no token covers, between two of them, is white space
        texts.append(gap + token.text if token.start >= end else "")  # bytes of one character all cover it
        end = max(end, token.end)
    return tuple(texts)


def answer_position(state: State, ran: Ran) -> int:
    """Where one answer is read where one is wanted: of a text with masks at the selected one, else at the first."""
    position = predicting_position(state, ran)
    return ran.masks[0] if ran.masks and position not in ran.masks else position


def predicting_position(state: State, ran: Ran) -> int:
    """Where the next token is read: at the selected query, at the end while that is one of the encoder's tokens."""
    site = state.site
    last = max((i for i, token in enumerate(ran.tokens) if not token.padding), default=len(ran.tokens) - 1)
    if site is not None and site_tokens(ran, site)[0] is not ran.tokens:
        return last
    return min(state.selection.query, last)
