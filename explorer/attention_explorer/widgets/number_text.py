"""How numbers are written on screen, and where a scale puts its ticks."""

from __future__ import annotations

import math

from attention_models.protocol.information import Unit, from_bits

MINUS = "\N{MINUS SIGN}"


def value_text(value: float) -> str:
    """At least three significant digits, more decimals as the value shrinks: 27.66, 0.268, 0.00312, 4.1e-7."""
    size = abs(value)
    if math.isnan(value):
        return "not computed"
    if math.isinf(value):
        text = "∞"
    elif size == 0:
        text = "0"
    elif size >= 10_000 or size < 1e-4:
        mantissa, exponent = f"{size:.2e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    elif size >= 1:
        text = f"{size:.{max(1, 3 - int(math.log10(size)))}f}"
    else:
        text = f"{size:.{max(3, 2 - math.floor(math.log10(size)))}f}"
    return MINUS + text if value < 0 else text


def percent_text(probability: float) -> str:
    """ "68.4 %", "0.035 %", and "< 0.01 %" for less than a hundredth of a percent that is not 0."""
    percent = 100 * probability
    if percent == 0 or percent >= 0.1:
        return f"{percent:.1f} %"
    if percent >= 0.01:
        return f"{percent:.{1 - math.floor(math.log10(percent))}f} %"
    return "< 0.01 %"


def ago(seconds: float) -> str:
    """ "2 hours ago"; "just now" within the first minute."""
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        count = int(seconds // length)
        if count:
            return f"{counted(count, unit)} ago"
    return "just now"


def entropy_text(bits: float, unit: Unit) -> str:
    """An entropy in the unit that was chosen: "1.903 bits", "1.319 nats"."""
    return f"{value_text(from_bits(bits, unit))} {unit}"


def of_possible(bits: float, most: float, unit: Unit) -> str:
    """An entropy beside the largest that there can be: "2.843 bits of 3.807 possible"."""
    return f"{entropy_text(bits, unit)} of {value_text(from_bits(most, unit))} possible"


def signed(value: float) -> str:
    """A change: +1.43, −0.0120, 0."""
    return f"+{value_text(value)}" if value > 0 else value_text(value + 0.0)


def added(value: float) -> str:
    """ "+ 0.31" or "− 0.31"."""
    return f"{MINUS if value < 0 else '+'} {value_text(abs(value))}"


def counted(number: int, what: str) -> str:
    """ "1 key", "12 keys"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` round values from low to high, a step of 1, 2 or 5 times a power of ten apart."""
    span = high - low
    if not (math.isfinite(span) and span > 0) or most < 2:
        return [low]
    rough = span / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def tick_texts(ticks: list[float]) -> list[str]:
    """The ticks with as many decimals as their step needs, the same number for all."""
    if len(ticks) < 2:
        return [value_text(tick) for tick in ticks]
    step = ticks[1] - ticks[0]
    if max(abs(ticks[0]), abs(ticks[-1])) >= 1e5 or step < 1e-4:
        return [f"{tick:.2g}".replace("-", MINUS) for tick in ticks]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{tick + 0.0:.{decimals}f}".replace("-", MINUS) for tick in ticks]


def power_ticks(low: float, high: float, most: int) -> list[int]:
    """At most `most` powers of ten within the exponents `low` to `high`, evenly apart."""
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    step = max(1, math.ceil((last - first + 1) / max(1, most)))
    return list(range(first, last + 1, step))


def power_text(power: int) -> str:
    """A power of ten: 0.01, 1, 1,000, 10,000, 10⁵, 10⁻³."""
    return f"{10.0**power:,g}" if -2 <= power <= 4 else "10" + str(power).translate(_SUPERSCRIPT)


_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
