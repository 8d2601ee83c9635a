"""The textbook transformer as transformers knows models: opened, saved, and run by all that runs those.

Importing this file lets transformers' auto classes make it from a folder's config.json. Three classes, for what a model
is called with differs by its shape.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    GenerationMixin,
    PreTrainedModel,
)
from transformers import initialization as init
from transformers.modeling_outputs import CausalLMOutputWithPast, MaskedLMOutput, Seq2SeqLMOutput

from attention_models.files.families import add_family
from attention_models.textbook.transformer import RotaryEmbedding, Sinusoids, Transformer
from attention_models.textbook.transformer_config import MODEL_TYPE, TransformerConfig


class TextbookModel(PreTrainedModel):
    """`model`, the stacks, and `lm_head`, the linear layer that gives the logits (section 3.4)."""

    config_class = TransformerConfig
    base_model_prefix = "model"
    _supports_attention_backend = True
    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self._no_split_modules = ["Block"]
        self._tied_weights_keys = {"lm_head.weight": f"model.{config.predicting_stack}.embedding.weight"}
        if config.shape == "encoder-decoder":
            self._tied_weights_keys["model.encoder.embedding.weight"] = "model.decoder.embedding.weight"
        self.model = Transformer(config)
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        table: nn.Module = self.get_submodule(f"model.{self.config.predicting_stack}.embedding")
        return table

    def get_output_embeddings(self) -> nn.Linear:
        head: nn.Linear = self.lm_head
        return head

    def get_encoder(self, *_: Any, **__: Any) -> Any:
        return self.model.encoder

    def get_decoder(self, *_: Any, **__: Any) -> Any:
        return self.model.decoder

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Matrices as Glorot and Bengio 2010; embeddings so that sqrt(width) times them have variance 1."""
        if isinstance(module, nn.Linear):
            init.xavier_uniform_(module.weight)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=self.config.width**-0.5)
        elif isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
            init.ones_(module.weight)
            bias = getattr(module, "bias", None)
            if bias is not None:
                init.zeros_(bias)
        elif isinstance(module, Sinusoids):  # what is not in the files is made up anew
            init.copy_(module.weight, module.table())
        elif isinstance(module, RotaryEmbedding):
            init.copy_(module.inv_freq, module.speeds())

    def _logits(self, states: Tensor, logits_to_keep: int | list[int] | Tensor) -> Tensor:
        """(batch, tokens, vocabulary) of (batch, tokens, width), or of the last or the named tokens alone."""
        if isinstance(logits_to_keep, int):
            return self.lm_head(states[:, -logits_to_keep:] if logits_to_keep else states)  # type: ignore[no-any-return]
        return self.lm_head(states[:, logits_to_keep])  # type: ignore[no-any-return]


class TextbookTransformer(TextbookModel, GenerationMixin):
    """An encoder and a decoder: it reads one text and writes another."""

    def forward(
        self,
        input_ids: Tensor | None = None,  # (batch, source); not needed beside `encoder_outputs`
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,  # (batch, target)
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        cache: Any = None,
        past_key_values: Any = None,  # what transformers before 5.24 calls it
        use_cache: bool | None = None,
        logits_to_keep: int | list[int] | Tensor = 0,
        **_: Any,
    ) -> Seq2SeqLMOutput:
        out = self.model(
            input_ids,
            attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            cache=past_key_values if cache is None else cache,
        )
        logits = self._logits(out.last_hidden_state, logits_to_keep)
        return Seq2SeqLMOutput(logits=logits)


class TextbookDecoder(TextbookModel, GenerationMixin):
    """A decoder alone: it continues a text."""

    def forward(
        self,
        input_ids: Tensor,  # (batch, tokens)
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        cache: Any = None,
        past_key_values: Any = None,  # what transformers before 5.24 calls it
        use_cache: bool | None = None,
        logits_to_keep: int | list[int] | Tensor = 0,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        out = self.model(input_ids, attention_mask, position_ids, cache=past_key_values if cache is None else cache)
        logits = self._logits(out.last_hidden_state, logits_to_keep)
        return CausalLMOutputWithPast(logits=logits)


class TextbookEncoder(TextbookModel):
    """An encoder alone: it says what stands in the masked places of a text."""

    def forward(
        self,
        input_ids: Tensor,  # (batch, tokens)
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        logits_to_keep: int | list[int] | Tensor = 0,
        **_: Any,
    ) -> MaskedLMOutput:
        out = self.model(input_ids, attention_mask, position_ids)
        return MaskedLMOutput(logits=self._logits(out.last_hidden_state, logits_to_keep))


KINDS: dict[str, type[TextbookModel]] = {
    "encoder-decoder": TextbookTransformer,
    "decoder": TextbookDecoder,
    "encoder": TextbookEncoder,
}
"""By the config's `shape`."""


def made(config: TransformerConfig) -> TextbookModel:
    """A model of random weights, as torch's generator gives them, with the config's shape."""
    return KINDS[config.shape](config)


AutoConfig.register(MODEL_TYPE, TransformerConfig)
AutoModelForSeq2SeqLM.register(TransformerConfig, TextbookTransformer)
AutoModelForCausalLM.register(TransformerConfig, TextbookDecoder)
AutoModelForMaskedLM.register(TransformerConfig, TextbookEncoder)
add_family(MODEL_TYPE, seq2seq=TextbookTransformer, causal=TextbookDecoder, masked=TextbookEncoder)
