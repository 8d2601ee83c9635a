"""en-es: the encoder-decoder of 2017, small, translating English into Spanish.

python -m attention_models.training.en_es --data prepared --out en-es --seconds 340
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

from attention_models.training.common import IGNORE, Batch, Recipe, command_line, save, start, train
from attention_models.training.prepare_translation import BEGIN, END, PAD, SPECIAL, UNKNOWN

PAD_ID = SPECIAL.index(PAD)


def teacher_forced(pairs: Tensor) -> Batch:
    """Pairs of rows (batch, 2, length): the decoder reads the true words, one place late, and says the next one."""
    source, target = pairs.unbind(1)  # (batch, length) each
    begin = torch.full_like(target[:, :1], PAD_ID)  # decoding starts from <pad>
    inputs = {
        "input_ids": source,
        "attention_mask": (source != PAD_ID).long(),
        "decoder_input_ids": torch.cat([begin, target[:, :-1]], dim=1),
        "use_cache": False,
    }
    return Batch(inputs, target.masked_fill(target == PAD_ID, IGNORE))


def main(argv: Sequence[str] | None = None) -> None:
    parser = command_line("Train en-es.", layers=4, heads=8, width=256, batch=256)
    options = parser.parse_args(argv)
    budget, device = start(options)

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(options.data / "translation_tokenizer.json"),
        pad_token=PAD,
        unk_token=UNKNOWN,
        bos_token=BEGIN,
        eos_token=END,
        model_max_length=128,
        model_input_names=["input_ids", "attention_mask"],
    )
    with np.load(options.data / "translation.npz") as data:
        pairs = torch.from_numpy(data["train"].astype(np.int32)).to(device)  # (pairs, 2, length)
        held_out_pairs = torch.from_numpy(data["held_out"].astype(np.int32)).to(device)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=len(tokenizer),
            d_model=options.width,
            encoder_layers=options.layers,
            decoder_layers=options.layers,
            encoder_attention_heads=options.heads,
            decoder_attention_heads=options.heads,
            encoder_ffn_dim=4 * options.width,
            decoder_ffn_dim=4 * options.width,
            max_position_embeddings=128,
            activation_function="relu",
            scale_embedding=True,
            dropout=0.15,
            attention_dropout=0.0,
            pad_token_id=PAD_ID,
            bos_token_id=SPECIAL.index(BEGIN),
            eos_token_id=SPECIAL.index(END),
            decoder_start_token_id=PAD_ID,
            forced_eos_token_id=None,
            share_encoder_decoder_embeddings=True,
        )
    )

    def batches() -> Iterator[Batch]:
        while True:
            pick = torch.randint(len(pairs), (options.batch,)).to(device)
            yield teacher_forced(pairs[pick].long())

    def held_out() -> Iterator[Batch]:
        return (teacher_forced(part.long()) for part in held_out_pairs.split(256))

    train(Recipe(model, batches(), held_out, peak=8e-4, decay=0.05, smoothing=0.1), budget, device)
    save(model, options.out)
    tokenizer.save_pretrained(options.out)


if __name__ == "__main__":
    main()
