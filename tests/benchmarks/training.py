"""What a training costs beside a bare loop of the same model on the same batches, and what a snapshot costs.

    python tests/benchmarks/training.py

The two take turns, a few steps each, so that what else runs on the machine weighs on both. Seconds are those of this
process's threads. The bare loop is torch's own: the model's eager attention, Adam, gradients clipped.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

from attention_models.textbook.pretrained import TextbookModel
from attention_models.textbook.transformer import loss
from attention_models.training.experiment import experiment

TURNS, STEPS = 30, 10


class BareLoop:
    """A few lines that anybody would write."""

    def __init__(self, model: TextbookModel, smoothing: float) -> None:
        self.model, self.smoothing = model, smoothing
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def step(self, inputs: dict[str, torch.Tensor], labels: torch.Tensor) -> None:
        value = loss(self.model(**inputs).logits, labels, self.smoothing)
        value.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def compared(spec: str, switches: dict[str, str]) -> None:
    """Print the ratio for one experiment."""
    planned = experiment(spec, switches)
    with tempfile.TemporaryDirectory() as folder:
        ours = planned.training(Path(folder))
        plain = planned.training().model
        assert isinstance(plain, TextbookModel)
        plain.set_attn_implementation("eager")
        bare = BareLoop(plain, plain.config.label_smoothing)
        spent, steps, number = {"bare": 0.0, "ours": 0.0, "snapshot": 0.0}, 0, 0
        for turn in range(TURNS + 1):  # the first warms up
            batches = [planned.rows.batch(number + i, planned.settings.batch) for i in range(STEPS)]
            number += STEPS
            begun = time.process_time()
            for batch in batches:
                bare.step(batch.inputs, batch.labels)
            middle = time.process_time()
            for _ in range(STEPS):
                ours.step()
            end = time.process_time()
            ours.snapshot()
            if turn:
                spent["bare"] += middle - begun
                spent["ours"] += end - middle
                spent["snapshot"] += time.process_time() - end
                steps += STEPS
    each = {name: 1000 * seconds / steps for name, seconds in spent.items()}
    snapshot = each["snapshot"] * STEPS
    print(
        f"{planned.name} {switches or 'default size'}: bare {each['bare']:.2f} ms a step, ours {each['ours']:.2f} ms, "
        f"throughput {each['bare'] / each['ours']:.3f} of bare; a snapshot {snapshot:.1f} ms, every 20 steps "
        f"{snapshot / (20 * each['ours'] + snapshot):.1%} of the time"
    )


def main() -> None:
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, 1 thread, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    compared("reverse", {})
    compared("reverse", {"shape": "decoder"})
    compared("reverse", {"width": "128", "layers": "4"})


if __name__ == "__main__":
    main()
