"""The tour's file: what it may say, and that it is read whole."""

from __future__ import annotations

import pytest

from attention_explorer.panels.registry import TITLES
from attention_explorer.session.tours import decode, figures_in, first_tour
from attention_models.files.catalogue import SHIPPED

STEP = '[[step]]\ntitle = "A"\nsay = "Click."\ndone = "There: {weight}."\npoint = "token"\nact = { query = "to" }\n'
GOOD = f'title = "Tour"\nend = "Over."\n[states.story]\ntext = "Tom"\n{STEP}needs = "story"\n'


def test_a_file_is_read() -> None:
    tour = decode(GOOD.encode())
    (step,) = tour.step
    assert (step.title, step.act.query, tour.needed(step).text) == ("A", "to", "Tom")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("step = 3", "Expected `array`"),
        (GOOD.replace("[[step]]", "[[steps]]"), "unknown field `steps`"),
        (GOOD.replace('"token"', '"moon"'), "Invalid enum value 'moon'"),
        (GOOD.replace("query", "querry"), "unknown field `querry`"),
        (GOOD.replace('needs = "story"', 'needs = "tale"'), "step 1 needs a state “tale”"),
        (GOOD.replace("{weight}", "{mood}"), "step 1 has no figure “mood”"),
        (GOOD.replace("{weight}", "{weight"), "expected '}'"),
        (GOOD.replace("Click.", "x" * 401), "length <= 400"),
        (GOOD.replace("[[step", "[[step]"), "[Ee]xpected"),
    ],
)
def test_a_file_that_is_none_says_where(file: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        decode(file.encode())


def test_figures_are_the_names_in_braces() -> None:
    assert figures_in("a {weight} of {key}, {key_share}") == ("weight", "key", "key_share")
    assert figures_in("none") == ()


def test_the_first_tour_has_nine_steps_in_panels_and_checkpoints_that_there_are() -> None:
    tour = first_tour()
    assert len(tour.step) == 9
    for step in tour.step:
        for goal in (step.act, tour.needed(step)):
            assert goal.panel is None or goal.panel in TITLES
            assert goal.checkpoint is None or goal.checkpoint in SHIPPED
        assert not any(sign.isdecimal() for sign in step.done)  # its figures are the run's
