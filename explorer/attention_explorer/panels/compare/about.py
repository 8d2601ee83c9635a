"""What the (i) of Compare says, with the numbers of the two states. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.panels.compare.compare_sentences import change_name, largest, said, share
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.two_runs import TwoRunsView

_WHAT = "A is what is open, B another state that is run beside it: a text, a checkpoint, a change, a branch, a head."
_BEFORE = (
    "Their maps stand side by side over the same tokens, and their difference A − B in two colours: red where A "
    "attends more, blue where B does, pale where both attend alike."
)
_TRY_FIRST = "Try: press “Use as B”, then put another name in the text above."
_TRY = "Try: click the first head of the list: it is shown in both, and in Head."


def about(state: State, view: TwoRunsView | None) -> About:
    if state.document.compared is None or view is None or state.ran is None or view.request.run != state.ran.run:
        return About((_WHAT, _BEFORE), _TRY_FIRST if state.document.compared is None else _TRY)
    a, b = (f"“{said(side)}” {share(side)}".strip() for side in (view.a, view.b))
    sentences = [_WHAT, _BEFORE, f"A says {a}, B {b}."]
    number, where = largest(view)
    if where:
        place = where.removeprefix("largest: ")
        sentences.append(f"The largest difference is {number}, {place}." if number != "0" else "No weight differs.")
    changes = view.changed_most
    if changes:
        most = changes[0]
        sentences.append(f"The head that changed most is {change_name(most, view)}, by {value_text(most.change)}.")
    return About.of(tuple(sentences), _TRY)
