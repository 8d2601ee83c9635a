"""How a loss is written. Pure."""

from __future__ import annotations

from attention_models.protocol.information import Unit, from_nats


def loss_text(nats: float, unit: Unit) -> str:
    """ "3.021 nats", "4.358 bits"."""
    return f"{from_nats(nats, unit):.3f} {unit}"
