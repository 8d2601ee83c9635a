"""What the (i) of the lookups says, of the step that is shown. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.panels.lookup.entries import ENTRIES, number, percent
from attention_explorer.widgets.number_text import value_text
from attention_models.views.lookup import SoftLookup

_WHAT = "Attention is a soft dictionary: a query is compared with every key, and the answer is a mixture of all values."
_TRY_WORD = (
    "Try: type a key that is not there, as “grapes”, and move the slider to hard: the soft lookup becomes the "
    "dictionary."
)
_TRY_ARROWS = "Try: drag the query's arrow onto a key's, and watch that key take the weight."
_TRY_HEAD = "Try: click another key, or select another token above: the row is that of the selected head."


def of_dictionary(key: str, found: SoftLookup) -> About:
    """What was typed, and the soft lookup's answer."""
    best = int(found.weights.argmax())
    entry = ENTRIES[best]
    exact = (
        "and it is a key, so the plain dictionary finds it"
        if any(e.key == key for e in ENTRIES)
        else "which is no key: a plain dictionary has no answer"
    )
    return About(
        (
            _WHAT,
            f"You look up “{key}”, {exact}.",
            (
                f"By likeness “{entry.key}” gets most, {percent(float(found.weights[best]))} of the weight, and "
                f"the {len(ENTRIES)} prices together give {number(float(found.answer[0]))}."
            ),
        ),
        _TRY_WORD,
    )


def of_arrows(query: tuple[float, float], function: str, found: SoftLookup) -> About:
    """The query's arrow, the score function in use, and its answer."""
    best = int(found.weights.argmax())
    entry = ENTRIES[best]
    return About(
        (
            _WHAT,
            (
                f"The query is the arrow ({number(query[0])}, {number(query[1])}); the score of a key "
                f"({function.lower()}) is larger the more it points the same way."
            ),
            (
                f"“{entry.key}” scores {number(float(found.scores[best]))} and gets "
                f"{percent(float(found.weights[best]))} of the weight: the answer is "
                f"{number(float(found.answer[0]))}."
            ),
        ),
        _TRY_ARROWS,
    )


def of_head(sentence: str, allowed: int, keys: int, total: float) -> About:
    """`sentence` is what the page says of the selected row, which may look at `allowed` of its keys.

    `total` is the sum of its weights: 1 less a sink's share, or 0 where all is masked.
    """
    shares = "are shares of 1" if total > 0.999 else f"sum to {value_text(total)} (the rest is a sink's)"
    said = (
        ""
        if not keys or not total
        else f"All weights of the row {shares}, over {allowed} of {keys} tokens."
        if allowed < keys
        else f"All weights of the row {shares}, over {keys} tokens."
    )
    return About.of((_WHAT, sentence, said), _TRY_HEAD)
