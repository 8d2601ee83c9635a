"""How a model tells positions apart, as a script: a row added, a rotation, a slope or a bucket."""

from __future__ import annotations

import numpy as np
import torch

from attention_models.files.devices import weight_of
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.position_schemes import DistanceBias, scheme_of
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import InputError
from attention_models.protocol.positions import PositionsRequest, PositionsView
from attention_models.scripts.heads import Head
from attention_models.scripts.script_text import Script
from attention_models.textbook import waves
from attention_models.views.positions import positions_view


def write(request: PositionsRequest, context: Context) -> Script:
    run = context.run(request.run)
    return positions_script(request, run.model, run.trace)


@torch.no_grad()
def positions_script(request: PositionsRequest, model: Model, trace: Trace) -> Script:
    """Raises InputError where the model adds and turns nothing at this site."""
    view, head = positions_view(request, model, trace), Head.of(model, trace, request.site, request.head)
    script = Script(f"{head.name}: {view.scheme.title}")
    if view.rotation is not None:
        _rotation(script, head, view)
    elif view.scheme.bias is not None and view.scheme.distances is not None:
        _bias(script, head, view, request.key - request.query)
    elif view.total is not None:
        _sum(script, head, view)
    else:
        raise InputError(view.rotation_note or view.sum_note or view.scheme.words)
    return script


def _sum(script: Script, head: Head, view: PositionsView) -> None:
    """A row of a table, learned or of waves, is added."""
    assert view.embedding is not None
    assert view.position is not None
    assert view.total is not None
    width, place = len(view.embedding), view.request.query
    waved = _waves(view.position, place) if view.scheme.kind == "sinusoidal" else None
    if waved is not None:
        script.uses("import math", "import numpy as np", "from typing import Literal")
        script.line("Floats, Layout = np.ndarray, str")
        script.source_of(waves.sinusoidal, waves.wavelengths)
    script.section("the numbers on screen")
    script.tensor("embedding", view.embedding, f"({width},) of {head.query_word(place)}")
    if waved is None:
        how = (
            "its waves, where they enter the stream" if view.scheme.kind == "sinusoidal" else "the table's row, learned"
        )
        script.tensor("position", view.position, f"({width},) of position {place}: {how}")
    script.section("the computation")
    if waved is not None:
        row, layout = waved
        script.remark("Vaswani et al. 2017, section 3.5: sin and cos of pos / 10000^(2i / d)")
        script.line(
            f"position = torch.from_numpy(sinusoidal({row + 1}, {width}, layout={layout!r})[{row}]).float()",
            f"({width},)",
        )
    script.line("total = embedding + position", f"({width},) what the first layer is given of it")
    for i in (0, 1, width - 1):
        script.show(f"position[{i}]", f"position[{i}]", float(view.position[i]))
    script.show("total[0]", "total[0]", float(view.total[0]))
    script.show("length of the sum", "total.norm()", float(np.linalg.norm(view.total.astype(np.float64))))


def _waves(position: np.ndarray, place: int) -> tuple[int, waves.Layout] | None:
    """Which row of the formula's table this is, and in which layout; None where it is none near `place`."""
    layouts: tuple[waves.Layout, ...] = ("interleaved", "halves")
    for row in (place, place + 1, place + 2):
        for layout in layouts:
            if np.abs(waves.sinusoidal(row + 1, len(position), layout=layout)[row] - position).max() < 1e-6:
                return row, layout
    return None


def _rotation(script: Script, head: Head, view: PositionsView) -> None:
    """Pairs of dimensions as complex numbers, turned back to what they were, and turned."""
    rotation, frequencies = view.rotation, view.scheme.frequencies
    assert rotation is not None
    assert frequencies is not None
    n, gain = len(frequencies), view.scheme.gain
    q = rotation.query_hands * np.exp(-1j * rotation.query_angles) / gain
    k = rotation.key_hands * np.exp(-1j * rotation.key_angles) / gain
    places = [_place(rotation.query_angles, frequencies), _place(rotation.key_angles, frequencies)]
    script.section("the numbers on screen")
    script.remark("each pair of dimensions is a complex number; in float64, as the panel computes it")
    for name, pairs, of in (("q", q, "query"), ("k", k, "key")):
        word = head.query_word(view.request.query) if of == "query" else head.key_word(view.request.key)
        script.tensor(f"{name}_re", pairs.real, f"({n},) {of} of {word}, before it is turned")
        script.tensor(f"{name}_im", pairs.imag, f"({n},)")
    exact = rotation.query_angles / places[0] if places[0] else frequencies.astype(np.float64)
    exact = rotation.key_angles / places[1] if places[1] and not places[0] else exact
    script.tensor("frequency", exact, f"({n},) radians a position that each pair is turned by")
    script.line(f"at_query, at_key = {places[0]}, {places[1]}", "positions")
    if rotation.untouched:
        script.number("untouched", rotation.untouched, "what dimensions that are not turned add to q . k")
    script.section("the computation")
    script.line("q, k = torch.complex(q_re, q_im), torch.complex(k_re, k_im)", f"({n},) each")
    grown = "" if gain == 1 else f"{gain!r} * "
    script.line(f"q = {grown}q * torch.exp(1j * at_query * frequency)", f"({n},) turned: Su et al. 2021")
    script.line(f"k = {grown}k * torch.exp(1j * at_key * frequency)", f"({n},)")
    script.line("product = (q * k.conj()).real.sum()" + (" + untouched" if rotation.untouched else ""))
    script.show("q . k", "product", rotation.product)
    script.remark("the same from the distance alone:")
    script.line("q0, k0 = torch.complex(q_re, q_im), torch.complex(k_re, k_im)", f"({n},) each")
    both = "" if gain == 1 else f"{gain**2!r} * "
    script.line(
        f"product = ({both}q0 * k0.conj() * torch.exp(1j * (at_query - at_key) * frequency)).real.sum()"
        + (" + untouched" if rotation.untouched else "")
    )
    script.show("q . k by distance", "product", rotation.product)


def _place(angles: np.ndarray, frequencies: np.ndarray) -> int:
    fastest = int(np.argmax(frequencies))
    return round(float(angles[fastest]) / float(frequencies[fastest]))


def _bias(script: Script, head: Head, view: PositionsView, distance: int) -> None:
    """A number that distance adds to the score: ALiBi's slope, or T5's bucket."""
    scheme = view.scheme
    assert scheme.bias is not None
    assert scheme.distances is not None
    at = np.flatnonzero(scheme.distances == distance)
    if not len(at):
        raise InputError("No bias is listed for this distance. Choose a key that is nearer.")
    shown = float(scheme.bias[head.head, at[0]])
    words = f"{head.key_word(view.request.key)} seen from {head.query_word(view.request.query)}"
    if scheme.kind == "t5":
        _bucket(script, head, distance, shown, words)
        return
    script.uses("import math", "import numpy as np")
    slopes = [name for name in ("alibi_slopes", "mpt_slopes") if _is_slope(scheme, head, getattr(waves, name))]
    if slopes:
        script.line("Floats = np.ndarray")
        script.source_of(getattr(waves, slopes[0]))
    script.section("the computation")
    if slopes:
        script.line(
            f"slope = {slopes[0]}({head.site.heads})[{head.head}]", "of this head: Press et al. 2022, section 3"
        )
    else:
        nearest = next(i for i, d in enumerate(scheme.distances) if abs(int(d)) == 1)
        script.number("slope", abs(float(scheme.bias[head.head, nearest])), "of this head")
    script.line(f"distance = {distance}", words)
    script.line("bias = -slope * abs(distance)", "added to the score")
    script.show("bias", "bias", shown)


def _is_slope(scheme: object, head: Head, slopes: object) -> bool:
    bias, distances = scheme.bias, scheme.distances  # type: ignore[attr-defined]
    made = -slopes(head.site.heads)[head.head] * np.abs(distances)  # type: ignore[operator]
    return bool(np.abs(made - bias[head.head])[distances <= 0].max() < 1e-5)


def _bucket(script: Script, head: Head, distance: int, shown: float, words: str) -> None:
    scheme = scheme_of(head.model)
    module = scheme.attention_at(head.site) if isinstance(scheme, DistanceBias) else None
    if module is None:
        raise InputError("This model's table of distances was not found.")
    learned = weight_of(module.relative_attention_bias)[:, head.head].float()  # (buckets,)
    buckets, farthest = int(module.relative_attention_num_buckets), int(module.relative_attention_max_distance)
    script.uses("import math", "import numpy as np", "from numpy.typing import NDArray")
    script.source_of(waves.t5_buckets)
    script.section("the numbers on screen")
    script.tensor("learned", learned, f"({buckets},) this head's number for each bucket")
    script.line(f"distance = {distance}", words)
    script.section("the computation")
    both = not bool(getattr(module, "is_decoder", False))
    script.line(
        f"bucket = int(t5_buckets(np.array([{distance}]), {both}, {buckets}, {farthest})[0])", "Raffel et al. 2020"
    )
    script.line("bias = learned[bucket]", "added to the score")
    script.show("bias", "bias", shown)
