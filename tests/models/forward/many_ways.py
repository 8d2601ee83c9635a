"""Runs one text in many ways and prints what came out, by the number of threads. A program of its own: see its test."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import cycle, islice

import numpy as np
import torch

from attention_models import open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.protocol.interventions import Intervention, Mask
from attention_models.protocol.request import Cancelled

TEXT = "Tom and Anna went to the park. Anna gave the ball to"
EDITS: dict[str, tuple[Intervention, ...]] = {"as it is": (), "window of 4": (Mask("window", window=4),)}


def bits(model: Model, edits: tuple[Intervention, ...]) -> tuple[str, np.ndarray, np.ndarray]:
    """A hash of every weight and logit of a run, the weights, and the logits."""
    trace = run(model, TEXT, interventions=edits)
    weights = np.stack([trace.weights(site, head) for site in trace.sites for head in range(site.heads)])
    logits = np.ascontiguousarray(trace.logits)
    return hashlib.sha256(weights.tobytes() + logits.tobytes()).hexdigest(), weights, logits


def after_nothing(_model: Model, _number: int) -> None: ...


def after_another_text(model: Model, number: int) -> None:
    run(model, "The cat sat on the mat. " * (1 + number % 7))


def after_a_cancel(model: Model, number: int) -> None:
    polls = iter(range(1 + number % 9))
    try:
        run(model, TEXT, should_stop=lambda: next(polls, None) is None)
    except Cancelled:
        return


def at_another_place_in_memory(_model: Model, number: int) -> None:
    _KEPT.append(torch.full((17 + 301 * number,), torch.nan))  # neither room nor what lies in it is the same


def where_new_memory_is_no_number(_model: Model, _number: int) -> None:
    torch.use_deterministic_algorithms(True)  # fills what is not yet set with NaN


_KEPT: list[torch.Tensor] = []
WAYS: list[Callable[[Model, int], None]] = [
    after_nothing,
    after_another_text,
    after_a_cancel,
    at_another_place_in_memory,
    where_new_memory_is_no_number,
]


def in_another_thread(model: Model, edits: tuple[Intervention, ...]) -> tuple[str, np.ndarray, np.ndarray]:
    found: list[tuple[str, np.ndarray, np.ndarray]] = []
    threads = torch.get_num_threads()

    def work() -> None:
        torch.set_num_threads(threads)
        found.append(bits(model, edits))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def main(times: int) -> None:
    """Print the answers seen, by edit and by number of threads, and how far they are apart."""
    model = open_checkpoint("story-gpt")
    told: dict[str, dict[str, dict[str, int]]] = {name: {} for name in EDITS}
    apart = {"weights": 0.0, "logits": 0.0}
    for name, edits in EDITS.items():
        first: tuple[str, np.ndarray, np.ndarray] | None = None
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            seen = told[name].setdefault(str(threads), {})
            busy = None
            for number, way in enumerate(islice(cycle(WAYS), times)):
                if number == times // 2:
                    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                way(model, number)
                found = in_another_thread(model, edits) if number % 3 == 2 else bits(model, edits)
                torch.use_deterministic_algorithms(False)
                seen[found[0]] = seen.get(found[0], 0) + 1
                first = first or found
                apart["weights"] = max(apart["weights"], float(np.abs(found[1] - first[1]).max()))
                largest = float(np.abs(first[2]).max())
                apart["logits"] = max(apart["logits"], float(np.abs(found[2] - first[2]).max()) / largest)
            if busy is not None:
                busy.kill()
                busy.wait()
    print(json.dumps({"seen": told, "apart": apart}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
