"""Turns look different by colour and by line, in both themes, to every kind of eye."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from PySide6.QtGui import QImage, QPainter

from attention_explorer.look.theme import DARK, LIGHT, Theme, contrast
from attention_explorer.panels.input.chip_pictures import Chip
from attention_explorer.panels.input.token_strip import TokenStrip
from attention_explorer.panels.input.turn_mark import FIRST, SECOND, draw_turn_line, turn_ground, turn_legend
from attention_models.protocol.chat import ROLES
from tests.explorer.widgets.pictures import rendered

BOTH = pytest.mark.parametrize("look", [LIGHT, DARK], ids=lambda look: look.name)

# what is left of linear RGB to an eye without long, middle or short cones: Machado, Oliveira and Fernandes 2009
EYES = {
    "all cones": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_XYZ = np.array([[0.412456, 0.357576, 0.180438], [0.212673, 0.715152, 0.072175], [0.019334, 0.119192, 0.950304]])


def lab(colour: str, eye: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of a colour as an eye sees it."""
    channels = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    xyz = _XYZ @ np.clip(eye @ linear, 0, 1) / (0.95047, 1, 1.08883)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@BOTH
@pytest.mark.parametrize("eye", EYES)
def test_colours_differ_to_every_eye(look: Theme, eye: str) -> None:
    for first, second in (*combinations((look.system, look.user, look.assistant), 2), (look.first, look.second)):
        assert np.linalg.norm(lab(first, EYES[eye]) - lab(second, EYES[eye])) > 19  # 2.3 is just noticeable


@BOTH
@pytest.mark.parametrize("role", [*ROLES, FIRST, SECOND])
def test_lines_stand_out_and_text_reads_on_the_ground(look: Theme, role: str) -> None:
    colour = getattr(look, role)
    assert contrast(colour, look.surface_alt) >= 3
    alpha = turn_ground(look, role).alphaF()
    mixed = [
        round(alpha * int(colour[at : at + 2], 16) + (1 - alpha) * int(look.surface_alt[at : at + 2], 16))
        for at in (1, 3, 5)
    ]
    assert contrast(look.text, "#" + "".join(f"{channel:02x}" for channel in mixed)) >= 4.5


def gaps(role: str) -> int:
    """How many times the line of a role is interrupted over 60 pixels."""
    image = QImage(60, 9, QImage.Format.Format_RGB32)
    image.fill(0xFFFFFFFF)
    painter = QPainter(image)
    draw_turn_line(painter, LIGHT, role, 0, 60, 4.5)
    painter.end()
    inked = [image.pixelColor(x, 4).lightness() < 180 for x in range(60)]
    return sum(before and not after for before, after in pairwise(inked))


def test_lines_differ_without_colour() -> None:
    assert gaps("user") == 0
    assert 3 <= gaps("assistant") < gaps("system")
    assert gaps(FIRST) == 0
    assert gaps(SECOND) >= 3


@BOTH
def test_two_texts_borrow_no_accent(look: Theme) -> None:
    for colour in (look.first, look.second):
        for accent in (look.query, look.key):
            assert np.linalg.norm(lab(colour, EYES["all cones"]) - lab(accent, EYES["all cones"])) > 19


@BOTH
def test_each_role_has_chips_of_its_own(qtbot, look: Theme) -> None:
    strip = TokenStrip()
    qtbot.addWidget(strip)
    strip.set_theme(look)
    strip.resize(200, 80)
    pictures = []
    for role in ("", *ROLES):
        strip.set_tokens([Chip("word", turn=role)])
        pictures.append(rendered(strip))
    assert all(first != second for first, second in combinations(pictures, 2))


@BOTH
def test_the_legend_shows_every_role(qtbot, look: Theme) -> None:
    legend = turn_legend()
    qtbot.addWidget(legend)
    legend.set_theme(look)
    legend.resize(legend.sizeHint())
    image = legend.grab().toImage()
    seen = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
    assert {look.system, look.user, look.assistant} <= seen
