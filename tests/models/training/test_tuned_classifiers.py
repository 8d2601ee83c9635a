"""Classifiers that go on learning: loss and shares are transformers' own, padding changes nothing, the folder opens."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from attention_models import open_checkpoint
from attention_models.forward.model import Model
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.values import ClassHead
from attention_models.training.common import Budget
from attention_models.training.finetuning import FineTuning, TuningSettings, check_trainable, learned_count
from attention_models.training.pairs_file import Source
from attention_models.training.tuned_folders import ADAPTER, save_tuned
from attention_models.training.tuning_rows import Labelled, LabelledRow, labelled_in, rows_of
from tests.models import tiny

_ANY = random.Random(0)
_WORDS = ("Tom", "Anna", "the", "park", "ball", "gave", "went", "to", "a", "dog", "and", "saw")
TEXTS = tuple(" ".join(_ANY.choices(_WORDS, k=_ANY.randrange(2, 12))) for _ in range(40))
LABELS = ("goes on", "another story")
PAIRS = "\n".join(f"{a}\t{b}\t{_ANY.choice(LABELS)}" for a, b in zip(TEXTS, reversed(TEXTS), strict=True))

XLNET = tiny.Kind(  # whose class stands at the last token, so that texts are filled up before their first
    "XLNetForSequenceClassification",
    "XLNetConfig",
    {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, "num_labels": 3},
    tiny.xlnet_like,
)
WITHOUT_PADDING = replace(tiny.KINDS["gpt2_classifier"], settings={**tiny.KINDS["gpt2_classifier"].settings})
WITHOUT_PADDING.settings.pop("pad_token_id")


def of_texts(model: Model) -> Labelled:
    """Texts of many lengths, each of some class."""
    head = model.info.class_head
    assert head is not None
    rng = random.Random(1)
    rows = tuple(LabelledRow((text,), rng.randrange(len(head.labels)), i) for i, text in enumerate(TEXTS, 1))
    return Labelled(rows, "data.tsv")


def theirs(model: Model, rows: Labelled, held: set[tuple[int, ...]]) -> tuple[float, float]:
    """Loss and accuracy as transformers computes them, text by text, of those whose ids are held out."""
    module = transformers.AutoModelForSequenceClassification.from_pretrained(model.info.folder, dtype=torch.float32)
    module.eval()
    losses, right = [], []
    for row in rows.rows:
        encoded = model.tokenizer(*row.texts, return_tensors="pt")
        if tuple(encoded["input_ids"][0].tolist()) in held:
            with torch.no_grad():
                out = module(**encoded, labels=torch.tensor([row.label]))
            losses.append(float(out.loss))
            right.append(int(out.logits.argmax()) == row.label)
    assert len(losses) == len(held)
    return sum(losses) / len(losses), sum(right) / len(right)


# --------------------------------------------------------------------------- loss


@pytest.mark.parametrize(
    "kind",
    [
        "bert_classifier",
        "roberta_classifier",
        "distilbert_classifier",
        "deberta_classifier",
        "modernbert_classifier",
        "gpt2_classifier",
        "llama_classifier",
        XLNET,
        WITHOUT_PADDING,
    ],
    ids=lambda kind: kind if isinstance(kind, str) else kind.architecture,
)
def test_the_loss_is_transformers_own_though_texts_are_filled_up(tmp_path, kind):
    model = open_checkpoint(tiny.save(kind, tmp_path))
    data = of_texts(model)
    rows = rows_of(model, data, 0)
    assert len({len(row.read) for row in rows.held}) > 1
    found = FineTuning(model, rows, TuningSettings()).measure()
    loss, right = theirs(model, data, {row.read for row in rows.held})
    assert found.loss == pytest.approx(loss, abs=1e-5, rel=1e-5)
    assert (found.tokens_right, found.sequences_right, found.rows) == (right, right, len(rows.held))


def test_the_loss_of_pairs_is_transformers_own_and_a_step_has_its_gradient():
    model = open_checkpoint("story-next")
    data = labelled_in(Source(PAIRS), model)
    rows = rows_of(model, data, 0)
    tuning = FineTuning(model, rows, TuningSettings(batch=4, clip=1e9))
    found = tuning.measure()
    loss, right = theirs(model, data, {row.read for row in rows.held})
    assert found.loss == pytest.approx(loss, abs=1e-5)
    assert found.tokens_right == right
    for module in model.module.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    plain = tiny.eager(open_checkpoint("story-next"))
    plain.requires_grad_(True)
    batch = rows.batch(0, 4)
    out = plain(**batch.inputs, labels=batch.labels[:, 0])
    out.loss.backward()
    point = tuning.step()
    assert point.loss == pytest.approx(float(out.loss.detach()), abs=1e-5)
    whole = torch.stack([p.grad.norm() for p in plain.parameters()]).norm()
    assert sum(length**2 for _, length in point.gradients) ** 0.5 == pytest.approx(float(whole), rel=1e-4)
    assert point.accuracy == float((out.logits.detach().argmax(-1) == batch.labels[:, 0]).float().mean())


def test_no_held_out_text_is_learned_from_whatever_its_label():
    model = open_checkpoint("story-next")
    twice = f"{PAIRS}\n" + "\n".join(f"{line.rpartition(chr(9))[0]}\t0" for line in PAIRS.splitlines())
    rows = rows_of(model, labelled_in(Source(twice), model), 0)
    learned, held = {row.read for row in rows.learned}, {row.read for row in rows.held}
    assert (len(rows.learned) + len(rows.held), len(held)) == (80, 4)
    assert not learned & held


# --------------------------------------------------------------------------- what is learned, and kept


@pytest.mark.short("story-next-head", "gpt2_classifier-lora", "roberta_classifier-all")
@pytest.mark.parametrize("tuned", ["all", "head", "lora"])
@pytest.mark.parametrize("kind", ["story-next", "gpt2_classifier", "roberta_classifier"])
def test_it_learns_and_transformers_reopens_it_with_equal_logits(tmp_path, kind, tuned):
    model = open_checkpoint(kind if kind == "story-next" else tiny.save(kind, tmp_path / "base"))
    data = labelled_in(Source(PAIRS), model) if kind == "story-next" else of_texts(model)
    settings = TuningSettings(tuned=tuned, rank=2 if tuned == "lora" else 0, rate=1e-3)
    said, before = learned_count(model, settings), {n: p.detach().clone() for n, p in model.module.named_parameters()}
    tuning = FineTuning(model, rows_of(model, data, 0), settings)
    assert tuning.parameters == said
    tuning.run(Budget(steps=12))
    learned = {n for n, p in model.module.named_parameters() if n in before and not torch.equal(p, before[n])}
    if tuned == "head":
        assert learned
        assert all(name.startswith(("classifier", "score")) for name in learned)
    if tuned == "lora":
        assert not learned
    found = tuning.measure()
    save_tuned(tuning, tmp_path / "tuned", Source(PAIRS, "rows.tsv"))
    theirs_now: Any = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "tuned")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "tuned")
    opened = open_checkpoint(tmp_path / "tuned")
    assert opened.info.class_head == model.info.class_head
    assert FineTuning(opened, rows_of(opened, data, 0), settings).measure().loss == pytest.approx(found.loss, abs=1e-5)
    tuning.module.eval()
    for row in data.rows[:5]:
        encoded = tokenizer(*row.texts, return_tensors="pt")
        with torch.no_grad():
            ours, saved = model.module(**encoded).logits, theirs_now.eval()(**encoded).logits
        torch.testing.assert_close(ours, saved, atol=1e-5, rtol=1e-5)
    if tuned == "lora":
        alone = open_checkpoint(tmp_path / "tuned" / ADAPTER)
        assert alone.info.class_head == model.info.class_head
        with torch.no_grad():
            by_adapter = alone.module(**encoded).logits
        torch.testing.assert_close(by_adapter, saved, atol=1e-4, rtol=1e-4)


def test_more_steps_tell_the_classes_of_new_texts_apart():
    """The first word says the class: after a few steps held-out texts come out right, which they did not before."""
    model = open_checkpoint("story-next")
    rng = random.Random(2)
    lines = [
        f"{first} {' '.join(rng.choices(_WORDS, k=5))} {i}.\t{label}"
        for i in range(40)
        for first, label in (("Yes", "goes on"), ("No", "another story"))
    ]
    tuning = FineTuning(model, rows_of(model, labelled_in(Source("\n".join(lines)), model), 0), TuningSettings())
    before = tuning.measure()
    tuning.run(Budget(steps=30))
    after = tuning.measure()
    assert before.tokens_right < 0.8
    assert after.tokens_right == 1.0
    assert after.loss < before.loss / 2


# --------------------------------------------------------------------------- bad input

_GOOD = "\n".join(f"text {i}\t{i % 2}" for i in range(12))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.tsv", "", "a.tsv is empty"),
        ("a.tsv", f"{_GOOD}\nmore\tgood", "a.tsv, line 13: “good” is no class of story-next. Its classes are “goes on” "
         "(0) and “another story” (1)."),
        ("a.tsv", f"{_GOOD}\nmore\t2", "line 13: “2” is no class"),
        ("a.tsv", f"{_GOOD}\ngoes on\tmore", "line 13: the class comes last in each row, and here “goes on”"),
        ("a.tsv", f"{_GOOD}\nmore", "line 13, has 1 column: each row is a text and its class, or two texts and"),
        ("a.tsv", f"{_GOOD}\nmore\tand\t1", "line 13, has 3 columns: .* But line 1 has 2."),
        ("a.tsv", f"{_GOOD}\na\tb\tc\t1", "line 13, has 4 columns"),
        ("a.tsv", f"{_GOOD}\nmore\t ", "line 13, has an empty column"),
        ("a.tsv", "\n".join(f"text {i}\t1" for i in range(12)), "All rows of a.tsv are of the class “another story”"),
        ("a.tsv", "one\t0\ntwo\t1\none\t1", "a.tsv has 2 different texts, too few"),
        ("a.csv", "label,text\n1,one\n0,two", "line 1: the class comes last in each row, and here “label” comes first"),
        ("a.csv", 'one,0\n"two,1\n', "a.csv, line 2, is no CSV"),
        ("a.csv", "one, and more,0\ntwo,1", "line 2, has 2 columns: .* But line 1 has 3."),
        ("a.csv", "one, and, more,0", "line 1, has 4 columns: .* A column with commas in it stands in quotes."),
        ("a.txt", "A text, without a class.\n" * 20, "line 1: “without a class.” is no class"),
        ("a.txt", "A text without a class.\n" * 20, "line 1, has 1 column: .* with a comma between them"),
        ("a.tsv", f"{_GOOD}\n{'x' * 100_001}\t1", "line 13, has a column of 100,001 characters"),
        ("a.tsv", f"{_GOOD}\n{'word ' * 300}\t1", "a.tsv, line 13, has 302 tokens; story-next takes 256"),
        ("a.tsv", f"{_GOOD}\nmore\t\x1b[31mred", "line 13: “ \\[31mred” is no class"),
    ],
)  # fmt: skip
def test_rows_that_have_no_class_are_said_with_their_line(name, content, words):
    model = open_checkpoint("story-next")
    with pytest.raises(ExplorerError, match=words.replace("(0)", r"\(0\)").replace("(1)", r"\(1\)")):
        rows_of(model, labelled_in(Source(content, name), model), 0)


def test_classes_are_given_by_name_or_number_in_tabs_or_commas_under_a_heading():
    model = open_checkpoint("story-next")
    rows = "\n".join(f'"text, {i}",{label}' for i, label in enumerate(("goes on", "0", "Goes On", "1") * 3))
    found = labelled_in(Source(f"text,label\n\n{rows}", "a.csv"), model)
    assert [row.label for row in found.rows] == [0, 0, 0, 1] * 3
    assert [(row.texts, row.line) for row in found.rows[:2]] == [(("text, 0",), 3), (("text, 1",), 4)]
    pasted = labelled_in(Source("\n".join(f"text {i}, {i % 2}" for i in range(12))), model)
    assert [row.label for row in pasted.rows] == [0, 1] * 6
    assert labelled_in(Source(PAIRS), model).rows[0].texts == (TEXTS[0], TEXTS[-1])


def test_names_that_are_numbers_are_names(monkeypatch):
    """A model of one to five stars: “1” is its class 0."""
    model = open_checkpoint("story-next")
    head = ClassHead("text", "softmax", ("1", "2", "3"))
    monkeypatch.setattr(model, "info", replace(model.info, class_head=head))
    rows = "\n".join(f"text {i}\t{1 + i % 3}" for i in range(12))
    assert [row.label for row in labelled_in(Source(rows), model).rows] == [0, 1, 2] * 4
    with pytest.raises(ExplorerError, match="“0” is no class"):
        labelled_in(Source(f"{rows}\nmore\t0"), model)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("bert_tagger", "labels each token"), ("llama_reward", "gives a number"), ("bert_several", "lets several of its")],
)
def test_models_whose_rows_have_no_one_class_are_refused(tmp_path, kind, words):
    with pytest.raises(ExplorerError, match=words):
        check_trainable(open_checkpoint(tiny.save(kind, tmp_path)))


def test_a_text_classifier_that_reads_no_pairs_says_so_of_three_columns(tmp_path):
    model = open_checkpoint(tiny.save("gpt2_classifier", Path(tmp_path)))
    with pytest.raises(ExplorerError, match=r"line 1, has 3 columns: each row is a text and its class, with a tab"):
        labelled_in(Source("a\tb\t0"), model)
