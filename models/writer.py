"""Runs a model step by step with its key/value cache, for one or several sequences side by side.

Works for decoder-only models and for the decoder of encoder-decoder models, whose encoder runs once.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer

from models.capture import Recorder, never, recording
from models.decode_requests import CacheLayer
from models.errors import InputError
from models.given import keep_given
from models.model import Encoded, Model


class Run(Protocol):
    """A model in the middle of writing."""

    ids: Tensor  # (sequences, tokens): the decoder's, prompt included
    prompt: int  # tokens that were given

    def logits(self) -> Tensor:
        """The next token's logits, (sequences, vocabulary) float32."""

    def append(self, tokens: Tensor, sources: Tensor | None = None) -> None:
        """Append one token a sequence; `sources` says which sequence each goes on from."""

    @property
    def cache_bytes(self) -> int:
        """Bytes kept for the next step."""


def start_run(model: Model, encoded: Encoded) -> Run:
    """Begin to write after a prompt, in the way of the model's family."""
    own = getattr(model, "start_run", None)
    return own(encoded) if own is not None else CachedRun(model, encoded)


class CachedRun:
    """One prompt and what was written after it. `ids` are the decoder's, prompt included: (sequences, tokens)."""

    def __init__(self, model: Model, encoded: Encoded) -> None:
        self.model = model
        self.encoder_tokens = encoded.source
        self._fixed: dict[str, Any] = {}
        if model.seq2seq:
            module: Any = model.module
            inputs = {k: v for k, v in encoded.inputs.items() if not k.startswith("decoder_")}
            with torch.no_grad():
                self._fixed = {
                    "encoder_outputs": module.get_encoder()(**inputs),
                    "attention_mask": encoded.inputs.get("attention_mask"),
                }
            self._cache: Any = EncoderDecoderCache(DynamicCache(config=model.config), DynamicCache(config=model.config))
            self.ids = encoded.inputs["decoder_input_ids"]
        elif model.info.family == "causal":
            self._cache = DynamicCache(config=model.config)
            self.ids = encoded.inputs["input_ids"]
        else:
            raise InputError(f"{model.info.name} does not write from left to right: there is nothing to decode.")
        # renamed in transformers 5.24; older releases know the older name only
        self._cache_name = "cache" if model.accepts("cache") else "past_key_values"
        self._options = {**model.forward_options, "use_cache": True}
        self.prompt = self.ids.shape[1]
        self._cached = 0
        self._reused = 0  # of them, in the last step
        self._crossed = False  # whether the source's keys and values were there before the last step
        self.recorder: Recorder | None = None

    @torch.no_grad()
    def logits(self) -> Tensor:
        """Run what is not in the cache yet; the next token's logits, (sequences, vocabulary) float32.

        `recorder` then holds what each attention site was given in this step: its queries are the new tokens only.
        """
        limit = self.model.info.context
        if limit is not None and self.ids.shape[1] > limit:
            raise InputError(f"The context is full: {self.model.info.name} takes {limit:,} tokens.")
        recorder = Recorder(self.model.module_names, self.model.seq2seq, never)
        new = self.ids[:, self._cached :]
        name = "decoder_input_ids" if self.model.seq2seq else "input_ids"
        self._reused, self._crossed = self._cached, self._crossed or self.recorder is not None
        with recording(recorder):
            out = self.model.module(**{name: new, self._cache_name: self._cache}, **self._fixed, **self._options)
            if self.model.info.weights_only:
                keep_given(self.model, recorder, out, self.ids.shape[1])
        self._cached = self.ids.shape[1]
        self.recorder = recorder
        logits: Tensor = out.logits[:, -1].float()
        return logits

    def append(self, tokens: Tensor, sources: Tensor | None = None) -> None:
        """Append one token a sequence, (sequences,). `sources` says which of the present sequences each goes on from.

        More sources than sequences make them branch; the cache follows.
        """
        if sources is not None:
            self._cache.reorder_cache(sources)
            self.ids = self.ids[sources]
            self._fixed = {key: _spread(value, len(sources)) for key, value in self._fixed.items()}
        self.ids = torch.cat([self.ids, tokens[:, None]], dim=1)

    def crop(self, length: int) -> bool:
        """Go back to the first `length` tokens of the one sequence and forget what was cached of the others.

        Returns False, and changes nothing, where a cache does not allow it (a sliding window has forgotten).
        """
        own = self._parts()[0][1]
        if len(self.ids) != 1 or any(type(layer) is not DynamicLayer for layer in own.layers):
            return False
        self.ids = self.ids[:, :length]
        if length < self._cached:
            own.crop(length - self._cached)  # a negative number: what to remove, in every release
            self._cached = length
        return True

    @property
    def cached(self) -> int:
        """Tokens of the decoder whose keys and values are kept."""
        return self._cached

    @property
    def cache_bytes(self) -> int:
        """Bytes of the keys and values that are kept for the next step."""
        return sum(_bytes(layer) for _, part in self._parts() for layer in part.layers)

    def cache_layers(self) -> tuple[CacheLayer, ...]:
        """What is kept after the last step, a layer at a time; the source's after the decoder's own."""
        heads = {(site.stack, site.layer): site.heads for site in (self.recorder.sites if self.recorder else ())}
        found = []
        for stack, part in self._parts():
            for layer, kept in enumerate(part.layers):
                if not _bytes(kept):
                    continue
                _, key_heads, stored, head_dim = kept.keys.shape  # (sequences, key_heads, tokens, head_dim)
                reused = (stored if self._crossed else 0) if stack == "cross" else min(self._reused, stored)
                found.append(
                    CacheLayer(
                        stack=stack,
                        layer=layer,
                        heads=heads.get((stack, layer), key_heads),
                        key_heads=key_heads,
                        head_dim=head_dim,
                        reused=reused,
                        computed=stored - reused,
                        bytes=_bytes(kept),
                    )
                )
        return tuple(found)

    def _parts(self) -> tuple[tuple[str, Any], ...]:
        if not self.model.seq2seq:
            return (("decoder", self._cache),)
        return ("decoder", self._cache.self_attention_cache), ("cross", self._cache.cross_attention_cache)


def _bytes(layer: Any) -> int:
    keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
    return sum(t.numel() * t.element_size() for t in (keys, values) if t is not None)


def _spread(value: Any, count: int) -> Any:
    """The encoder's output (the same for every sequence) for `count` sequences."""
    if isinstance(value, Tensor):
        return value if len(value) == count else value[:1].expand(count, *value.shape[1:])
    if value is None:
        return None
    return type(value)(**{key: _spread(part, count) for key, part in value.items()})
