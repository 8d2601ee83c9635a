"""The fine-tuning of a checkpoint as a script: its rows by this program, the loop in lines of its own."""

from __future__ import annotations

from attention_models.forward.context import Context
from attention_models.protocol.errors import InputError
from attention_models.protocol.training_messages import AskedTuning, HeldOutPoint
from attention_models.protocol.training_plan import PlanRequest
from attention_models.protocol.training_scripts import TuningOnScreen
from attention_models.scripts.own_functions import FACE
from attention_models.scripts.script_text import Script
from attention_models.scripts.training.learning import losses_on_screen, print_measured
from attention_models.scripts.training.lines import (
    BY_STEPS,
    BY_THE_CLOCK,
    DIVERGES,
    LOSS,
    MOST_WRITTEN,
    ON_DIVERGED,
    PRINT,
    SAME_BITS,
    WATCH,
    filled,
    same_threads,
    write_text,
)
from attention_models.training import plan
from attention_models.training.finetuning import MEASURED_TOGETHER, TuningSettings, settings_of
from attention_models.training.pairs_file import source_of

_HOW = {"all": "all weights", "head": "the head alone", "lora": "a LoRA adapter by peft"}


def write(request: TuningOnScreen, context: Context) -> Script:
    """Raises InputError where it cannot be trained, or what it learns from is too long to be written out."""
    asked = request.asked
    sentence = plan.answer(PlanRequest(asked=asked), context).sentence
    if sentence:
        raise InputError(sentence)
    settings = settings_of(asked)
    script = Script(
        f"{asked.checkpoint} goes on learning: {_HOW[asked.tuned]}, seed {asked.seed}",
        SAME_BITS,
    )
    same_threads(script)
    script.uses("import math", "import torch.nn.functional as F")
    script.section("the data")
    _data(script, asked)
    script.section("the checkpoint, and its rows")
    _rows(script, asked, settings)
    script.section("what learns")
    _LEARNED[asked.tuned](script, settings)
    script.section("loss and held-out rows")
    script.line("IGNORE = -100", "the label of a place where nothing is to be said")
    script.line(LOSS.rstrip("\n"))
    script.line(filled(_MEASURE, {"TOGETHER": str(MEASURED_TOGETHER)}).rstrip("\n"))
    script.section("the numbers on screen")
    points = [point for point in request.points if asked.steps is None or point.step <= asked.steps]
    losses_on_screen(script, points)
    script.section("the computation")
    held = {found.step: found for found in request.held_out}
    _measured(script, held.get(0), "before it learns")
    _loop(script, asked, settings)
    _measured(script, held.get(asked.steps) if asked.steps is not None else None, "at the end")
    return script


def _data(script: Script, asked: AskedTuning) -> None:
    source = source_of(asked)
    if len(source.text) <= MOST_WRITTEN:
        script.uses("from attention_models.training.pairs_file import Source")
        write_text(script, "text", source.text)
        script.line(f"source = Source(text{f', {source.file!r}' if source.file else ''})")
    elif asked.file:
        script.uses("from pathlib import Path", "from attention_models.training.pairs_file import read_source")
        script.line(f"source = read_source(Path({asked.file!r}))")
    else:
        raise InputError(
            f"The text has {len(source.text):,} characters, too many for a script. Put it into a file, and choose that."
        )


def _rows(script: Script, asked: AskedTuning, settings: TuningSettings) -> None:
    script.uses(FACE, "from attention_models.training.tuning_rows import data_for, rows_of")
    script.line(f"seed = {settings.seed}")
    script.line(f"model = ax.open_checkpoint({asked.checkpoint!r})")
    script.line("module = model.module", "the class of transformers itself")
    script.line("rows = rows_of(model, data_for(model, source), seed)", "windows of a text, or rows of a table")
    script.line(f"held = rows.held[:{settings.held_out}]", "those held out")


# --------------------------------------------------------------------------- what learns


def _all(script: Script, settings: TuningSettings) -> None:
    script.line(
        'with torch.device("meta"):  # but for what its class keeps as it is: the sinusoids of Marian\n'
        "    usual = type(module)(module.config)\n"
        "fixed = {name for name, p in usual.named_parameters() if not p.requires_grad}\n"
        "learned = [p for name, p in module.named_parameters() if name not in fixed]\n"
        "for parameter in learned:\n"
        "    parameter.requires_grad_(True)"
    )


def _head(script: Script, settings: TuningSettings) -> None:
    script.uses("from attention_models.training.tuned_parts import own_head")
    script.line("learned = own_head(model)", "parted from the embedding where the two are one matrix")
    script.line("for parameter in learned:\n    parameter.requires_grad_(True)")


def _lora(script: Script, settings: TuningSettings) -> None:
    script.uses(
        "from attention_models.training.tuned_parts import linear", "from peft import LoraConfig, get_peft_model"
    )
    script.uses("from transformers.pytorch_utils import Conv1D")
    script.line("names = linear(model)", "of all linear layers but those of the head")
    script.line(
        "adapter = LoraConfig(\n"
        f"    r={settings.rank},\n"
        f"    lora_alpha={2 * settings.rank},\n"
        "    target_modules=names,\n"
        "    fan_in_fan_out=any(isinstance(module.get_submodule(name), Conv1D) for name in names),\n"
        ")\n"
        "torch.manual_seed(seed)  # of the adapter's first weights\n"
        "module = get_peft_model(module, adapter)\n"
        "learned = [p for p in module.parameters() if p.requires_grad]"
    )


_LEARNED = {"all": _all, "head": _head, "lora": _lora}

# --------------------------------------------------------------------------- the loop

_MEASURE = """

def run(batch):
    inputs = {name: t.to(model.device) for name, t in batch.inputs.items()}
    if model.info.class_head is None:
        logits = module(**inputs).logits  # (rows, tokens, vocabulary)
    elif model.config.get_text_config().pad_token_id is not None:
        logits = module(**inputs).logits[:, None]  # (rows, 1, classes): a text has one label
    else:  # without a token for padding a decoder finds the last token of a single row alone
        lengths = inputs["attention_mask"].sum(1).tolist()
        each = [{name: t[i : i + 1, :length] for name, t in inputs.items()} for i, length in enumerate(lengths)]
        logits = torch.stack([module(**row).logits for row in each])
    return logits, batch.labels.to(model.device)


@torch.no_grad()
def measure(held):
    module.eval()  # without dropout
    loss, tokens, right, whole = 0.0, 0, 0, 0
    for start in range(0, len(held), TOGETHER):
        logits, labels = run(rows.encoded(held[start : start + TOGETHER]))
        counted = labels != IGNORE
        hits = (logits.argmax(-1) == labels) | ~counted  # (rows, tokens)
        loss += float(loss_of(logits, labels)) * int(counted.sum())
        tokens, right = tokens + int(counted.sum()), right + int((hits & counted).sum())
        whole += int(hits.all(1).sum())
    return loss / tokens, right / tokens, whole / len(held)
"""

_STEP = """
    module.train()
    torch.manual_seed(seed * 1_000_003 + number)  # dropout
    logits, labels = run(rows.batch(number - 1, BATCH))
    value = loss_of(logits, labels)
    optimizer.zero_grad(set_to_none=True)
    value.backward()
    length = torch.nn.utils.clip_grad_norm_(learned, CLIP)
    loss = float(value.detach())
WATCH
    optimizer.step()
"""


def _measured(script: Script, shown: HeldOutPoint | None, when: str) -> None:
    script.line("loss, right, rows_right = measure(held)")
    print_measured(script, shown, when)


def _loop(script: Script, asked: AskedTuning, settings: TuningSettings) -> None:
    head, spent = BY_STEPS, ""
    if asked.steps is None:
        script.uses("import time")
        head, spent = BY_THE_CLOCK, "    spent += time.perf_counter() - begun\n"
    script.line(
        f"optimizer = torch.optim.AdamW(learned, lr={settings.learning_rate!r}, weight_decay={settings.decay!r})"
    )
    script.line("first, risen = 0.0, 0", DIVERGES)
    values = {
        "STEPS": str(asked.steps),
        "SECONDS": repr(asked.seconds),
        "BATCH": str(settings.batch),
        "CLIP": repr(settings.clip),
        "WATCH": WATCH,
        "ON_DIVERGED": ON_DIVERGED,
    }
    script.line(filled(head.rstrip("\n") + _STEP + spent + PRINT.lstrip("\n"), values).strip("\n"))
