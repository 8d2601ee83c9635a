"""Where to look first: the selection a checkpoint starts with, and how it follows a growing text."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.state import Selection, clamped, site_of
from attention_models.protocol.head import AttentionPeaks
from attention_models.protocol.running import Ran
from attention_models.protocol.values import MOST, SiteRef, site_tokens

DEFAULT_HEADS: dict[str, tuple[SiteRef, int]] = {
    # Finds the name that is not the giver: on the example " to" attends back to "Tom", the word the model says.
    "story-gpt": (SiteRef("decoder", 5), 5),
    # From the first mask of the example back to "Anna", whom the model then guesses there.
    "story-bert": (SiteRef("encoder", 5), 6),
    # From "He" of the second sentence of the example back to "Tom" of the first: 0.88.
    "story-next": (SiteRef("encoder", 2), 4),
    # Finds the word that comes next in Spanish: the largest weight of eight of the example's nine words is on their own
    # English word, 0.82 on average.
    "en-es": (SiteRef("cross", 2), 4),
}
"""The most telling (site, head) of a shipped checkpoint on its own example, by the name it is opened under. On other
texts it is the first to be tried."""

DEFAULT_CELLS: dict[str, tuple[int, int]] = {
    "story-next": (11, 1),
    # "El" attends to "cat", two words on, as the model writes "gato": the adjective has to wait.
    "en-es": (1, 2),
    # "libro" attends to "old" (0.65), two words back, as the model writes "viejo": English has the adjective first.
    "recurrent-en-es-bahdanau": (6, 4),
    # Writing the "3" of "03" they attend to "March": most at its "r" (0.77), and at its "a" (1.00).
    "dates-bahdanau": (6, 14),
    "dates-luong": (6, 13),
}
"""The (query, key) to begin with on a checkpoint's own example, where a rule would choose a less telling one."""

DEPTH = 0.65
"""How far up the stack to look in a model nobody has listed: past the heads that only copy neighbours."""


ENOUGH = 0.25
"""What a head must give one word of the first row to be said to do something there."""


def default_selection(ran: Ran, checkpoint: str = "", is_example: bool = False) -> Selection:
    """Where to look first in a text that nobody has looked at: a head that does something there, never its sink.

    On its own example (`is_example`) a shipped checkpoint has a listed head and cell. On any other text it is the
    listed head, where it gives a word of the first row `ENOUGH`; else the head that gives one most, in the layers
    after the first where there are any: in the first one tokens know nothing of each other yet. Of equal ones the one
    that reaches further, then the later one. `Ran.looks` says which row and which words.

    Where that names no head: head 0 at about two thirds of the first decoder or encoder stack, or of the
    cross-attention of a model that has nothing else; from the first mask or the last token that stands for text, to the
    first token that does. The site is None for a model that kept none.
    """
    listed = DEFAULT_HEADS.get(checkpoint, (None, 0))
    is_example = is_example and (checkpoint in DEFAULT_HEADS or checkpoint in DEFAULT_CELLS)
    if ran.looks is not None and not is_example:
        return clamped(_telling(ran, ran.looks, *listed), ran)
    site, head = listed
    if site_of(ran, site) is None:
        site, head = _middle_late(ran), 0
    query = ran.masks[0] if ran.masks else last_token(ran)
    if ran.seen is not None:
        query = 0  # CLS, from which the class is read
    cell = query, _first_token(ran)
    query, key = DEFAULT_CELLS.get(checkpoint, cell) if is_example else cell
    return clamped(Selection(site=site, head=head, query=query, key=key), ran)


def _telling(ran: Ran, looks: AttentionPeaks, ref: SiteRef | None, head: int) -> Selection:
    """The listed head where it does something in this text, else the one that does most."""
    site = site_of(ran, ref)
    look = None if site is None else looks.of(ran.sites, site, head)
    if look is not None and look.weight >= ENOUGH:
        return Selection(ref, head, looks.query, look.key)
    every = [
        (look.weight, abs(look.key - looks.query), place, -head, look.key)
        for place, heads in enumerate(looks.of_heads)
        for head, look in enumerate(heads)
    ]
    later = [each for each in every if ran.sites[each[2]].layer > 0]
    _, _, place, head, key = max(later or every)
    return Selection(ran.sites[place].ref, -head, looks.query, key)


def goes_on(before: Ran, ran: Ran) -> bool:
    """Whether `ran` is of the text that ran `before`, perhaps with tokens written after it or in the place of masks."""
    if before.source or ran.source:
        return before.source == ran.source  # whatever the decoder is made to say
    count = len(before.tokens)
    if ran.tokens[:count] == before.tokens:
        return True
    pairs = zip(before.tokens, ran.tokens, strict=False)
    return count == len(ran.tokens) and all(
        a.piece == b.piece for i, (a, b) in enumerate(pairs) if i not in before.masks
    )


def within_run(selection: Selection, ran: Ran, checkpoint: str = "") -> Selection:
    """`selection` among what ran: the default head where it names a site that did not run, its cell within the map."""
    if site_of(ran, selection.site) is None:
        default = default_selection(ran, checkpoint)
        selection = replace(selection, site=default.site, head=default.head)
    return clamped(selection, ran)


END = MOST
"""As a query: the end of a text, however long it turns out to be."""


def last_token(ran: Ran) -> int:
    """The position of the last token that is not special, of the last one where all are."""
    plain = [position for position, token in enumerate(ran.tokens) if not token.special]
    return plain[-1] if plain else max(0, len(ran.tokens) - 1)


def followed_query(query: int, before: Ran, ran: Ran) -> int:
    """Where `query` of the run `before` stands in the next one: on the first mask or at the end if it stood there."""
    if before.masks and ran.masks and query == before.masks[0]:
        return ran.masks[0]
    if query == last_token(before):
        return last_token(ran)
    return query


def off_padding(selection: Selection, ran: Ran) -> Selection:
    """`selection` with a query or key that fills up its text moved to the text's last or first token."""
    site = site_of(ran, selection.site)
    queries, keys = (ran.tokens, ran.tokens) if site is None else site_tokens(ran, site)
    if selection.query < len(queries) and queries[selection.query].padding:
        real = [i for i, token in enumerate(queries) if not token.padding]
        plain = [i for i in real if not queries[i].special]
        selection = replace(selection, query=(plain or real)[-1])
    if selection.key < len(keys) and keys[selection.key].padding:
        real = [i for i, token in enumerate(keys) if not token.padding]
        plain = [i for i in real if not keys[i].special]
        selection = replace(selection, key=(plain or real)[0])
    return selection


def _first_token(ran: Ran) -> int:
    return next((position for position, token in enumerate(ran.tokens) if not token.special), 0)


def _middle_late(ran: Ran) -> SiteRef | None:
    stack = next((site.stack for site in ran.sites if site.stack in ("decoder", "encoder")), "cross")
    refs = [site.ref for site in ran.sites if site.stack == stack]
    return refs[min(round(DEPTH * len(refs)), len(refs) - 1)] if refs else None
