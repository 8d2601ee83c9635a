"""story-bert: a small BERT that fills in masked words of English sentences.

python -m attention_models.training.story_bert --data prepared --out story-bert --seconds 340
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from attention_models.training.common import IGNORE, Batch, Recipe, command_line, save, start, train
from attention_models.training.prepare_text import BERT_SPECIAL, CLS, MASK, PAD, SEP, UNKNOWN

MASKED = 0.2
"""Part of the tokens to be guessed: 80 % of them become `[MASK]`, 10 % a random token, 10 % stay."""

PAD_ID, MASK_ID, FIRST_WORD = BERT_SPECIAL.index(PAD), BERT_SPECIAL.index(MASK), len(BERT_SPECIAL)


def masked(rows: Tensor, vocabulary: int, generator: torch.Generator | None = None) -> Batch:
    """Hide some tokens of `rows` (rows, length); they are the labels, everything else is ignored."""
    choice, fate = (torch.rand(rows.shape, generator=generator).to(rows.device) for _ in range(2))
    random_tokens = torch.randint(FIRST_WORD, vocabulary, rows.shape, generator=generator).to(rows.device)
    chosen = (choice < MASKED) & (rows >= FIRST_WORD)
    ids = torch.where(chosen & (fate < 0.8), MASK_ID, torch.where(chosen & (fate > 0.9), random_tokens, rows))
    return Batch({"input_ids": ids, "attention_mask": (rows != PAD_ID).long()}, torch.where(chosen, rows, IGNORE))


def main(argv: Sequence[str] | None = None) -> None:
    parser = command_line("Train story-bert.", layers=6, heads=8, width=256, batch=256)
    options = parser.parse_args(argv)
    budget, device = start(options)

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(options.data / "bert_tokenizer.json"),
        pad_token=PAD,
        unk_token=UNKNOWN,
        cls_token=CLS,
        sep_token=SEP,
        mask_token=MASK,
        model_max_length=256,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    with np.load(options.data / "bert.npz") as data:
        rows = torch.from_numpy(data["train"].astype(np.int32)).to(device)  # (rows, length)
        held_out_rows = torch.from_numpy(data["held_out"][:512].astype(np.int32)).to(device)
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=options.width,
            num_hidden_layers=options.layers,
            num_attention_heads=options.heads,
            intermediate_size=4 * options.width,
            max_position_embeddings=256,
            hidden_dropout_prob=0.05,
            attention_probs_dropout_prob=0.0,
            pad_token_id=PAD_ID,
        )
    )

    def batches() -> Iterator[Batch]:
        while True:
            pick = torch.randint(len(rows), (options.batch,)).to(device)
            yield masked(rows[pick].long(), len(tokenizer))

    def held_out() -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(1)
        return (masked(part.long(), len(tokenizer), generator) for part in held_out_rows.split(128))

    train(Recipe(model, batches(), held_out, peak=1e-3, decay=0.05), budget, device)
    save(model, options.out)
    tokenizer.save_pretrained(options.out)


if __name__ == "__main__":
    main()
