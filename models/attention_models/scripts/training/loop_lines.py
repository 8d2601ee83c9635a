"""The lines of a training's loop: the loss, the schedule, Adam, and what is measured on held-out rows."""

from __future__ import annotations

from attention_models.scripts.script_text import Script
from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.transformer_config import TransformerConfig
from attention_models.training.loss_watch import PATIENCE, RISEN
from attention_models.training.settings import Settings
from attention_models.training.training import BETAS, EPSILON, MEASURED_TOGETHER, reads_ahead, written_right

LOSS = """
def loss_of(logits, labels, smoothing=0.0):
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORE, label_smoothing=smoothing)
"""

_RATE = """

def learning_rate(number):  # section 5.3, equation 3, RATE times
    return RATE * WIDTH**-0.5 * min(number**-0.5, number * WARMUP**-1.5)
"""

MEASURE = """

@torch.no_grad()
def measure(model, inputs, labels, most):
    model.eval()  # without dropout
    rows, loss, tokens, right, whole = min(most, len(labels)), 0.0, 0, 0, 0
    for start in range(0, rows, TOGETHER):
        part = slice(start, min(start + TOGETHER, rows))
        some, wanted = {name: t[part] for name, t in inputs.items()}, labels[part]
        logits, counted = model(**some).logits, wanted != IGNORE
        hits = (logits.argmax(-1) == wanted) | ~counted  # (rows, tokens)
        loss += float(loss_of(logits, wanted)) * int(counted.sum())
        tokens, right = tokens + int(counted.sum()), right + int((hits & counted).sum())
        whole += WHOLE
    model.train()
    return loss / tokens, right / tokens, whole / rows
""".replace("TOGETHER", str(MEASURED_TOGETHER))
_BESIDE_TRUE = "int(hits.all(1).sum())"
_WRITTEN = "written_right(model, some, wanted)  # by itself: later tokens are visible"

_WATCH = """
    first, risen = first or loss, risen + 1 if loss > TIMES * (first or loss) else 0
    if not (math.isfinite(loss) and math.isfinite(length)) or risen >= PATIENCE:
        ON_DIVERGED
"""
WATCH = _WATCH.strip("\n").replace("TIMES", f"{RISEN:g}").replace("PATIENCE", str(PATIENCE))
"""What is done with `loss` and `length` before a step is taken; `ON_DIVERGED` is what to do where the loss diverges."""

STEP = """
    inputs, labels = of_step(number)
    torch.manual_seed(seed * 1_000_003 + number)  # dropout
    logits = model(**inputs).logits  # (rows, tokens, vocabulary)
    value = loss_of(logits, labels, SMOOTHING)
    value.backward()
    length = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    loss = float(value.detach())
WATCH
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
""".replace("WATCH", WATCH)
"""A step from its `number` and `rate` on, indented once."""


ON_DIVERGED = 'raise SystemExit(f"At step {number} the loss diverges.")'

DIVERGES = f"{PATIENCE} steps above {RISEN:g} times the first: it diverges"
"""What is said where the first loss and the count of such steps begin."""

BY_STEPS = """
for number in range(1, STEPS + 1):
"""

BY_THE_CLOCK = """
number, spent = 0, 0.0
while (fraction := spent / SECONDS) < 1:  # of the training that is done
    begun, number = time.perf_counter(), number + 1
"""

PRINT = """
    if number in on_screen:
        print(f"loss of step {number}:", loss, "  on screen:", on_screen[number])
    elif number <= 10 or number % 50 == 0:
        right = float((logits.argmax(-1) == labels).sum() / (labels != IGNORE).sum())
        print(f"step {number}: loss {loss:.4f}, {right:.1%} of the batch's labels right")
"""


def functions(script: Script, config: TransformerConfig | RecurrentConfig, settings: Settings) -> None:
    """`loss_of`, `learning_rate` and `measure`."""
    script.uses("import math", "import torch.nn.functional as F")
    ahead = reads_ahead(config)
    if ahead:
        script.uses("from attention_models.textbook.pretrained import TextbookModel", "from torch import Tensor")
        script.line("START_ID = START")
        script.source_of(written_right)
    rates = {"RATE": repr(settings.rate), "WIDTH": str(config.width), "WARMUP": str(settings.warmup)}
    script.line(LOSS.strip("\n"))
    script.line(filled(_RATE, rates).rstrip("\n"))
    script.line(filled(MEASURE, {"WHOLE": _WRITTEN if ahead else _BESIDE_TRUE}).rstrip("\n"))


def adam() -> str:
    return f"torch.optim.Adam(model.parameters(), lr=0.0, betas={BETAS}, eps={EPSILON!r}, fused=True)"


def smoothing_of(config: TransformerConfig | RecurrentConfig) -> float:
    return config.label_smoothing if isinstance(config, TransformerConfig) else 0.0


def filled(lines: str, values: dict[str, str]) -> str:
    """`lines` with each name in capitals as its value."""
    for name, value in values.items():
        lines = lines.replace(name, value)
    return lines
