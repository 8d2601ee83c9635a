"""What the (i) of positions says, of the page that is shown. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.panels.positions.order_view import told
from attention_explorer.session.state import State
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.order import ShuffleView
from attention_models.protocol.positions import PatchPositionsView, PositionsView
from attention_models.protocol.values import SeenPicture

_WHAT = "Attention by itself sees a set of tokens and not their order: something has to tell it where each one stands."
_TRY_WAVES = "Try: drag the line over the waves: near positions have like numbers, far ones do not."
_TRY_MODEL = "Try: select another token above, and see what its position does here."
_TRY_ORDER = (
    "Try: press Dog bites man, then Positions off: is the answer still another one when the words change places?"
)
_TRY_PATCH = "Try: click a patch in the middle and one at an edge, and see which patches the model takes to be near."


def of_waves(position: int, width: int, wavelengths: tuple[float, float]) -> About:
    """Of the sinusoids: the cursor's position, the vectors' width, the first and the last wavelength."""
    first, last = wavelengths
    return About(
        (
            _WHAT,
            (
                f"Here it is a vector of waves, {width} numbers a position: pairs of a sine and a cosine, from "
                f"{first:.2f} positions a round to {last:,.0f}."
            ),
            (
                f"The cursor is at position {position}: the fast waves tell it from its neighbours, the slow "
                "ones from what is far away."
            ),
        ),
        _TRY_WAVES,
    )


def of_model(state: State, view: PositionsView | None) -> About:
    ran = state.ran
    if ran is None or view is None or view.request.run != ran.run:
        return About((_WHAT, "How the open model does it is shown here when it has run."), _TRY_MODEL)
    return About.of((_WHAT, f"{view.scheme.title.rstrip('.')}. {view.scheme.words}", _numbers(view)), _TRY_MODEL)


def _numbers(view: PositionsView) -> str:
    scheme, place = view.scheme, view.request.query
    if view.rotation is not None:
        product = value_text(view.rotation.product)
        return (
            f"“{view.query_word}” and “{view.key_word}” are {abs(view.rotation.distance)} tokens apart: as they "
            f"are turned there, q · k is {product}."
        )
    if scheme.shares is not None and scheme.table is not None:
        shares = ", ".join(f"{100 * share:.0f} %" for share in scheme.shares)
        return (
            f"“{view.query_word}” stands at position {place} of {len(scheme.table):,} that there are: three "
            f"principal components hold {shares} of what tells them apart."
        )
    if scheme.bias is not None:
        return (
            f"“{view.query_word}” and “{view.key_word}” are {abs(view.request.key - place)} tokens apart, and "
            "the bias for that is added to their score."
        )
    return ""


def of_order(state: State, view: ShuffleView | None) -> About:
    ran = state.ran
    if ran is None or view is None or view.request.run != ran.run:
        return About(
            (_WHAT, "The model runs on the same words in another order, and what became of each is compared."),
            _TRY_ORDER,
        )
    if view.note:
        return About((_WHAT, view.note), _TRY_ORDER)
    verdict, because = told(view)
    moved = f"The same {len(view.words)} tokens are run in another order, and the {view.measured} of each compared."
    return About.of((_WHAT, moved, verdict, because), _TRY_ORDER)


def of_patches(state: State, view: PatchPositionsView | None, seen: SeenPicture) -> About:
    """Of a vision model, with the two selected patches."""
    ran = state.ran
    if ran is None or view is None or view.request.run != ran.run:
        return About(
            (_WHAT, "How alike the places of its patches are to the model is shown when it has run."), _TRY_PATCH
        )
    if view.alike is None:
        return About((_WHAT, view.words), _TRY_PATCH)
    size = (
        f"{seen.rows} × {seen.columns} patches have a learned vector each: a small map is one patch compared "
        "with all, by cosine."
    )
    least = f"The least alike two of them have {value_text(float(view.alike.min()))}, and each with itself 1."
    query, key = seen.patch(state.selection.query), seen.patch(state.selection.key)
    pair = ""
    if query is not None and key is not None:
        alike = value_text(float(view.alike[*query, *key]))
        pair = (
            f"The patch in row {query[0]}, column {query[1]} and that in row {key[0]}, column {key[1]} have a "
            f"cosine of {alike}: 1 is the same direction, 0 none in common."
        )
    return About.of((_WHAT, size, least, pair), _TRY_PATCH)


def of_none(text: str) -> About:
    return About((_WHAT, text), _TRY_WAVES)
