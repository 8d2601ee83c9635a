"""Which panels there are: those that come along and those that installed packages add, found in the same way.

A package adds one by an entry point of the group `attention_explorer.panels` that names a subclass of `Panel`.
One that cannot be loaded is left out, and a sentence says which and why: no panel keeps the window from opening.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Container, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from attention_explorer.panels.base import API_VERSION, Panel, raised
from attention_explorer.session.hover import Hover
from attention_explorer.session.session import Session

GROUP = "attention_explorer.panels"

_BUILT_IN = (  # name, title, class
    ("flow", "Flow", "flow.panel:FlowPanel"),
    ("heads", "All heads", "all_heads.panel:HeadAtlasPanel"),
    ("map", "Head", "head.panel:HeadMapPanel"),
    ("next", "Next", "next_token.panel:NextTokenPanel"),
    ("decoding", "Decode", "decoding.panel:DecodingPanel"),
    ("alignment", "Align", "alignment.panel:AlignmentPanel"),
    ("cell", "Cell", "cell.panel:CellPanel"),
    ("masks", "Masks", "masks.panel:MaskScalePanel"),
    ("effects", "Effects", "effects.panel:EffectsPanel"),
    ("compare", "Compare", "compare.panel:ComparePanel"),
    ("corpus", "Corpus", "corpus.panel:CorpusPanel"),
    ("positions", "Positions", "positions.panel:PositionsPanel"),
    ("lookup", "Lookup", "lookup.panel:LookupPanel"),
    ("variance", "Variance", "variance.panel:VariancePanel"),
    ("recurrent", "Hidden", "hidden.panel:RecurrentPanel"),
    ("playground", "Playground", "playground.panel:PlaygroundPanel"),
    ("quality", "Length", "length.panel:QualityPanel"),
)

BUILT_IN = tuple(EntryPoint(name, f"attention_explorer.panels.{value}", GROUP) for name, _, value in _BUILT_IN)
"""In the order of their tabs. Made here and not by installing, so that a source tree has them too."""

TITLES = {name: title for name, title, _ in _BUILT_IN}
"""What the tabs of `BUILT_IN` say: a tab is there before its panel is imported."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Opened:
    """The panels of one window, in the order of their tabs, and a sentence for each that was left out."""

    panels: tuple[Panel, ...]
    left_out: tuple[str, ...]


def installed() -> tuple[EntryPoint, ...]:
    """The panels that installed packages add, by name."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)))


def open_panels(
    session: Session, hover: Hover, points: Iterable[EntryPoint] | None = None, taken: Container[str] = ()
) -> Opened:
    """Make a panel of each of `points`: by default those that come along, then those of installed packages.

    `taken` are the names of panels that there are already.
    """
    panels: dict[str, Panel] = {}
    left_out = []
    for point in (*BUILT_IN, *installed()) if points is None else points:
        try:
            kind = load(point)
            if kind.name in panels or kind.name in taken:
                raise LookupError(f"another panel is called “{kind.name}” already")
            panels[kind.name] = kind(session, hover)
        except BaseException as error:  # also KeyboardInterrupt, which nobody at the keyboard has caused here
            # as text: the frames of a traceback would keep a half made panel alive
            log.error("the panel %s is left out\n%s", point.value, traceback.format_exc())
            left_out.append(f"The panel “{point.name}”{_package(point)} is left out: {_reason(error)}.")
    return Opened(tuple(panels.values()), tuple(left_out))


def load(point: EntryPoint) -> type[Panel]:
    """The class that an entry point names.

    Raises:
        Exception: whatever its module raises when it is imported.
        LookupError: it is no panel, one without a name or title, or one for another version of `Panel`; the message
            says which.
    """
    kind = point.load()
    if not (isinstance(kind, type) and issubclass(kind, Panel)):
        raise LookupError(f"{point.value} is no subclass of attention_explorer.panels.base.Panel")
    version = getattr(kind, "api_version", None)
    if version != API_VERSION:
        asked = "says no api_version" if version is None else f"asks for version {version} of the panel interface"
        raise LookupError(f"it {asked}, and this program has version {API_VERSION}")
    for what in ("name", "title"):
        value = getattr(kind, what, None)
        if not (isinstance(value, str) and value):
            said = "missing" if value is None else "empty" if value == "" else f"{value!r:.40}"
            raise LookupError(f"its {what} is {said}, and has to be a text")
    return kind


def switched_off(panel: Panel, reason: str) -> str:
    """The sentence about a panel that raised after it was made."""
    return f"The panel “{panel.title}” is switched off: it raised {reason}. The log has more."


def _package(point: EntryPoint) -> str:
    """ " of attention-entropy 1.0"; "" for those that come along."""
    return f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""


def _reason(error: BaseException) -> str:
    return str(error.args[0]) if type(error) is LookupError else f"it raised {raised(error)}"
