"""Fine-tuning: the loss and the step are transformers' and torch's own, held-out rows stay out, the folder opens."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import open_checkpoint, run
from attention_models.decoding.choosing import end_ids
from attention_models.files.training_steps import SNAPSHOTS
from attention_models.forward.model import Model
from attention_models.opening.snapshots import fitted, put, read_weights
from attention_models.protocol.errors import ExplorerError
from attention_models.textbook.transformer import IGNORE
from attention_models.training.common import Budget
from attention_models.training.finetuning import FineTuning, TuningSettings
from attention_models.training.pairs_file import Pairs, Source, data_in, read_source
from attention_models.training.tuned_folders import ADAPTER, save_tuned
from attention_models.training.tuning_rows import TuningRows, rows_of
from tests.models import tiny
from tests.models.training_folders import trained

WORDS = ("Tom", "Anna", "the", "park", "ball", "gave", "went", "to", "a", "dog", "and", "saw")
TEXT = " ".join(random.Random(1).choices(WORDS, k=600))
PAIRS: Pairs = tuple((f"The {a} saw the {b}.", f"El {b} y {a}.") for a in WORDS[:6] for b in WORDS[6:])


@pytest.fixture
def gpt() -> Model:
    return open_checkpoint("story-gpt")


def flat(rows: TuningRows) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
    return {row.read + row.labels for row in rows.learned}, {row.read + row.labels for row in rows.held}


# --------------------------------------------------------------------------- loss and step


@pytest.mark.parametrize("data", ["text", "pairs"])
def test_the_loss_of_a_decoder_is_transformers_own(gpt, data):
    rows = rows_of(gpt, TEXT if data == "text" else PAIRS, 0)
    measured = FineTuning(gpt, rows, TuningSettings()).measure().loss
    module = tiny.eager(open_checkpoint("story-gpt"))
    total, count = 0.0, 0
    for row in rows.held:
        # transformers shifts the labels itself, and so takes them a place later
        ids = torch.tensor([[*row.read, row.labels[-1]]])
        labels = torch.tensor([[IGNORE, *row.labels]])
        ids[ids == IGNORE] = 0
        said = int((labels != IGNORE).sum())
        with torch.no_grad():
            total += float(module(input_ids=ids, labels=labels).loss) * said
        count += said
    assert measured == pytest.approx(total / count, abs=1e-5)


def test_the_rows_just_learned_are_measured_as_held_out_ones_are(gpt):
    rows = rows_of(gpt, PAIRS, 0)
    tuning = FineTuning(gpt, rows, TuningSettings())
    assert tuning.dropout == max(gpt.config.resid_pdrop, gpt.config.embd_pdrop, gpt.config.attn_pdrop)
    tuning.step()
    tuning.step()
    batch = rows.batch(1, tuning.settings.batch)
    gpt.module.eval()
    with torch.no_grad():
        scores = torch.log_softmax(gpt.module(**batch.inputs).logits.double(), -1)
    kept = batch.labels != IGNORE
    wanted = -scores[kept].gather(-1, batch.labels[kept][:, None]).mean()
    assert tuning.measure().of_learned == pytest.approx(float(wanted), abs=1e-4)


def test_the_loss_of_a_translator_is_transformers_own():
    model = open_checkpoint("en-es")
    rows = rows_of(model, PAIRS, 0)
    measured = FineTuning(model, rows, TuningSettings()).measure().loss
    module, tokenizer = tiny.eager(open_checkpoint("en-es")), model.tokenizer
    held = {row.read for row in rows.held}
    theirs = []
    for read, write in dict.fromkeys(PAIRS):
        taken = tokenizer(read, text_target=write, return_tensors="pt")
        if tuple(taken["input_ids"][0].tolist()) in held:
            with torch.no_grad():
                theirs.append((float(module(**taken).loss), taken["labels"].shape[1]))
    assert len(theirs) == len(rows.held)
    assert measured == pytest.approx(sum(x * n for x, n in theirs) / sum(n for _, n in theirs), abs=1e-5)


def test_the_loss_of_a_masked_model_is_transformers_own():
    model = open_checkpoint("story-bert")
    rows = rows_of(model, TEXT, 0)
    measured = FineTuning(model, rows, TuningSettings()).measure().loss
    module = tiny.eager(open_checkpoint("story-bert"))
    total, count = 0.0, 0
    for row in rows.held:
        batch = rows.encoded([row])
        said = int((batch.labels != IGNORE).sum())
        with torch.no_grad():
            total += float(module(**batch.inputs, labels=batch.labels).loss) * said
        count += said
    assert measured == pytest.approx(total / count, abs=1e-5)


@pytest.mark.full
def test_a_step_is_adamws_written_out(gpt):
    settings = TuningSettings(rate=1e-3, decay=0.1, clip=0.5, batch=4)
    rows = rows_of(gpt, TEXT, 0)
    tuning = FineTuning(gpt, rows, settings)
    for module in gpt.module.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    plain = tiny.eager(open_checkpoint("story-gpt"))
    plain.eval().requires_grad_(True)
    parameters = dict(plain.named_parameters())
    first = {name: torch.zeros_like(p) for name, p in parameters.items()}
    second = {name: torch.zeros_like(p) for name, p in parameters.items()}
    for step in (1, 2):
        batch = rows.batch(step - 1, 4)
        logits = plain(**batch.inputs).logits
        labels = batch.labels
        chosen = torch.log_softmax(logits.double(), -1)[labels != IGNORE].gather(1, labels[labels != IGNORE][:, None])
        value = -chosen.mean()
        plain.zero_grad()
        value.backward()
        length = torch.stack([p.grad.norm() for p in parameters.values()]).norm()
        with torch.no_grad():
            for name, p in parameters.items():
                gradient = p.grad * min(1.0, 0.5 / (float(length) + 1e-6))
                first[name].mul_(0.9).add_(0.1 * gradient)
                second[name].mul_(0.999).add_(0.001 * gradient**2)
                p.mul_(1 - 1e-3 * 0.1)
                p.sub_(1e-3 * (first[name] / (1 - 0.9**step)) / ((second[name] / (1 - 0.999**step)).sqrt() + 1e-8))
        assert tuning.step().loss == pytest.approx(float(value.detach()), abs=1e-5)
    apart = torch.cat([(p - parameters[name]).detach().abs().flatten() for name, p in gpt.module.named_parameters()])
    assert float(apart.max()) <= 4.1e-3
    assert float((apart > 2e-5).float().mean()) < 1e-3  # where a gradient is rounding alone AdamW steps by its sign


# --------------------------------------------------------------------------- rows


@pytest.mark.parametrize("data", [TEXT, PAIRS, PAIRS * 3])
def test_no_held_out_row_is_learned(gpt, data):
    rows = rows_of(gpt, data, 0)
    learned, held = flat(rows)
    assert held
    assert not learned & held
    seen = {tuple(row) for step in range(50) for row in rows.batch(step, 8).inputs["input_ids"].tolist()}
    assert not {row.read for row in rows.held} & seen


def test_a_masked_model_has_to_fill_in_what_devlin_et_al_choose():
    """15 % of a row's tokens; 8 in 10 of them masked, 1 another token, 1 as it was. Special tokens never."""
    model = open_checkpoint("story-bert")
    rows = rows_of(model, TEXT, 0)
    mask, special = model.tokenizer.mask_token_id, {*model.tokenizer.all_special_ids}
    width = len(rows.learned[0].read) - 2
    kinds = {"masked": 0, "same": 0, "other": 0}
    for step in range(150):
        batch = rows.batch(step, 8)
        for read, labels in zip(batch.inputs["input_ids"].tolist(), batch.labels.tolist(), strict=True):
            chosen = [i for i, label in enumerate(labels) if label != IGNORE]
            assert len(chosen) == max(1, round(0.15 * width))
            assert not {0, len(read) - 1} & {*chosen}
            for i in chosen:
                assert labels[i] not in special
                kinds["masked" if read[i] == mask else "same" if read[i] == labels[i] else "other"] += 1
            assert mask not in [read[i] for i in range(len(read)) if i not in chosen]
    total = sum(kinds.values())
    for kind, part in (("masked", 0.8), ("same", 0.1), ("other", 0.1)):
        error = (part * (1 - part) / total) ** 0.5
        assert abs(kinds[kind] / total - part) < 4 * error, kinds
    again, once_more = rows.encoded(rows.held[:4]), rows.encoded(rows.held[:4])
    assert torch.equal(again.inputs["input_ids"], once_more.inputs["input_ids"])
    assert torch.equal(again.labels, once_more.labels)


def test_a_decoder_has_to_say_the_output_and_its_end(gpt):
    row = rows_of(gpt, PAIRS, 0).learned[0]
    said = [label for label in row.labels if label != IGNORE]
    assert said[-1] in end_ids(gpt)
    read, write = next((a, b) for a, b in PAIRS if gpt.tokenizer.decode(said[:-1]).strip() == b)
    assert gpt.tokenizer.decode(row.read, skip_special_tokens=True) == f"{read} {write}"


@pytest.mark.short("-is empty", "aaaaaaaaaaaaa-holds nothing but *", "a\\tb-1 different row: at least 2")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        (" \n\t\n", "is empty"),
        ("aaaaaaaaaaaaa", "holds nothing but “a”"),
        ("A word.", "too few to learn from some"),
        ("a\tb", "1 different row: at least 2"),
        ("a\tb\na\tc", "All rows have one input"),
    ],
)
def test_what_cannot_be_learned_from_is_said(gpt, tmp_path, content, words):
    path = tmp_path / "data.txt"
    path.write_text(content)
    with pytest.raises(ExplorerError, match=words):
        rows_of(gpt, data_in(read_source(path)), 0)


@pytest.mark.short("a.csv-one,two\\nthree\\n-a\\\\.csv, line 2, *", "a.txt-content9-a\\\\.txt, line 21, has 1 c*")
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.tsv", "one\ttwo\nthree", r"a\.tsv, line 2, has 1 column: .* with a tab between"),
        ("a.tsv", "one\ttwo\tthree", r"line 1, has 3 columns"),
        ("a.tsv", "one\t ", r"line 1, has an empty column"),
        ("a.csv", "one,two\nthree\n", r"a\.csv, line 2, has 1 column: .* with a comma between"),
        ("a.csv", 'one,"two', "is no CSV"),
        ("a.csv", 'one,"two\nlines"\nthree', r"a\.csv, line 3, has 1 column"),
        ("a.csv", 'one,two\nthree,"four\n' + "five,six\n" * 20_000, r"a\.csv, line 2, is no CSV"),
        ("a.csv", "one,two,three", r"A column with commas in it stands in quotes"),
        ("a.csv", ",\n,\n", "is empty|0 different rows"),
        ("a.txt", "one\ttwo\n" * 20 + "three", r"a\.txt, line 21, has 1 column"),
        ("a.tsv", "one\ttwo\n" * 100_002, r"has more than 100,000 rows"),
        ("a.tsv", f"one\t{'x' * 100_001}", r"line 1, has a column of 100,001 characters"),
        ("a.txt", "x" * ((8 << 20) + 1), "is larger than 8 MB"),
    ],
)
def test_a_file_that_is_no_table_is_said(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ExplorerError, match=words):
        rows_of(open_checkpoint("en-es"), data_in(read_source(path)), 0)


def test_tables_are_told_from_texts(tmp_path):
    def read(name: str, content: str) -> str | Pairs:
        (tmp_path / name).write_text(content)
        return data_in(read_source(tmp_path / name))

    assert read("a.txt", "One\ttwo\nthree\tfour\n\n") == (("One", "two"), ("three", "four"))
    assert read("a.txt", "One, two\nthree") == "One, two\nthree"
    assert read("a.csv", 'input,output\n"One, two",three\r\n') == (("One, two", "three"),)
    assert read("a.tsv", "One, two\tthree") == (("One, two", "three"),)


def test_rows_that_a_model_does_not_take_are_said(gpt):
    with pytest.raises(ExplorerError, match=r"The row that begins “word word .* takes 512"):
        rows_of(gpt, (("word " * 600, "b"), ("c", "d"), ("e", "f")), 0)
    with pytest.raises(ExplorerError, match=r"begins “word  \[2Jword"):  # a terminal would obey
        rows_of(gpt, (("word \x1b[2J" + "word " * 600, "b"), ("c", "d"), ("e", "f")), 0)
    with pytest.raises(ExplorerError, match="give it a file of two columns"):
        rows_of(open_checkpoint("en-es"), TEXT, 0)
    with pytest.raises(ExplorerError, match="fills in masks of a text, and writes no output"):
        rows_of(open_checkpoint("story-bert"), PAIRS, 0)


def test_a_text_in_other_signs_is_said(tmp_path):
    trained(tmp_path / "m", shape="decoder")
    with pytest.raises(ExplorerError, match="signs that copy does not know"):
        rows_of(open_checkpoint(tmp_path / "m"), "ДЖЗИЙКЛМ" * 30, 0)


@pytest.mark.parametrize("reference", ["dates-luong", "vit-cifar10"])
def test_models_of_other_kinds_are_refused(gpt, reference):
    rows = rows_of(gpt, TEXT, 0)
    with pytest.raises(ExplorerError, match=r"writes no text and|is a recurrent model"):
        FineTuning(open_checkpoint(reference), rows, TuningSettings())


# --------------------------------------------------------------------------- what is learned, and kept


@pytest.mark.short("story-gpt-lora", "story-bert-all", "textbook-all")
@pytest.mark.parametrize("tuned", ["all", "head", "lora"])
@pytest.mark.parametrize("base", ["story-gpt", "story-bert", "en-es", "textbook"])
def test_it_learns_and_its_folder_opens_as_it_was(tmp_path, base, tuned):
    reference = base
    if base == "textbook":
        trained(tmp_path / "base", shape="decoder")
        reference = str(tmp_path / "base")
    model = open_checkpoint(reference)
    data: str | Pairs = PAIRS if base == "en-es" else "abcdefgh" * 40 + "hgfedcba" * 40 if base == "textbook" else TEXT
    before = {name: p.detach().clone() for name, p in model.module.named_parameters()}
    tuning = FineTuning(model, rows_of(model, data, 0), TuningSettings(tuned=tuned, rank=2 if tuned == "lora" else 0))
    first = tuning.measure().loss
    tuning.run(Budget(steps=4))
    last = tuning.measure().loss
    assert last < first
    if tuned == "head":
        now = dict(model.module.named_parameters())
        head = {name for name, p in now.items() if p is model.module.get_output_embeddings().weight}  # type: ignore[operator]
        assert all(torch.equal(before[name], p) for name, p in now.items() if name in before and name not in head)
        assert len(head) == 1
    folder = tmp_path / "tuned"
    save_tuned(tuning, folder, Source("", "data.txt"))
    opened = open_checkpoint(folder)
    again = FineTuning(opened, rows_of(opened, data, 0), TuningSettings()).measure().loss
    assert again == pytest.approx(last, abs=1e-5)
    assert opened.info.name == f"{open_checkpoint(reference).info.name}, tuned"
    assert f"from {first:.3f} to {last:.3f} nats" in opened.info.summary
    if tuned == "lora":
        alone = open_checkpoint(folder / ADAPTER)
        assert alone.info.put_on is not None
        text = "abcd" if base == "textbook" else "The dog saw"
        target = "El perro" if base == "en-es" else None
        ours, theirs = (run(one, text, target=target).logits for one in (alone, opened))
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    else:
        assert not (folder / ADAPTER).exists()


@pytest.mark.short("story-bert-head")
@pytest.mark.parametrize("tuned", ["all", "head", "lora"])
@pytest.mark.parametrize("base", ["story-gpt", "story-bert", "en-es"])
def test_a_snapshot_opens_as_the_model_was_and_is_gone_on_from_bit_for_bit(tmp_path, base, tuned):
    data: str | Pairs = PAIRS if base == "en-es" else TEXT
    settings = TuningSettings(tuned=tuned, rank=2 if tuned == "lora" else 0, snapshot_every=2, batch=2, held_out=4)

    def begun() -> FineTuning:
        model = open_checkpoint(base)
        return FineTuning(model, rows_of(model, data, 0), settings, tmp_path / SNAPSHOTS, keeps_first=True)

    tuning = begun()
    tuning.snapshot()
    save_tuned(tuning, tmp_path, Source("", "data.txt"))
    losses = {0: tuning.measure().loss}
    tuning.run(Budget(steps=2))
    losses[2] = tuning.measure().loss
    again = begun()
    again.restore(2)
    points = [tuning.step(), tuning.step()]
    assert [(p.loss, p.accuracy) for p in points] == [(p.loss, p.accuracy) for p in (again.step(), again.step())]
    assert all(torch.equal(*both) for both in zip(tuning.learned, again.learned, strict=True))
    assert again.step_number == 4
    for step, value in losses.items():
        opened = open_checkpoint(f"{tmp_path}@{step}")
        assert opened.info.training is not None
        assert (opened.info.training.step, opened.info.training.steps) == (step, (0, 2))
        measured = FineTuning(opened, rows_of(opened, data, 0), TuningSettings(held_out=4)).measure().loss
        assert measured == pytest.approx(value, abs=1e-5)
    with tuning.as_it_was():
        assert tuning.measure().loss == losses[0]
    assert tuning.measure().loss != losses[0]


def test_snapshots_are_stepped_through_without_opening_anew(tmp_path):
    """A translator keeps what is added to its logits beside its parameters; a step changes the parameters alone."""
    model = open_checkpoint("en-es")
    tuning = FineTuning(model, rows_of(model, PAIRS, 0), TuningSettings(batch=2), tmp_path / SNAPSHOTS)
    tuning.snapshot()
    save_tuned(tuning, tmp_path, Source("", "data.txt"))
    opened = open_checkpoint(f"{tmp_path}@0")
    put(fitted(opened.module, read_weights(opened.info), "tuned"))
    ours, theirs = (run(one, "The dog.", target="El perro").logits for one in (opened, open_checkpoint("en-es")))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("story-gpt", {"embedding", "head", "norm", *(f"block {i}" for i in range(8))}),
        ("en-es", {"embedding", "head", *(f"{stack} block {i}" for stack in ("encoder", "decoder") for i in range(4))}),
    ],
)
def test_the_gradient_of_each_part_is_measured(base, expected):
    """Of the tied matrix that of the head is (p - y) h^T / N: the formula, in float64, of the states that it reads."""
    model = open_checkpoint(base)
    data: str | Pairs = PAIRS if base == "en-es" else TEXT
    tuning = FineTuning(model, rows_of(model, data, 0), TuningSettings(batch=2, clip=1e9))
    read: list[tuple[torch.Tensor, torch.Tensor]] = []
    module: Any = model.module
    head = module.get_output_embeddings()
    handle = head.register_forward_hook(lambda _, args, logits: read.append((args[0].detach(), logits.detach())))
    labels = tuning.rows.batch(0, 2).labels
    norms = dict(tuning.step().gradients)
    handle.remove()
    assert set(norms) == expected
    states, logits = (t[labels != IGNORE].double() for t in read[0])
    bias = getattr(model.module, "final_logits_bias", torch.zeros(1)).double()
    wrong = (logits + bias).softmax(-1) - torch.nn.functional.one_hot(labels[labels != IGNORE], logits.shape[-1])
    by_head = wrong.T @ states / len(states)
    assert norms["head"] == pytest.approx(float(by_head.norm()), rel=1e-4)
    named = [(name, p.grad.double()) for name, p in model.module.named_parameters() if p.grad is not None]
    embeddings = [grad for name, grad in named if re.search("wte|wpe|embed|shared", name)]
    assert any(grad.shape == by_head.shape for grad in embeddings)
    apart = [grad - by_head if grad.shape == by_head.shape else grad for grad in embeddings]
    assert norms["embedding"] == pytest.approx(float(torch.cat([g.flatten() for g in apart]).norm()), rel=1e-4)
    rest = torch.cat([grad.flatten() for name, grad in named if not re.search("wte|wpe|embed|shared", name)]).norm()
    others = sum(length**2 for part, length in norms.items() if part not in ("embedding", "head"))
    assert others**0.5 == pytest.approx(float(rest), rel=1e-4)


def test_a_seed_gives_the_same(gpt):
    found = []
    for seed in (0, 0, 1):
        model = open_checkpoint("story-gpt")
        tuning = FineTuning(model, rows_of(model, TEXT, seed), TuningSettings(tuned="lora", rank=2, seed=seed))
        found.append([tuning.step().loss for _ in range(2)])
    assert found[0] == found[1] != found[2]


def test_a_loss_that_diverges_says_what_to_try(gpt):
    tuning = FineTuning(gpt, rows_of(gpt, TEXT, 0), TuningSettings(rate=1e12))
    outcome = tuning.run(Budget(steps=60))
    assert outcome.ended == "diverged"
    assert re.match(r"At step \d+ the loss .* rate=1e\+12: try 0\.0002, the usual one\.", outcome.notice)


def test_what_to_try_is_a_rate_that_people_use(gpt):
    rows = rows_of(gpt, TEXT, 0)
    for rate, words in ((1e30, "rate=1e+30: try 0.0002, the usual one."), (1e-4, "rate=0.0001: try 1e-05.")):
        assert FineTuning(gpt, rows, TuningSettings(rate=rate))._likely() == f"Likely because of {words}"


def test_what_diverges_goes_back_to_its_newest_snapshot(tmp_path):
    model = open_checkpoint("story-gpt")
    settings = TuningSettings(rate=1e12, batch=2, held_out=4)
    tuning = FineTuning(model, rows_of(model, TEXT, 0), settings, tmp_path / SNAPSHOTS)
    tuning.snapshot()
    first = [p.detach().clone() for p in tuning.learned]
    outcome = tuning.run(Budget(steps=60))
    assert outcome.ended == "diverged"
    assert tuning.snapshots is not None
    newest = max(tuning.snapshots.steps)
    assert outcome.notice.endswith(f"The snapshot of step {newest} was taken up again.")
    assert tuning.step_number == newest
    if not newest:
        assert all(torch.equal(*both) for both in zip(first, tuning.learned, strict=True))


def test_without_peft_it_is_said_how_to_get_it(gpt, monkeypatch):
    monkeypatch.setattr("attention_models.training.tuned_parts.lacking", lambda names: list(names))
    with pytest.raises(ExplorerError, match="A LoRA adapter needs peft: python -m pip install peft"):
        FineTuning(gpt, rows_of(gpt, TEXT, 0), TuningSettings(tuned="lora", rank=2))
