"""What kind of model a checkpoint holds, told from its config before any weight is read."""

from __future__ import annotations

from typing import Any

import transformers

from models.values import StackInfo

# how transformers names the classes with the heads that we can show, by the end of the class's name
_FAMILIES = {
    "ForCausalLM": "causal",
    "LMHeadModel": "causal",
    "ForMaskedLM": "masked",
    "ForPreTraining": "masked",
    "ForConditionalGeneration": "seq2seq",
    "MTModel": "seq2seq",
    "ForImageClassification": "vision",
}
_AUTO = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "vision": "AutoModelForImageClassification",
    "encoder": "AutoModel",
}


def auto_class(family: str) -> Any:
    """transformers' class that opens a checkpoint of this family, with the head that we show."""
    return getattr(transformers, _AUTO[family])


def family_of(architecture: str, config: Any) -> str:
    """ "causal", "masked", "encoder", "seq2seq" or "vision"."""
    for ending, family in _FAMILIES.items():
        if architecture.endswith(ending):
            # BertLMHeadModel, T5ForConditionalGeneration: the config has the last word on the stacks
            return "seq2seq" if getattr(config, "is_encoder_decoder", False) and family != "vision" else family
    return "seq2seq" if getattr(config, "is_encoder_decoder", False) else "encoder"


def stacks_of(config: Any, family: str) -> tuple[StackInfo, ...]:
    """The stacks of attention layers that the config describes."""
    text = config.get_text_config()
    heads = int(getattr(text, "num_attention_heads", 0) or 0)
    layers = int(getattr(text, "num_hidden_layers", 0) or 0)
    if family != "seq2seq":
        shared = int(getattr(text, "num_key_value_heads", None) or heads)
        return (StackInfo("decoder" if family == "causal" else "encoder", layers, heads, shared),)
    encoder_layers = int(getattr(config, "encoder_layers", layers) or layers)
    encoder_heads = int(getattr(config, "encoder_attention_heads", heads) or heads)
    decoder_layers = int(
        getattr(config, "decoder_layers", None) or getattr(config, "num_decoder_layers", None) or layers
    )
    decoder_heads = int(getattr(config, "decoder_attention_heads", heads) or heads)
    return (
        StackInfo("encoder", encoder_layers, encoder_heads, encoder_heads),
        StackInfo("decoder", decoder_layers, decoder_heads, decoder_heads),
        StackInfo("cross", decoder_layers, decoder_heads, decoder_heads),
    )


def context_of(config: Any) -> int | None:
    """Tokens that fit; None for a model that states no bound (T5's relative positions)."""
    text = config.get_text_config()
    limit = getattr(text, "max_position_embeddings", None)
    if not isinstance(limit, int) or limit < 1:
        return None
    if text.model_type in ("roberta", "xlm-roberta", "camembert"):
        return limit - int(getattr(text, "pad_token_id", None) or 0) - 1  # positions count from the padding's id
    return limit


def hidden_attention(empty: Any) -> str:
    """Why the attention of this (weightless) model can not be looked into; "" where it can."""
    if empty._can_set_attn_implementation():
        return ""
    return (
        f"transformers' {empty.config.model_type} computes its attention where it can not be looked into, "
        "so there would be nothing to show. Open a checkpoint of another family."
    )
