"""Fine-tuning in the process that trains: what it tells is the tuning's own, what is written is transformers' own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from attention_models import open_checkpoint
from attention_models.decoding.beam import BEAMS, MOST_WRITTEN
from attention_models.files.catalogue import SHIPPED, TUNABLE
from attention_models.forward.context import Context, Workspace
from attention_models.forward.model import Model
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.request import Cancelled, never
from attention_models.protocol.training_messages import (
    AskedTuning,
    Began,
    Begin,
    Classified,
    Ended,
    Failed,
    Learned,
    Measured,
    OneBatch,
    Pause,
    Said,
    Save,
    Saved,
    Write,
    Wrote,
)
from attention_models.protocol.training_plan import PlanRequest, PlanView
from attention_models.training import plan
from attention_models.training.common import Budget
from attention_models.training.finetuning import FineTuning, TuningSettings, check_trainable, learned_count, settings_of
from attention_models.training.pairs_file import Pairs, data_in, source_of
from attention_models.training.taught import MOST_TOKENS
from attention_models.training.tuning_rows import TuningRows, Windows, rows_of
from tests.models import tiny
from tests.models.training.talk import Talk
from tests.models.training.test_finetuning import PAIRS, TEXT

PROMPT = "Anna gave the"
TABLE = "\n".join("\t".join(row) for row in PAIRS)


def asked(**others: Any) -> AskedTuning:
    return AskedTuning(**{"checkpoint": "story-gpt", "text": TEXT, "seconds": None, "steps": 2, **others})


def generated(model: Model, prompt: str) -> str:
    """What transformers writes with the same weights."""
    module: Any = tiny.eager(model)
    encoded = model.tokenizer(model.info.prefix + prompt, return_tensors="pt")
    with torch.no_grad():
        most = (
            {"max_new_tokens": MOST_WRITTEN, "num_beams": BEAMS} if model.seq2seq else {"max_new_tokens": MOST_TOKENS}
        )
        ids = module.generate(**encoded, **most, do_sample=False)
    new = ids[0] if model.seq2seq else ids[0, encoded["input_ids"].shape[1] :]
    text: str = model.tokenizer.decode(new, skip_special_tokens=True)
    return text


@pytest.mark.short("story-gpt-lora-*")
@pytest.mark.parametrize(
    ("checkpoint", "tuned", "prompt"),
    [("story-gpt", "all", PROMPT), ("story-gpt", "lora", PROMPT), ("en-es", "head", "The dog sees the ball.")],
)
def test_it_is_the_tuning_without_a_process_and_writes_what_transformers_does(tmp_path, checkpoint, tuned, prompt):
    text = TABLE if checkpoint == "en-es" else TEXT
    request = asked(checkpoint=checkpoint, tuned=tuned, rank=2 if tuned == "lora" else 0, text=text, prompt=prompt)
    talk = Talk()
    talk.tell(Begin(request, str(tmp_path)))
    told, first = talk.until(Wrote)
    more, last = talk.until(Wrote)
    rest, ended = talk.until(Ended)
    told = [*told, *more, *rest]
    talk.close()
    assert (ended.how, ended.step) == ("done", 2)
    model = open_checkpoint(checkpoint)
    data: str | Pairs = data_in(source_of(request))
    alone = FineTuning(model, rows_of(model, data, 0), settings_of(request))
    losses = [alone.measure().loss]
    alone.run(Budget(steps=2))
    losses.append(alone.measure().loss)
    points = [point for message in told if isinstance(message, Learned) for point in message.points]
    assert [(p.step, p.loss, p.rate) for p in points] == [(p.step, p.loss, p.rate) for p in alone.points]
    measured = [message.held_out for message in told if isinstance(message, Measured)]
    assert [measured[0].loss, measured[-1].loss] == losses
    assert measured[0].rows == measured[-1].rows == len(alone.rows.held)
    began = next(message for message in told if isinstance(message, Began))
    assert began.parameters == alone.parameters
    assert (first.step, first.before, first.after) == (0, first.before, first.before)
    assert (last.step, last.before, last.prompt) == (2, first.before, prompt)
    assert first.before == generated(open_checkpoint(checkpoint), prompt)
    assert last.after == generated(open_checkpoint(tmp_path), prompt)


def test_a_masked_model_fills_in_its_mask_before_and_after(tmp_path):
    prompt = "Anna gave the [MASK] to Tom."
    talk = Talk()
    talk.tell(Begin(asked(checkpoint="story-bert", prompt=prompt), str(tmp_path)))
    told, _ = talk.until(Ended)
    talk.close()
    wrote = [message for message in told if isinstance(message, Wrote)][-1]
    for text, reference in ((wrote.before, "story-bert"), (wrote.after, str(tmp_path))):
        model = open_checkpoint(reference)
        encoded = model.tokenizer(prompt, return_tensors="pt")
        place = encoded["input_ids"][0].tolist().index(model.tokenizer.mask_token_id)
        with torch.no_grad():
            said = int(tiny.eager(model)(**encoded).logits[0, place].argmax())
        assert text == prompt.replace("[MASK]", model.tokenizer.decode([said]))


def test_another_prompt_is_written_by_both_and_what_a_text_does_not_take_is_said(tmp_path):
    talk = Talk()
    talk.tell(Begin(asked(steps=1_000, prompt=""), str(tmp_path)), OneBatch())
    talk.until(Learned, lambda told: told.phase == "paused")
    talk.tell(Write(PROMPT))
    before, wrote = talk.until(Wrote)
    assert not any(isinstance(message, Wrote) for message in before)
    assert wrote.before == generated(open_checkpoint("story-gpt"), PROMPT)
    talk.tell(Write("word " * 600))
    _, said = talk.until(Said)
    assert "512" in said.sentence
    talk.tell(Save(str(Path(open_checkpoint("story-gpt").info.folder))))
    _, refused = talk.until(Said)
    assert "holds files that no training wrote" in refused.sentence
    talk.tell(Save(str(tmp_path / "mine")))
    talk.until(Saved)
    talk.close()
    assert open_checkpoint(tmp_path / "mine").info.training.steps == (0, 1)  # type: ignore[union-attr]


def test_it_is_taken_up_where_it_was_left(tmp_path):
    first = Talk()
    first.tell(Begin(asked(prompt=PROMPT), str(tmp_path)))
    told, _ = first.until(Ended)
    first.close()
    second = Talk()
    second.tell(Begin(asked(prompt=PROMPT, steps=1), str(tmp_path), taken_up=True), Pause())
    _, began = second.until(Began)
    again, wrote = second.until(Wrote)
    second.tell(OneBatch())
    _, learned = second.until(Learned, lambda message: message.points)
    second.close()
    assert (began.step, [point.step for point in began.points]) == (2, [1, 2])
    held = [message.held_out for message in told if isinstance(message, Measured)]
    assert next(message.held_out for message in again if isinstance(message, Measured)) == held[0]
    assert wrote == [message for message in told if isinstance(message, Wrote)][-1]
    model = open_checkpoint("story-gpt")
    alone = FineTuning(model, rows_of(model, TEXT, 0), TuningSettings())
    alone.run(Budget(steps=3))
    assert learned.points[0].loss == alone.points[-1].loss
    (tmp_path / "snapshots" / "newest.safetensors").write_bytes(b"broken")
    third = Talk()
    third.tell(Begin(asked(), str(tmp_path), taken_up=True))
    _, failed = third.until(Failed)
    third.close()
    assert "cannot be gone on with" in failed.sentence


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"text": ""}, "The text is empty"),
        ({"text": "aaaaaaaa"}, "holds nothing but “a”"),
        ({"text": "A word."}, "too few to learn from some"),
        ({"text": "One line\twith a tab"}, "1 different row"),
        ({"text": "", "file": "/none/x.txt"}, "x.txt could not be read"),
        ({"checkpoint": "vit-cifar10"}, "writes no text and tells no classes"),
        ({"checkpoint": "story-bert", "text": "a b\tc d\ne f\tg h"}, "fills in masks of a text"),
        ({"checkpoint": "en-es"}, "give it a file of two columns"),
        ({"tuned": "lora", "rank": 0}, "The rank of an adapter is from 1 to 256"),
        ({"rate": -1.0}, "Rate is -1.0, and has to be above 0"),
        ({"checkpoint": "python:mine"}, "handed over from Python"),
    ],
)
def test_what_cannot_be_tuned_is_said_before_it_begins_and_when_it_does(tmp_path, others, words):
    request = asked(**others)
    model = None if request.checkpoint.startswith("python:") else open_checkpoint(request.checkpoint)
    assert words in planned(request, model).sentence
    if model is None:
        return
    talk = Talk()
    talk.tell(Begin(request, str(tmp_path / "made")))
    before, failed = talk.until(Failed)
    talk.close()
    assert (before, failed.cause) == ([], "")
    assert words in failed.sentence
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff\xfe\x00a", "is not text in UTF-8"), (b"a\0b" * 50, "holds zero bytes"), (b"x" * ((8 << 20) + 1), "8 MB")],
)
def test_a_file_that_is_no_text_is_said(tmp_path, content, words):
    path = tmp_path / "data.txt"
    path.write_bytes(content)
    assert words in planned(asked(text="", file=str(path)), open_checkpoint("story-gpt")).sentence


def planned(request: AskedTuning, model: Model | None) -> PlanView:
    context = Context(Workspace(model=model), never, lambda *_: None)
    return plan.answer(PlanRequest(asked=request), context)


@pytest.mark.parametrize("tuned", ["all", "head", "lora"])
@pytest.mark.parametrize("checkpoint", ["story-gpt", "en-es"])
def test_what_is_said_to_learn_is_what_learns(checkpoint, tuned):
    model = open_checkpoint(checkpoint)
    data: str | Pairs = PAIRS if checkpoint == "en-es" else TEXT
    request = asked(checkpoint=checkpoint, tuned=tuned, rank=3, text=TABLE if checkpoint == "en-es" else TEXT)
    view = planned(request, model)
    before = {name: p.requires_grad for name, p in model.module.named_parameters()}
    assert learned_count(model, settings_of(request)) == view.parameters
    assert {name: p.requires_grad for name, p in model.module.named_parameters()} == before
    rows = rows_of(model, data, 0)
    assert view.parameters == FineTuning(model, rows, settings_of(request)).parameters
    assert (view.sentence, view.rows, view.held_out) == ("", len(rows.learned), len(rows.held))


def test_of_a_checkpoint_that_is_not_open_the_data_alone_is_looked_at():
    other = open_checkpoint("en-es")
    view = planned(asked(), other)
    assert (view.sentence, view.parameters, view.rows) == ("", 0, 0)
    assert "is empty" in planned(asked(text=" "), other).sentence
    assert "No checkpoint is open" in planned(asked(checkpoint=""), None).sentence


def test_without_peft_the_plan_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("attention_models.training.tuned_parts.lacking", lambda names: list(names))
    sentence = planned(asked(tuned="lora", rank=4), open_checkpoint("story-gpt")).sentence
    assert sentence == "A LoRA adapter needs peft: python -m pip install peft"


def test_those_that_are_offered_are_those_that_can_be_tuned():
    def can_be_tuned(name: str) -> bool:
        try:
            check_trainable(open_checkpoint(name))
        except ExplorerError:
            return False
        return True

    assert tuple(name for name in SHIPPED if can_be_tuned(name)) == TUNABLE


@pytest.mark.parametrize(
    ("checkpoint", "name"),
    [
        ("en-es", "en-es-tuned"),
        ("hf://a/b.c@main", "b.c-tuned"),
        ("/home/me/my model/", "my-model-tuned"),
        (r"C:\x\y@40", "y-tuned"),
        ("..", "model-tuned"),
    ],
)
def test_a_folder_can_be_called_as_what_is_tuned(checkpoint, name):
    assert asked(checkpoint=checkpoint).name == name


def test_windows_of_a_text_are_made_when_they_are_asked_for():
    model = open_checkpoint("story-gpt")
    rows = rows_of(model, TEXT, 0)
    assert isinstance(rows.learned, Windows)
    assert [rows.learned[i] for i in range(2, 5)] == [*rows.learned[2:5]]
    ids = model.tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    width = len(rows.learned[0].read)
    lead = model.tokenizer(model.info.prefix)["input_ids"]
    assert rows.learned[7].read == (*lead, *ids[7 : 7 + width - 1])


@pytest.mark.parametrize("second", ["", "He looked for it under every tree."])
def test_a_classifier_tells_the_probability_of_each_class_before_and_after(tmp_path, second):
    rows = "\n".join(f"Tom went to {i}.\tHe saw {i}.\t{i % 2}" for i in range(30))
    request = asked(checkpoint="story-next", text=rows, prompt="Tom lost his red ball.", second=second)
    talk = Talk()
    talk.tell(Begin(request, str(tmp_path)))
    told, _ = talk.until(Ended)
    talk.tell(Write("Anna slept."))
    _, other = talk.until(Classified)
    talk.tell(Write("Anna slept.", " ".join(["word"] * 300)))
    _, said = talk.until(Said)
    talk.close()
    assert next(message for message in told if isinstance(message, Began)).classifies
    first, *_, last = [message for message in told if isinstance(message, Classified)]
    assert [one.before for one in first.classes] == [one.after for one in first.classes]
    assert (first.step, last.step, last.others, other.second) == (0, 2, 0, "")
    assert last.classes[0].after >= last.classes[1].after
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    for texts, message in (((request.prompt, *([second] if second else [])), last), (("Anna slept.",), other)):
        for folder, when in ((open_checkpoint("story-next").info.folder, "before"), (tmp_path, "after")):
            module = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
            with torch.no_grad():
                logits = module(**tokenizer(*texts, return_tensors="pt")).logits[0].double()
            for one in message.classes:
                share = float(logits.softmax(-1)[module.config.label2id[one.label]])
                assert getattr(one, when) == pytest.approx(share, abs=1e-6)
    assert "256" in said.sentence


def test_what_it_learned_from_is_kept_with_it_and_a_changed_file_changes_nothing(tmp_path):
    """The window takes up a training whose file was edited, or deleted, since."""
    path = tmp_path / "mine.txt"
    path.write_text(TEXT)
    request = asked(text="", file=str(path), steps=1)
    first = Talk()
    first.tell(Begin(request, str(tmp_path / "made")))
    first.until(Ended)
    first.close()
    path.unlink()
    second = Talk()
    second.tell(Begin(request, str(tmp_path / "made"), taken_up=True))
    _, learned = second.until(Learned, lambda message: message.points)
    second.close()
    model = open_checkpoint("story-gpt")
    alone = FineTuning(model, rows_of(model, TEXT, 0), TuningSettings())
    alone.run(Budget(steps=2))
    assert learned.points[0].loss == alone.points[-1].loss


def test_the_plan_of_other_settings_reads_no_file_anew(monkeypatch):
    """A file of megabytes takes seconds: changing the rate or the length does not cost them again."""
    counted: list[int] = []

    def counting(*args: Any, **named: Any) -> TuningRows:
        counted.append(1)
        return rows_of(*args, **named)

    monkeypatch.setattr("attention_models.training.plan.rows_of", counting)
    workspace = Workspace(model=open_checkpoint("story-gpt"))

    def view(**others: Any) -> PlanView:
        return plan.answer(PlanRequest(asked=asked(**others)), Context(workspace, never, lambda *_: None))

    first = view()
    assert view(rate=1e-5, steps=7, tuned="head").rows == first.rows
    assert len(counted) == 1
    assert view(text=TEXT + TEXT[:500]).rows > first.rows
    assert len(counted) == 2


def test_a_plan_that_is_called_off_stops_between_rows():
    context = Context(Workspace(model=open_checkpoint("story-gpt")), lambda: True, lambda *_: None)
    with pytest.raises(Cancelled):
        plan.answer(PlanRequest(asked=asked(text=TABLE)), context)


@pytest.mark.parametrize("checkpoint", ["story-gpt", "story-next"])
def test_a_long_file_is_not_read_by_the_tokenizer_before_it_is_to_be_learned(tmp_path, monkeypatch, checkpoint):
    """All that is asked of the open model would wait for it; what is wrong with the file's form is still said."""
    monkeypatch.setattr("attention_models.training.plan.rows_of", None)
    path = tmp_path / "rows.tsv"
    rows = "\n".join(f"{'word ' * 20}{i}\t{i % 2}" for i in range(10_000))
    path.write_text(rows)
    model = open_checkpoint(checkpoint)
    view = planned(asked(checkpoint=checkpoint, text="", file=str(path)), model)
    assert (view.sentence, view.rows) == ("", 0)
    assert view.parameters == sum(p.numel() for p in model.module.parameters())
    path.write_text(f"{rows}\nmore")
    assert "line 10,001, has 1 column" in planned(asked(checkpoint=checkpoint, text="", file=str(path)), model).sentence
