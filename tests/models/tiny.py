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

from attention_models.forward.model import Model

TinyFolder = Callable[[str], Path]
"""The type of the fixture `tiny_folder`: from a name in `KINDS` to the folder of that checkpoint."""
TinyModel = Callable[[str], Model]
"""The type of the fixture `tiny_model`: that checkpoint, open."""

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
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
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


def first_space(trims: bool = True) -> PreTrainedTokenizerFast:
    """RoBERTa's kind with a blank put before every piece of text, the one after an added token too."""
    tokenizer = roberta_like()
    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=trims, add_prefix_space=True
    )
    return tokenizer


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
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
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


def sentence_piece(pair: str | None = None) -> PreTrainedTokenizerFast:
    """T5's and Marian's kind: ▁ stands for a space and is put before the text; bytes where no piece fits."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Metaspace()])
    special = ["<pad>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(
        sentences(), trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair=pair, special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=60
    )


def t5_like() -> PreTrainedTokenizerFast:
    """As `sentence_piece`, with T5's template for pairs."""
    return sentence_piece("$A </s> $B </s>")


def xlnet_like() -> PreTrainedTokenizerFast:
    """XLNet's kind of frame: its class token comes last, in a segment of its own."""
    tokenizer = word_piece()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A [SEP] [CLS]:2", pair="$A [SEP] $B:1 [SEP]:1 [CLS]:2", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


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

_DISTILBERT = {"dim": 32, "hidden_dim": 48, "n_layers": 3, "n_heads": 4, "max_position_embeddings": 64}
_MOODS = {0: "sad", 1: "glad", 2: "angry"}
_TAGS = {0: "O", 1: "B-PER", 2: "I-PER", 3: "B-LOC", 4: "I-LOC"}
_NEOX = {name: value for name, value in _LLAMA.items() if name not in ("num_key_value_heads", "head_dim")}
_OPT = {
    "hidden_size": 32,
    "ffn_dim": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "word_embed_proj_dim": 32,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
_T5 = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}
_BART = {
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
}
_SLIDING = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
_WRITES = {"is_decoder": True, "add_cross_attention": True, "num_hidden_layers": 2}  # what makes a decoder of BERT

KINDS = {
    "gpt2": Kind("GPT2LMHeadModel", "GPT2Config", _GPT2, byte_level),
    "gpt2_bare": Kind("GPT2Model", "GPT2Config", _GPT2, byte_level),  # its head is its table of embeddings
    "llama": Kind("LlamaForCausalLM", "LlamaConfig", _LLAMA, byte_level),  # two query heads share a key head
    "llama_bare": Kind("LlamaModel", "LlamaConfig", _LLAMA, byte_level),  # a decoder without an output head
    "mistral": Kind("MistralForCausalLM", "MistralConfig", {**_LLAMA, "sliding_window": 8}, byte_level),
    "qwen2": Kind("Qwen2ForCausalLM", "Qwen2Config", _LLAMA, byte_level),
    "qwen3": Kind("Qwen3ForCausalLM", "Qwen3Config", _LLAMA, byte_level),
    "gemma2": Kind(  # soft cap, and a window of 8 keys in every other layer
        "Gemma2ForCausalLM",
        "Gemma2Config",
        {**_LLAMA, "sliding_window": 8, "attn_logit_softcapping": 1.5, "query_pre_attn_scalar": 8},
        byte_level,
    ),
    "gemma3": Kind("Gemma3ForCausalLM", "Gemma3TextConfig", {**_LLAMA, **_SLIDING}, byte_level),
    "phi3": Kind("Phi3ForCausalLM", "Phi3Config", {**_LLAMA, "sliding_window": 8, "pad_token_id": 0}, byte_level),
    "gpt_neox": Kind("GPTNeoXForCausalLM", "GPTNeoXConfig", {**_NEOX, "rotary_pct": 0.5}, byte_level),
    "opt": Kind("OPTForCausalLM", "OPTConfig", _OPT, byte_level),
    "gpt_oss": Kind(  # sinks, and a mixture of experts
        "GptOssForCausalLM",
        "GptOssConfig",
        {**_LLAMA, "pad_token_id": 0, "sliding_window": 8, "num_local_experts": 2, "num_experts_per_tok": 1},
        byte_level,
    ),
    "llama4": Kind(  # chunks of 8 tokens, but in every third layer; a mixture of experts
        "Llama4ForCausalLM",
        "Llama4TextConfig",
        {
            **_LLAMA,
            "pad_token_id": 0,
            "intermediate_size_mlp": 48,
            "num_local_experts": 2,
            "attention_chunk_size": 8,
            "layer_types": ["chunked_attention", "chunked_attention", "full_attention"],
        },
        byte_level,
    ),
    "bert": Kind("BertForMaskedLM", "BertConfig", _BERT, word_piece),
    "bert_pretrained": Kind("BertForPreTraining", "BertConfig", _BERT, word_piece),  # a second head beside the words'
    "albert_pretrained": Kind("AlbertForPreTraining", "AlbertConfig", {**_BERT, "embedding_size": 16}, word_piece),
    "mobilebert_pretrained": Kind(
        "MobileBertForPreTraining",
        "MobileBertConfig",
        {**_BERT, "embedding_size": 16, "intra_bottleneck_size": 32, "true_hidden_size": 32},
        word_piece,
    ),
    "bert_decoder": Kind("BertLMHeadModel", "BertConfig", {**_BERT, "is_decoder": True}, word_piece),
    "bert_classifier": Kind("BertForSequenceClassification", "BertConfig", _BERT, word_piece),
    "albert": Kind("AlbertForMaskedLM", "AlbertConfig", {**_BERT, "embedding_size": 16}, word_piece),
    "electra": Kind("ElectraForMaskedLM", "ElectraConfig", {**_BERT, "embedding_size": 16}, word_piece),
    "electra_discriminator": Kind(
        "ElectraForPreTraining", "ElectraConfig", {**_BERT, "embedding_size": 16}, word_piece
    ),
    "distilbert": Kind(
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        _DISTILBERT,
        word_piece,
    ),
    "roberta": Kind("RobertaForMaskedLM", "RobertaConfig", _BERT, roberta_like),
    "xlm_roberta": Kind("XLMRobertaForMaskedLM", "XLMRobertaConfig", _BERT, roberta_like),
    "modernbert": Kind(  # a window of 4 tokens to either side, but in every third layer
        "ModernBertForMaskedLM",
        "ModernBertConfig",
        {**_BERT, "local_attention": 8, "global_attn_every_n_layers": 3, "pad_token_id": 0},
        word_piece,
    ),
    "bert2bert": Kind("EncoderDecoderModel", "BertConfig", _BERT, word_piece),  # two models put together
    "t5": Kind("T5ForConditionalGeneration", "T5Config", _T5, t5_like),
    "t5_encoder": Kind("T5EncoderModel", "T5Config", _T5, t5_like),
    "mt5": Kind("MT5ForConditionalGeneration", "MT5Config", _T5, t5_like),
    "bart": Kind("BartForConditionalGeneration", "BartConfig", _BART, t5_like),
    "mbart": Kind("MBartForConditionalGeneration", "MBartConfig", _BART, sentence_piece),
    "marian": Kind("MarianMTModel", "MarianConfig", _BART, sentence_piece),
    # classifiers
    "bert_tagger": Kind("BertForTokenClassification", "BertConfig", {**_BERT, "id2label": _TAGS}, word_piece),
    "bert_several": Kind(
        "BertForSequenceClassification",
        "BertConfig",
        {**_BERT, "id2label": _MOODS, "problem_type": "multi_label_classification"},
        word_piece,
    ),
    "bert_answerer": Kind("BertForQuestionAnswering", "BertConfig", _BERT, word_piece),
    "bert_choice": Kind("BertForMultipleChoice", "BertConfig", _BERT, word_piece),
    "distilbert_choice": Kind("DistilBertForMultipleChoice", "DistilBertConfig", _DISTILBERT, word_piece),
    "roberta_choice": Kind("RobertaForMultipleChoice", "RobertaConfig", _BERT, roberta_like),
    "deberta_choice": Kind(  # only its weights can be seen
        "DebertaV2ForMultipleChoice",
        "DebertaV2Config",
        {**_BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16},
        word_piece,
    ),
    "bert_next": Kind("BertForNextSentencePrediction", "BertConfig", _BERT, word_piece),
    "megatron_next": Kind("MegatronBertForNextSentencePrediction", "MegatronBertConfig", _BERT, word_piece),
    "roberta_classifier": Kind(
        "RobertaForSequenceClassification", "RobertaConfig", {**_BERT, "id2label": _MOODS}, roberta_like
    ),
    "distilbert_classifier": Kind(
        "DistilBertForSequenceClassification", "DistilBertConfig", {**_DISTILBERT, "id2label": _MOODS}, word_piece
    ),
    "deberta_classifier": Kind(
        "DebertaV2ForSequenceClassification",
        "DebertaV2Config",
        {**_BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16},
        word_piece,
    ),
    "modernbert_classifier": Kind(
        "ModernBertForSequenceClassification", "ModernBertConfig", {**_BERT, "pad_token_id": 0}, word_piece
    ),
    "gpt2_classifier": Kind(  # reads its classes off at the last token that is no padding
        "GPT2ForSequenceClassification", "GPT2Config", {**_GPT2, "id2label": _MOODS, "pad_token_id": 0}, byte_level
    ),
    "gpt2_tagger": Kind("GPT2ForTokenClassification", "GPT2Config", {**_GPT2, "id2label": _TAGS}, byte_level),
    "llama_classifier": Kind(
        "LlamaForSequenceClassification", "LlamaConfig", {**_LLAMA, "id2label": _MOODS, "pad_token_id": 0}, byte_level
    ),
    "llama_reward": Kind(
        "LlamaForSequenceClassification", "LlamaConfig", {**_LLAMA, "num_labels": 1, "pad_token_id": 0}, byte_level
    ),
    "bart_classifier": Kind("BartForSequenceClassification", "BartConfig", _BART, sentence_piece),
    "bert_bare": Kind("BertModel", "BertConfig", _BERT, word_piece),  # no output head
    "bloom": Kind("BloomForCausalLM", "BloomConfig", {"hidden_size": 32, "n_layer": 2, "n_head": 4}, byte_level),
    "mpt": Kind(
        "MptForCausalLM", "MptConfig", {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}, byte_level
    ),
    "gpt_neo": Kind(
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 8,
            "max_position_embeddings": 64,
        },
        byte_level,
    ),
    "deberta_v2": Kind(
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        {**_BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16},
        word_piece,
    ),
    "longformer": Kind(  # weights along a band, no square
        "LongformerForMaskedLM", "LongformerConfig", {**_BERT, "attention_window": 4}, roberta_like
    ),
    "bart_decoder": Kind("BartForCausalLM", "BartConfig", {**_BART, "encoder_layers": 3}, sentence_piece),
    "jamba": Kind(  # attention in one layer of three
        "JambaForCausalLM",
        "JambaConfig",
        {**_LLAMA, "num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 4},
        byte_level,
    ),
    "diff_llama": Kind("DiffLlamaForCausalLM", "DiffLlamaConfig", _LLAMA, byte_level),  # two attentions a layer
    "long_t5": Kind("LongT5ForConditionalGeneration", "LongT5Config", _T5, sentence_piece),  # its encoder is its own
    "xlnet": Kind(  # attends both ways; its words come from a second stream of queries
        "XLNetLMHeadModel", "XLNetConfig", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}, xlnet_like
    ),
    "mamba": Kind("MambaForCausalLM", "MambaConfig", {"hidden_size": 32, "num_hidden_layers": 2}, byte_level),
    "whisper": Kind(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {**_BART, "max_source_positions": 30, "max_target_positions": 64, "num_mel_bins": 8},
        byte_level,
    ),
}


def save(kind: str | Kind, folder: Path) -> Path:
    """Write a checkpoint of random weights and its tokenizer to `folder`; a kind's name is one of `KINDS`."""
    chosen = KINDS[kind] if isinstance(kind, str) else kind
    tokenizer = chosen.tokenizer()
    module = _module(chosen, len(tokenizer))
    with torch.no_grad():
        # the usual small start gives weights that are all alike; larger matrices make heads that choose
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn_like(parameter) * 0.3)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _module(chosen: Kind, vocabulary: int) -> Any:
    make = getattr(transformers, chosen.config)
    if chosen.architecture == "EncoderDecoderModel":
        halves = [make(vocab_size=vocabulary, **{**chosen.settings, **more}) for more in ({}, _WRITES)]
        config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(*halves, decoder_start_token_id=2)
    else:
        config = make(vocab_size=vocabulary, **chosen.settings)
    torch.manual_seed(0)
    return getattr(transformers, chosen.architecture)(config)


def eager(model: Model) -> Any:
    """The same checkpoint opened by transformers alone, with its own eager attention."""
    loaded, report = type(model.module).from_pretrained(  # type: ignore[attr-defined]
        model.info.folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True
    )
    assert all("pooler" in key for key in report["missing_keys"])
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
