"""Checkpoints of a few thousand random weights, one for each way in which models differ, saved as real ones are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from models.model import Model

SENTENCE = "Tom and Anna went to the park. Anna gave the ball to"
CORPUS = [
    SENTENCE,
    "The black cat is sleeping on the table, and the dog is playing with a red ball in the garden.",
    "La casa tiene tres puertas, y el perro negro duerme en la cocina.",
    "She was singing, walking, talking and laughing while he was reading and writing.",
]


def sentences() -> Iterator[str]:
    yield from CORPUS * 4


def byte_level() -> PreTrainedTokenizerFast:
    """GPT-2's kind: every byte has a piece, a space belongs to the word after it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>", model_max_length=128
    )


def roberta_like() -> PreTrainedTokenizerFast:
    """RoBERTa's kind: as GPT-2's, framed, with a mask that takes the space before it along."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    mask = AddedToken("<mask>", lstrip=True, special=True)
    tokenizer.add_special_tokens([mask])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token=mask,
        model_max_length=60,
    )


def word_piece() -> PreTrainedTokenizerFast:
    """BERT's kind: a word's later pieces begin with ##, white space is dropped."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        sentences(), trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=60,
    )


def sentence_piece() -> PreTrainedTokenizerFast:
    """T5's and Marian's kind: ▁ stands for a space and is put before the text; bytes where no piece fits."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Metaspace()])
    special = ["<pad>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(
        sentences(), trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=60
    )


@dataclass(frozen=True)
class Kind:
    """One family of models: its class in transformers, what its config says, and the tokenizer that goes with it."""

    architecture: str
    config: str
    settings: dict[str, Any]
    tokenizer: Callable[[], PreTrainedTokenizerFast]


_GPT2 = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64, "bos_token_id": 0, "eos_token_id": 0}
_LLAMA = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
_BERT = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}

KINDS = {
    "gpt2": Kind("GPT2LMHeadModel", "GPT2Config", _GPT2, byte_level),
    "llama": Kind("LlamaForCausalLM", "LlamaConfig", _LLAMA, byte_level),  # two query heads share a key head
    "gemma2": Kind(  # soft cap, and a window of 8 keys in every other layer
        "Gemma2ForCausalLM",
        "Gemma2Config",
        {**_LLAMA, "sliding_window": 8, "attn_logit_softcapping": 1.5, "query_pre_attn_scalar": 8},
        byte_level,
    ),
    "gpt_oss": Kind(  # sinks, and a mixture of experts
        "GptOssForCausalLM",
        "GptOssConfig",
        {**_LLAMA, "pad_token_id": 0, "sliding_window": 8, "num_local_experts": 2, "num_experts_per_tok": 1},
        byte_level,
    ),
    "bert": Kind("BertForMaskedLM", "BertConfig", _BERT, word_piece),
    "albert": Kind("AlbertForMaskedLM", "AlbertConfig", {**_BERT, "embedding_size": 16}, word_piece),
    "distilbert": Kind(
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"dim": 32, "hidden_dim": 48, "n_layers": 3, "n_heads": 4, "max_position_embeddings": 64},
        word_piece,
    ),
    "roberta": Kind("RobertaForMaskedLM", "RobertaConfig", _BERT, roberta_like),
    "t5": Kind(
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 48,
            "num_layers": 2,
            "num_decoder_layers": 3,
            "num_heads": 4,
            "pad_token_id": 0,
            "eos_token_id": 1,
            "decoder_start_token_id": 0,
        },
        sentence_piece,
    ),
    "marian": Kind(
        "MarianMTModel",
        "MarianConfig",
        {
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 3,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "max_position_embeddings": 64,
            "pad_token_id": 0,
            "eos_token_id": 1,
            "forced_eos_token_id": None,
            "decoder_start_token_id": 0,
        },
        sentence_piece,
    ),
    "bert_bare": Kind("BertModel", "BertConfig", _BERT, word_piece),  # no output head
    "bloom": Kind("BloomForCausalLM", "BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4}, byte_level),
    "gpt_neo": Kind(
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
        byte_level,
    ),
}


def save(kind: str, folder: Path) -> Path:
    """Write a checkpoint of random weights and its tokenizer to `folder`."""
    chosen = KINDS[kind]
    tokenizer = chosen.tokenizer()
    config = getattr(transformers, chosen.config)(vocab_size=len(tokenizer), **chosen.settings)
    torch.manual_seed(0)
    module = getattr(transformers, chosen.architecture)(config)
    with torch.no_grad():
        # the usual small start gives weights that are all alike; larger matrices make heads that choose
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn_like(parameter) * 0.3)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def eager(model: Model) -> Any:
    """The same checkpoint opened by transformers alone, with its own eager attention."""
    loaded, report = type(model.module).from_pretrained(  # type: ignore[attr-defined]
        model.info.folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True
    )
    assert not report["missing_keys"]
    return loaded.eval()


@torch.no_grad()
def eager_run(model: Model, text: str, target: str | None = None) -> Any:
    """What transformers' own forward gives, with `attentions` and `hidden_states`."""
    inputs = model.encode(text, target).inputs
    return eager(model)(**inputs, output_attentions=True, output_hidden_states=True)


def text_of(model: Model, tokens: int) -> str:
    """A text of exactly `tokens` tokens, those that the model puts around it included."""
    words = SENTENCE.split()
    text = words[0]
    for i in range(1, tokens):
        longer = f"{text} {words[i % len(words)]}"
        if len(model.tokenizer(longer)["input_ids"]) > tokens - 2:
            break
        text = longer
    while len(model.tokenize(text)) < tokens:
        text += "."
    return text


def rig(model: Model, choose: Callable[[list[int]], dict[int, int]]) -> Model:
    """Make `model` all but certain: `choose` says for the input's ids which id it is to say at which position."""

    def certain(_module: Any, _args: Any, kwargs: dict[str, Any], out: Any) -> None:
        for position, id_ in choose(kwargs["input_ids"][0].tolist()).items():
            out.logits[0, position, id_] = 1000.0

    model.module.register_forward_hook(certain, with_kwargs=True)
    return model
