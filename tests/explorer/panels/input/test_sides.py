"""Whose tokens each strip shows, in a text of one kind of tokens and in a translation."""

from __future__ import annotations

import pytest

from attention_explorer.panels.input.panel import sides
from tests.explorer.session import answers


@pytest.mark.parametrize(
    ("stack", "of_source", "of_target"),
    [
        ("encoder", (True, True), (False, False)),
        ("decoder", (False, False), (True, True)),
        ("cross", (False, True), (True, False)),  # the target's tokens attend to the source's
    ],
)
def test_a_translation_has_two_strips(stack, of_source, of_target):
    ran = answers.translation()
    site = next(site for site in ran.sites if site.stack == stack)
    found = [sides(ran, site, is_target) for is_target in (False, True)]
    assert [(side.queries, side.keys) for side in found] == [of_source, of_target]


def test_a_text_has_one():
    ran = answers.ran()
    assert sides(ran, ran.sites[0], is_target=False).both
    assert not sides(ran, ran.sites[0], is_target=True).any


def test_without_a_site_only_what_reads_can_be_selected():
    assert sides(answers.ran(), None, is_target=False).both
    found = [sides(answers.translation(), None, is_target) for is_target in (False, True)]
    assert [(side.queries, side.keys) for side in found] == [(False, False), (True, False)]


def test_before_the_first_run_nothing_can():
    assert not sides(None, None, is_target=False).any
