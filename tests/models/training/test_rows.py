"""Batches are what the saved tokenizer makes of the rows' texts, and say what the rows say."""

from __future__ import annotations

import pytest
import torch

from attention_models.textbook.tasks import TASKS, text_parts
from attention_models.textbook.tokenizer import END_ID, MASK_ID, PAD_ID, START_ID, tokenizer_of
from attention_models.textbook.transformer import IGNORE
from attention_models.training.rows import TaskRows, TextRows

SHAPES = ("encoder-decoder", "decoder", "encoder")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", TASKS)
def test_ids_are_the_tokenizers_and_labels_are_the_answers(name, shape):
    task = TASKS[name]
    rows = TaskRows(task, task.difficulty, shape, 3)
    tokenizer = tokenizer_of(rows.alphabet, shape, 64)
    drawn = rows.held_out_rows(12)
    batch = rows.encoded(drawn)
    mask = batch.inputs.get("attention_mask", batch.inputs["input_ids"] != PAD_ID)
    assert rows.context >= max(t.shape[1] for t in batch.inputs.values())
    for i, row in enumerate(drawn):
        read = batch.inputs["input_ids"][i][mask[i].bool()].tolist()
        said = batch.labels[i][batch.labels[i] != IGNORE].tolist()
        letters = tokenizer(row.answer, add_special_tokens=False)["input_ids"]
        if shape == "encoder-decoder":
            assert read == tokenizer(row.prompt)["input_ids"]
            written = batch.inputs["decoder_input_ids"][i].tolist()
            assert written[: len(letters) + 1] == [START_ID, *letters]
            assert said == [*letters, END_ID]
        elif shape == "decoder":
            space = " " if task.of_words else ""
            assert read == tokenizer(task.asked(row) + space + row.answer)["input_ids"]
            assert said == [*letters, END_ID]
            assert batch.labels[i, len(task.tokens(task.asked(row)))] == letters[0]  # after the prompt's last token
        else:
            assert read == tokenizer(task.asked(row) + "<mask>" * len(letters))["input_ids"]
            assert said == letters
            assert ((batch.inputs["input_ids"][i] == MASK_ID) == (batch.labels[i] != IGNORE)).all()


def test_a_batch_is_its_seeds_and_its_steps():
    rows, same = (TaskRows(TASKS["addition"], 3, "decoder", 5) for _ in range(2))
    first = rows.batch(7, 16)
    rows.batch(8, 16)
    for name, t in same.batch(7, 16).inputs.items():
        torch.testing.assert_close(t, first.inputs[name], rtol=0, atol=0)
    assert not torch.equal(first.labels, rows.batch(8, 16).labels)


def test_every_character_of_a_window_is_said_after_those_before_it():
    parts = text_parts(
        "the quick brown fox jumps over the lazy dog; " * 3 + "pack my box with five dozen jugs. " * 4, 9
    )
    rows = TextRows(parts, 0)
    tokenizer = tokenizer_of(rows.alphabet, "decoder", 64)
    batch = rows.batch(0, 5)
    windows = {tuple(tokenizer(w, add_special_tokens=False)["input_ids"]) for w in parts.training}
    for read, said in zip(batch.inputs["input_ids"].tolist(), batch.labels.tolist(), strict=True):
        assert tuple(said) in windows
        assert read == [START_ID, *said[:-1]]
