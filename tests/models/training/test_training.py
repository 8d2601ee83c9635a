"""The recipes: each trains a tiny model for two steps on made-up data, and its checkpoint opens like a shipped one."""

from __future__ import annotations

import json
import lzma
import math
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
)

from attention_models.length.held_out import split
from attention_models.training import en_es, prepare_text, prepare_translation, story_bert, story_gpt, vit
from attention_models.training import vit as pictures
from attention_models.training.common import FLOOR, IGNORE, WARM_UP, Batch, Budget, evaluate, learning_rate

TINY = ["--steps", "2", "--layers", "1", "--heads", "2", "--width", "8", "--batch", "2"]
SHIPPED = Path(__file__).resolve().parents[3] / "models" / "attention_models" / "weights"


def made_up_texts(rng: random.Random, count: int) -> list[str]:
    words = ["anna", "tom", "ball", "park", "gave", "the", "to", "went", "and", "dog", "small", "red"]
    return [" ".join(rng.choices(words, k=rng.randint(8, 30))).capitalize() + "." for _ in range(count)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared folder for story-gpt and story-bert."""
    folder = tmp_path_factory.mktemp("texts")
    rng = random.Random(0)
    parts = {name: [made_up_texts(rng, 40), made_up_texts(rng, 8)] for name in prepare_text.PARTS}
    (folder / "text.json.xz").write_bytes(lzma.compress(json.dumps(parts).encode()))
    prepare_text.main(["--text", str(folder / "text.json.xz"), "--out", str(folder), "--vocabulary", "400"])
    return folder


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared folder for en-es."""
    folder = tmp_path_factory.mktemp("pairs")
    lines = [f"The house has {n} doors.\tLa casa tiene {n} puertas.\tsomeone" for n in range(40)]
    lines.append("Too long. " * 20 + "\tDemasiado largo.")
    (folder / "pairs.tsv.xz").write_bytes(lzma.compress("\n".join(lines).encode()))
    prepare_translation.main(["--pairs", str(folder / "pairs.tsv.xz"), "--out", str(folder), "--vocabulary", "120"])
    return folder


def reported(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    """The last report a training printed."""
    report: dict[str, float] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return report


def assert_half_precision(folder: Path) -> None:
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float16"


def test_story_gpt(texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story_gpt.main(["--data", str(texts), "--out", str(tmp_path), "--length", "16", *TINY])
    report = reported(capsys)
    assert report["step"] == 2
    assert report["seen"] == 2 * 2 * 16
    assert_half_precision(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    # untrained, it is about as unsure as a guess among all pieces
    assert report["cross_entropy"] == pytest.approx(math.log(len(tokenizer)), rel=0.1)
    assert tokenizer.bos_token_id == 0
    text = "Anna went to the café."
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    assert tokenizer.decode(ids[0]) == text
    assert model(ids).logits.shape == (1, ids.shape[1], len(tokenizer))


def test_story_bert(texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story_bert.main(["--data", str(texts), "--out", str(tmp_path), *TINY])
    assert reported(capsys)["seen"] == 2 * 2 * prepare_text.ROW
    assert_half_precision(tmp_path)
    model = AutoModelForMaskedLM.from_pretrained(tmp_path, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    inputs = tokenizer("Anna went to the [MASK].", return_tensors="pt")
    assert inputs["input_ids"][0, [0, -1]].tolist() == [tokenizer.cls_token_id, tokenizer.sep_token_id]
    assert tokenizer.mask_token_id in inputs["input_ids"]
    assert model(**inputs).logits.shape[-1] == len(tokenizer)


def test_en_es(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    en_es.main(["--data", str(pairs), "--out", str(tmp_path), *TINY])
    assert reported(capsys)["step"] == 2
    assert_half_precision(tmp_path)
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    ids = tokenizer("The house has 3 doors.", return_tensors="pt")["input_ids"]
    assert ids[0, -1] == tokenizer.eos_token_id
    output = model.generate(ids, max_new_tokens=3)
    assert output[0, 0] == tokenizer.pad_token_id


@pytest.mark.parametrize("name", ["cifar10", "quickdraw"])
def test_vit(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    if name == "cifar10":
        for part, tiles in (("train", 4), ("test", 2)):
            mosaic = rng.integers(0, 256, (64, 32 * tiles // 2, 3), dtype=np.uint8)
            Image.fromarray(mosaic).save(tmp_path / f"cifar_{part}_0.webp", lossless=True)
            np.save(tmp_path / f"cifar_{part}_y.npy", np.arange(tiles, dtype=np.uint8))
    else:
        drawings = rng.integers(0, 256, (40, 28, 28), dtype=np.uint8)
        classes = np.array(["circle", "square"])
        np.savez(tmp_path / "quickdraw10.npz", x=drawings, y=np.arange(40) % 2, classes=classes)
    out = tmp_path / "out"
    vit.main([name, "--data", str(tmp_path), "--out", str(out), *TINY])
    assert reported(capsys)["seen"] == 4
    assert_half_precision(out)
    model = AutoModelForImageClassification.from_pretrained(out, dtype=torch.float32)
    assert model.config.id2label[1] == ("automobile" if name == "cifar10" else "square")
    ours, shipped = (json.loads((d / "preprocessor_config.json").read_text()) for d in (out, SHIPPED / f"vit-{name}"))
    assert {key: ours[key] for key in shipped} == shipped


def test_gpt_stream_begins_each_text(texts: Path) -> None:
    with np.load(texts / "gpt.npz") as data:
        stream = data["train"]
    # smol, tiny four times, story three times, books, tat twice; 40 texts each
    assert int((stream == 0).sum()) == 40 * (1 + 4 + 3 + 1 + 2)
    assert stream[0] == 0


def test_bert_rows_are_framed(texts: Path) -> None:
    with np.load(texts / "bert.npz") as data:
        rows = data["train"]
    assert rows.shape[1] == prepare_text.ROW
    assert (rows[:, 0] == 2).all()
    assert ((rows == 3).sum(1) == 1).all()  # one [SEP] a row, and only [PAD] after it
    assert all((row[int(np.argmax(row == 3)) + 1 :] == 0).all() for row in rows)


def test_long_text_makes_several_rows() -> None:
    text = " ".join(["word"] * 200)
    tokenizer = prepare_text.train_bert_tokenizer([text], 100)
    rows = prepare_text.token_rows(tokenizer, [text])
    assert rows.shape == (2, prepare_text.ROW)
    assert int((rows > 4).sum()) == 200


def test_missing_part_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.json.xz"
    path.write_bytes(lzma.compress(json.dumps({"smol": [[], []]}).encode()))
    with pytest.raises(ValueError, match="lacks the parts tiny, books, story, tat, wiki"):
        prepare_text.read_parts(path)


def test_held_out_english_is_never_trained_on() -> None:
    data = [(f"sentence {n // 2}", f"frase {n}") for n in range(100)]
    train, held_out = split(data)
    assert len(held_out) == 10
    assert sorted(train + held_out) == sorted(data)
    assert not {english for english, _ in train} & {english for english, _ in held_out}


def test_pair_that_does_not_fit_is_left_out(pairs: Path) -> None:
    with np.load(pairs / "translation.npz") as data:
        rows = np.concatenate([data["train"], data["held_out"]])
    assert rows.shape == (40, 2, prepare_translation.ROW)
    assert ((rows == 3).sum(-1) == 1).all()


def test_window_labels_are_the_next_tokens() -> None:
    batch = story_gpt.windows(torch.arange(50), count=7, length=5)
    assert batch.labels.shape == (7, 5)
    assert torch.equal(batch.labels, batch.inputs["input_ids"] + 1)


def test_last_window_reaches_the_end() -> None:
    batch = story_gpt.windows(torch.arange(6), count=3, length=5)
    assert batch.labels[:, -1].tolist() == [5, 5, 5]


def test_masking_hides_a_fifth_of_the_words() -> None:
    rows = torch.randint(5, 500, (200, 100), generator=torch.Generator().manual_seed(0))
    rows[:, 0], rows[:, -1] = 2, 0
    batch = story_bert.masked(rows, 500, torch.Generator().manual_seed(1))
    ids, chosen = batch.inputs["input_ids"], batch.labels != IGNORE
    assert float(chosen.float().mean()) == pytest.approx(0.2, abs=0.01)
    assert torch.equal(batch.labels[chosen], rows[chosen])
    assert torch.equal(ids[~chosen], rows[~chosen])
    assert not chosen[:, [0, -1]].any()
    assert float((ids[chosen] == story_bert.MASK_ID).float().mean()) == pytest.approx(0.8, abs=0.02)
    assert float((ids[chosen] == rows[chosen]).float().mean()) == pytest.approx(0.1, abs=0.02)
    assert batch.inputs["attention_mask"][0, -1] == 0


def test_decoder_reads_one_place_late() -> None:
    source, target = torch.tensor([5, 6, 3, 0]), torch.tensor([7, 8, 9, 3])
    batch = en_es.teacher_forced(torch.stack([source, target])[None])
    assert batch.inputs["decoder_input_ids"].tolist() == [[0, 7, 8, 9]]
    assert batch.inputs["attention_mask"].tolist() == [[1, 1, 1, 0]]
    assert batch.labels.tolist() == [[7, 8, 9, 3]]


def test_mosaic_is_read_row_by_row(tmp_path: Path) -> None:
    greys = np.array([[10, 20, 30], [40, 50, 60]], dtype=np.uint8)
    mosaic = np.repeat(np.repeat(greys, 32, 0), 32, 1)[:, :, None].repeat(3, 2)
    for part in ("train", "test"):
        Image.fromarray(mosaic).save(tmp_path / f"cifar_{part}_0.webp", lossless=True)
        np.save(tmp_path / f"cifar_{part}_y.npy", np.arange(6))
    read = pictures.read_cifar10(tmp_path)
    assert read.train.shape == (6, 3, 32, 32)
    assert read.train.float().mean((1, 2, 3)).tolist() == greys.ravel().tolist()


def test_missing_mosaics_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no mosaic cifar_train_0"):
        pictures.read_cifar10(tmp_path)


@pytest.mark.parametrize("vary", [pictures.varied_photographs, pictures.varied_drawings])
def test_variation_keeps_shape_and_range(vary: Callable[[Tensor], Tensor]) -> None:
    channels = 3 if vary is pictures.varied_photographs else 1
    pixels = torch.randint(0, 256, (64, channels, 32, 32), dtype=torch.uint8)
    torch.manual_seed(0)
    varied = vary(pixels)
    assert varied.shape == pixels.shape
    assert float(varied.min()) >= 0
    assert float(varied.max()) <= 255
    assert not torch.equal(varied[0], varied[1])
    assert not torch.equal(varied, pixels.float())


def test_balanced_chances_give_each_class_the_same() -> None:
    labels = torch.tensor([0, 0, 0, 1])
    chance = vit.chances(labels, balanced=True)
    assert float(chance[:3].sum()) == pytest.approx(float(chance[3]))
    assert vit.chances(labels, balanced=False).tolist() == [1, 1, 1, 1]


def test_rate_climbs_then_falls() -> None:
    rates = [learning_rate(x / 100, peak=2.0) for x in range(101)]
    top = int(np.argmax(rates))
    assert top == round(100 * WARM_UP)
    assert rates[top] == pytest.approx(2.0)
    assert rates[:top] == sorted(rates[:top])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert 0 < rates[0] < 0.1
    assert rates[-1] == learning_rate(1.5, peak=2.0) == pytest.approx(2.0 * FLOOR)


@pytest.mark.parametrize(("seconds", "steps"), [(None, None), (1.0, 1), (0.0, None), (None, 0), (-1.0, None)])
def test_budget_is_one_positive_number(seconds: float | None, steps: int | None) -> None:
    with pytest.raises(ValueError, match="positive number of seconds or of steps"):
        Budget(seconds, steps)


def test_budget_counts_what_it_was_given_in() -> None:
    assert Budget(steps=10).fraction(step=5, elapsed=1e9) == 0.5
    assert Budget(seconds=10).fraction(step=10**9, elapsed=5) == 0.5


class FixedLogits(nn.Module):
    """A model that answers with the logits it is given."""

    def forward(self, logits: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=logits)


def test_evaluation_weighs_labels_not_batches() -> None:
    sure = torch.tensor([[[9.0, 0.0]] * 3])  # (1, 3, classes)
    batches = [
        Batch({"logits": sure}, torch.tensor([[0, 0, 0]])),
        Batch({"logits": sure}, torch.tensor([[1, IGNORE, IGNORE]])),
        Batch({"logits": sure}, torch.full((1, 3), IGNORE)),
    ]
    model = FixedLogits()
    entropy, accuracy = evaluate(model, batches)
    right, wrong = math.log1p(math.exp(-9)), 9 + math.log1p(math.exp(-9))
    assert accuracy == pytest.approx(3 / 4)
    assert entropy == pytest.approx((3 * right + wrong) / 4, rel=1e-5)
    assert model.training


def test_evaluation_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no label"):
        evaluate(FixedLogits(), [])
