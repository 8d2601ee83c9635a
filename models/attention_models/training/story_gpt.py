"""story-gpt: a small GPT-2 that continues English stories.

python -m attention_models.training.story_gpt --data prepared --out story-gpt --seconds 340
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from attention_models.training.common import Batch, Recipe, command_line, save, start, train
from attention_models.training.prepare_text import END_OF_TEXT


def windows(ids: Tensor, count: int, length: int, generator: torch.Generator | None = None) -> Batch:
    """`count` random windows of a stream of tokens; each label is the token that follows. (count, length)"""
    first = torch.randint(len(ids) - length, (count,), generator=generator).to(ids.device)
    span = ids[first[:, None] + torch.arange(length + 1, device=ids.device)].long()  # (count, length + 1)
    return Batch({"input_ids": span[:, :-1], "use_cache": False}, span[:, 1:])


def main(argv: Sequence[str] | None = None) -> None:
    parser = command_line("Train story-gpt.", layers=8, heads=8, width=256, batch=64)
    parser.add_argument("--length", type=int, default=512, help="tokens a window; default %(default)s")
    options = parser.parse_args(argv)
    budget, device = start(options)

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(options.data / "gpt_tokenizer.json"),
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        model_max_length=options.length,
    )
    with np.load(options.data / "gpt.npz") as data:
        ids = torch.from_numpy(data["train"].astype(np.int32)).to(device)  # (tokens,)
        held_out_ids = torch.from_numpy(data["held_out"].astype(np.int32)).to(device)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=options.length,
            n_embd=options.width,
            n_layer=options.layers,
            n_head=options.heads,
            resid_pdrop=0.05,
            embd_pdrop=0.05,
            attn_pdrop=0.0,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
    )

    def batches() -> Iterator[Batch]:
        while True:
            yield windows(ids, options.batch, options.length)

    def held_out() -> Iterator[Batch]:
        generator = torch.Generator().manual_seed(1)
        return (windows(held_out_ids, 32, options.length, generator) for _ in range(4))

    train(Recipe(model, batches(), held_out, peak=2e-3, decay=0.1), budget, device)
    save(model, options.out)
    tokenizer.save_pretrained(options.out)


if __name__ == "__main__":
    main()
