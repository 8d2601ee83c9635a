"""What the (i) of Effects says, of the page that is shown. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from attention_explorer.panels.about import About
from attention_explorer.panels.effects.questions import HEADS, LENS, PATCH, SUM, TOKENS, WORDS

_WHAT: dict[int, tuple[str, ...]] = {
    HEADS: (
        "What a head does is seen where it is taken away: its output is set to 0 before it is multiplied by W_O, and "
        "the model is run again. Blue: without it what is measured falls. Red: it rises.",
        "A click on a cell selects the head everywhere; the right button takes it out of the run, or holds it at its "
        "mean.",
    ),
    LENS: (
        "The stream after every layer, read by the model's own last norm and output head: what it would say if it "
        "ended there. The curve is the rank of one token at the selected position, 1 the likeliest, on a logarithmic "
        "axis.",
    ),
    SUM: (
        "A logit is a sum: of what each head, each feed-forward network and the embedding wrote into the stream, read "
        "along the direction of the token, with the last norm's divisor held.",
    ),
    PATCH: (
        "A part of the run of another text is copied into this one, one place at a time. Red: the answer goes towards "
        "the other text's. Of texts of different length it must be said which token stands for which.",
    ),
    TOKENS: (
        "Other weights: those furthest from the row of a head that leave the answer as it is, and the least weight "
        "whose move gives another. Each was put into the row and the model run with it; the figures are that run's.",
        "If quite other weights give the same answer, the row alone does not explain it; but they are searched for, "
        "not learned (Wiegreffe and Pinter 2019).",
    ),
    WORDS: (
        "The same word has one embedding, and another vector after every layer that has looked at its text. The cosine "
        "says how alike the two are; any two tokens are alike too, which is the line to compare it with.",
        "In two dimensions only what the first two principal components say is seen: how much that is stands at the "
        "axes.",
    ),
}
_TRY = {
    HEADS: "Try: choose a second answer after “less”, the next likeliest say, and press Strongest: the head that "
    "decides between them.",
    LENS: "Try: choose another token after “Rank of”, and see in which layer it is overtaken.",
    SUM: "Try: choose a second answer after “less”: which parts are for the one and which for the other.",
    PATCH: "Try: the same text with one name changed.",
    TOKENS: "Try: press “Search other weights”, then the same with all heads of the layer.",
    WORDS: "Try: “In two dimensions”, and drag the slider from the embedding to the last layer.",
}


def about(page: int, said: Sequence[str]) -> About:
    """`said` is what the page says just now, with its numbers."""
    return About.of((*_WHAT[page], *said), _TRY[page])
