"""Tasks whose data is made here, from a seed: dates written as people write them, and as a computer wants them."""

from __future__ import annotations

import random
from datetime import date, timedelta

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FORMS = (
    "{d} {month} {y}",
    "{d} {mon} {y}",
    "{month} {d}, {y}",
    "{mon} {d} {y}",
    "{weekday}, {d} {month} {y}",
    "{weekday} {month} {th} {y}",
    "the {th} of {month}, {y}",
    "{d:02d}.{m:02d}.{y}",
    "{d}/{m}/{y}",
    "{d}-{mon}-{yy:02d}",
    "{mon} {th}, {y}",
)
_FIRST, _LAST = date(1950, 1, 1), date(2049, 12, 31)


def date_pair(rng: random.Random) -> tuple[str, str]:
    """("Thursday, 5 March 1998", "1998-03-05")."""
    day = _FIRST + timedelta(days=rng.randrange((_LAST - _FIRST).days + 1))
    month = _MONTHS[day.month - 1]
    text = rng.choice(_FORMS).format(
        d=day.day,
        m=day.month,
        y=day.year,
        yy=day.year % 100,
        month=month,
        mon=month[:3],
        weekday=_WEEKDAYS[day.weekday()],
        th=_ordinal(day.day),
    )
    return (text.lower() if rng.random() < 0.3 else text), day.isoformat()


def date_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    """`count` different pairs; the same for the same seed."""
    rng = random.Random(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        text, day = date_pair(rng)
        pairs.setdefault(text, day)
    return list(pairs.items())


def _ordinal(day: int) -> str:
    ending = "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"
