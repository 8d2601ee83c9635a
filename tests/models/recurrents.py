"""Small recurrent translators with random weights, saved as the recipe saves trained ones."""

from __future__ import annotations

from pathlib import Path

import torch

from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.recurrent import RecurrentSeq2Seq
from attention_models.training.recurrent import END_ID, PAD_ID, START_ID, save, word_tokenizer

SENTENCES = (
    "The black cat is sleeping on the table.",
    "El gato negro duerme en la mesa.",
    "My sister has three old books, and she reads them every evening.",
    "Mi hermana tiene tres libros viejos y los lee todas las noches.",
)


def saved(folder: Path, score: str, seed: int = 0, **choices: object) -> Path:
    """The folder of a model that no training has touched; its weights are large, so that it is sure of what it says."""
    tokenizer = word_tokenizer(SENTENCES * 3, 90)
    size = tokenizer.get_vocab_size()
    torch.manual_seed(seed)
    config = RecurrentConfig(
        vocabulary=size,
        target_vocabulary=size,
        score=score,  # type: ignore[arg-type]
        embedding=8,
        hidden=12,
        pad=PAD_ID,
        start=START_ID,
        end=END_ID,
        **choices,  # type: ignore[arg-type]
    )
    module = RecurrentSeq2Seq(config)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(4)
    save(module, tokenizer, folder)
    return folder
