"""Dates as people write them: each is the date that it is said to be."""

from __future__ import annotations

import random
import re
from datetime import date

import pytest

from models.textbook import tasks
from models.textbook.tasks import date_pair, date_pairs

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def read(text: str) -> date:
    """The date that `text` means, read without the forms that wrote it."""
    text = text.lower()
    month_names = [word for word in re.findall("[a-z]+", text) if word[:3] in MONTHS and word not in WEEKDAYS]
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if month_names:
        numbers.insert(1, MONTHS.index(month_names[0][:3]) + 1)
    day, month, year = numbers
    if year < 100:
        year += 1900 if year >= 50 else 2000
    return date(year, month, day)


def test_every_text_means_its_date():
    for text, day in date_pairs(3_000, seed=5):
        found = read(text)
        assert found.isoformat() == day, text
        assert date(1950, 1, 1) <= found <= date(2049, 12, 31)
        said = [weekday for weekday in WEEKDAYS if weekday in text.lower()]
        assert said in ([], [WEEKDAYS[found.weekday()]]), text


def test_every_form_comes_about_as_often(monkeypatch):
    counts = dict.fromkeys(tasks._FORMS, 0)

    class Counting(random.Random):
        def choice(self, forms):
            chosen = super().choice(forms)
            counts[chosen] += 1
            return chosen

    rng = Counting(1)
    for _ in range(2_200):
        date_pair(rng)
    assert min(counts.values()) > 150  # 200 each, less three standard deviations and a bit


def test_a_seed_gives_the_same_pairs_and_no_text_twice():
    pairs = date_pairs(500, seed=1)
    assert pairs == date_pairs(500, seed=1)
    assert pairs != date_pairs(500, seed=2)
    assert len({text for text, _ in pairs}) == 500
    assert 0.2 < sum(text == text.lower() and any(c.isalpha() for c in text) for text, _ in pairs) / 500 < 0.4


@pytest.mark.parametrize(("ending", "days"), [("st", (1, 21, 31)), ("nd", (2, 22)), ("rd", (3, 23)), ("th", None)])
def test_ordinals(ending, days):
    for day in days or (4, 10, 11, 12, 13, 14, 20, 24, 30):
        assert tasks._ordinal(day) == f"{day}{ending}"
