"""Runs a model step by step with its key/value cache, for one or several sequences side by side.

Works for decoder-only models and for the decoder of encoder-decoder models, whose encoder runs once. Interventions act
at every step. Where one lets a token see what comes after it, nothing of the step before can be used: every step then
reads the whole text again (`prevents_caching`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicLayer

from attention_models.forward.ablation import ablated
from attention_models.forward.capture import Recorder, recording
from attention_models.forward.intervened import edited_positions
from attention_models.forward.logits import last_only
from attention_models.forward.model import Encoded, Model
from attention_models.forward.output_weights import check_edits, keep_output_weights
from attention_models.forward.run import check_finite
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.decoding import CacheLayer
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention, Mask, check
from attention_models.protocol.request import never
from attention_models.protocol.values import Site
from attention_models.textbook.transformer_config import TransformerConfig


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


def start_run(model: Model, encoded: Encoded, interventions: Sequence[Intervention] = ()) -> Run:
    """Begin to write after a prompt, in the way of the model's family.

    Raises:
        InputError: the model does not write, or cannot be changed in such a way.
    """
    own = getattr(model, "start_run", None)
    if own is None:
        return CachedRun(model, encoded, interventions)
    if interventions:
        raise InputError(f"{model.info.name} is a recurrent model: interventions are for transformers.")
    run: Run = own(encoded)
    return run


def prevents_caching(interventions: Sequence[Intervention], prompt: int) -> Intervention | None:
    """The first that keeps a step from going on from the one before; None where none does.

    Under some masks a token of the decoder may see one that is written after it: what was computed of that token
    changes with each step. The first `prompt` tokens run together: what they see of one another stays. A part that is
    held at what it gives at one position needs that position in every step.
    """
    held = (item for item in interventions if isinstance(item, Ablation) and item.fill == "position" and not item.on)
    pinned = next((skip for skip in held if skip.site.stack != "encoder"), None)
    if pinned is not None:
        return pinned
    masks = (item for item in interventions if isinstance(item, Mask))
    own = (mask for mask in masks if mask.site is None or mask.site.stack == "decoder")
    return next((mask for mask in own if not mask.allows_cache(prompt)), None)


def _attends_to_later(model: Model) -> Intervention | None:
    """The mask that a textbook transformer was made with, where its decoder has none that hides later tokens."""
    config = model.config
    return Mask("trained") if isinstance(config, TransformerConfig) and not config.causal_mask else None


def empty_cache(model: Model) -> Any:
    """Room for what a model that writes keeps of the tokens that were run."""
    if not model.seq2seq:
        return DynamicCache(config=model.config)
    module: Any = model.module
    config = module.get_decoder().config  # transformers counts T5's encoder's layers; its decoder may have more
    return EncoderDecoderCache(DynamicCache(config=config), DynamicCache(config=config))


def cache_name(model: Model) -> str:
    """Of the argument that it is given as. It was renamed in transformers 5.24; older releases know the older one."""
    return "cache" if model.accepts("cache") else "past_key_values"


class CachedRun:
    """One prompt and what was written after it. `ids` are the decoder's, prompt included: (sequences, tokens)."""

    def __init__(self, model: Model, encoded: Encoded, interventions: Sequence[Intervention] = ()) -> None:
        self.model = model
        self.interventions = tuple(interventions)
        self._inputs = encoded.inputs
        try:
            check_edits(model, self.interventions)
        except ValueError as error:
            raise InputError(str(error)) from None
        self._fixed: dict[str, Any] = {}
        self.encoder = Recorder(model.module_names)
        """What the encoder's pass left behind; nothing where there is no encoder."""
        if model.seq2seq:
            module: Any = model.module
            inputs = {k: v for k, v in encoded.inputs.items() if not k.startswith("decoder_")}
            self.encoder = Recorder(model.module_names, True, never, self.interventions)
            edits = edited_positions(model, inputs, self.interventions)
            with (
                torch.no_grad(),
                recording(self.encoder),
                model.adapter_as(self.interventions),
                self._skipped(),
                edits as inputs,
            ):
                self._fixed = {
                    "encoder_outputs": module.get_encoder()(**inputs),
                    "attention_mask": encoded.inputs.get("attention_mask"),
                }
            self.ids = encoded.inputs["decoder_input_ids"]
        elif model.info.family == "causal":
            self.ids = encoded.inputs["input_ids"]
        else:
            raise InputError(f"{model.info.name} does not write from left to right: there is nothing to decode.")
        self._cache_name, self._cache = cache_name(model), empty_cache(model)
        self.prompt = self.ids.shape[1]
        self.prevents_caching = prevents_caching(self.interventions, self.prompt) or _attends_to_later(model)
        self._cached = 0
        self._before: dict[tuple[str, int], int] = {}  # tokens that each layer kept before the last step
        self._added = 0  # tokens that the last step ran
        self.recorder: Recorder | None = None
        self.said: Tensor | None = None  # (sequences, tokens, vocabulary): the logits of what the last step ran
        self.read = self.ids[:, :0]  # what the last step ended with, before anything was appended

    @torch.no_grad()
    def logits(self) -> Tensor:
        """Run what is not in the cache yet; the next token's logits, (sequences, vocabulary) float32.

        `recorder` then holds what each attention site was given in this step: its queries are the new tokens only.
        """
        limit = self.model.info.context
        if limit is not None and self.ids.shape[1] > limit:
            raise InputError(f"The context is full: {self.model.info.name} takes {limit:,} tokens.")
        if self.model.scales_at is not None and self.ids.shape[1] > self.model.scales_at:
            self._cached, self._cache = 0, empty_cache(self.model)  # a longer text turns all of its keys anew
        self.model.forget_lengths()
        past = self._cached
        recorder = Recorder(self.model.module_names, self.model.seq2seq, never, self.interventions, past)
        name = "decoder_input_ids" if self.model.seq2seq else "input_ids"
        inputs = {name: self.ids[:, past:], **self._fixed}
        options: dict[str, Any] = {**self.model.forward_options, "use_cache": self.prevents_caching is None}
        options |= last_only(self.model, self.ids.shape[1] - past)
        if self.prevents_caching is None:
            options[self._cache_name] = self._cache
        elif not self.model.seq2seq:  # else positions that do not count up would pass for several texts in one
            inputs["attention_mask"] = torch.ones_like(self.ids)
        self._before = {
            (stack, i): _tokens(kept) for stack, part in self._parts() for i, kept in enumerate(part.layers)
        }
        self._added = self.ids.shape[1] - past
        edits = edited_positions(self.model, inputs, self.interventions, past)
        with recording(recorder), self.model.adapter_as(self.interventions), self._skipped(), edits as inputs:
            out = self.model.module(**inputs, **options)
            if self.model.info.weights_only:
                keep_output_weights(self.model, recorder, out, self.ids.shape[1])
        if self.recorder is None:
            self._check([*self.encoder.sites, *recorder.sites])
        self._cached = 0 if self.prevents_caching is not None else self.ids.shape[1]
        self.recorder, self.read = recorder, self.ids
        self.said = out.logits
        logits: Tensor = out.logits[:, -1].float()
        if not bool(logits.amax() < torch.inf):  # a choice among them waits for the device anyway
            check_finite(self.model.info.name, recorder, out)
        return logits

    @property
    def keeps_rows(self) -> bool:
        """Whether the weights of a step are still those of the next: not where every step may read all anew."""
        return self.prevents_caching is None and self.model.scales_at is None

    @property
    def keeps_every_key(self) -> bool:
        """Whether the cache holds the decoder's own keys of all tokens: a sliding window forgets the first."""
        return self.prevents_caching is None and all(
            type(layer) is DynamicLayer for layer in self._parts()[0][1].layers
        )

    def append(self, tokens: Tensor, sources: Tensor | None = None) -> None:
        """Append one token a sequence, (sequences,). `sources` says which of the present sequences each goes on from.

        More sources than sequences make them branch; the cache follows.
        """
        if sources is not None:
            if self.prevents_caching is None:
                self._cache.reorder_cache(sources)
            self.ids = self.ids[sources]
            self._fixed = {key: _spread(value, len(sources)) for key, value in self._fixed.items()}
        self.ids = torch.cat([self.ids, tokens[:, None]], dim=1)

    def crop(self, length: int) -> bool:
        """Go back to the first `length` tokens of the one sequence and forget what was cached of the others.

        Returns False, and changes nothing, where a cache does not allow it (a sliding window has forgotten).
        """
        own = self._parts()[0][1]
        forgets = length < self._cached
        if len(self.ids) != 1 or (forgets and any(type(layer) is not DynamicLayer for layer in own.layers)):
            return False
        self.ids = self.ids[:, :length]
        if forgets:
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
                sequences, key_heads, stored, head_dim = kept.keys.shape  # (sequences, key_heads, tokens, head_dim)
                reused = self._before.get((stack, layer), 0)
                found.append(
                    CacheLayer(
                        stack=stack,
                        layer=layer,
                        heads=heads.get((stack, layer), key_heads),
                        key_heads=key_heads,
                        head_dim=head_dim,
                        reused=reused,
                        computed=self._added if stack != "cross" else stored - reused,
                        stored=stored,
                        bytes=_bytes(kept),
                        texts=sequences,
                    )
                )
        return tuple(found)

    def _skipped(self) -> AbstractContextManager[None]:
        return ablated(self.model, self._inputs, self.interventions)

    def _check(self, sites: list[Site]) -> None:
        """Raises InputError where an intervention names a layer or a head that the model does not have."""
        try:
            check(self.interventions, sites)
        except ValueError as error:
            raise InputError(str(error)) from None

    def _parts(self) -> tuple[tuple[str, Any], ...]:
        if not self.model.seq2seq:
            return (("decoder", self._cache),)
        return ("decoder", self._cache.self_attention_cache), ("cross", self._cache.cross_attention_cache)


def _bytes(layer: Any) -> int:
    keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
    return sum(t.numel() * t.element_size() for t in (keys, values) if t is not None)


def _tokens(layer: Any) -> int:
    """How many tokens' keys a layer of a cache keeps; 0 before its first step."""
    keys = getattr(layer, "keys", None)
    return 0 if keys is None or not keys.numel() else int(keys.shape[-2])


def _spread(value: Any, count: int) -> Any:
    """The encoder's output (the same for every sequence) for `count` sequences."""
    if isinstance(value, Tensor):
        return value if len(value) == count else value[:1].expand(count, *value.shape[1:])
    if value is None:
        return None
    return type(value)(**{key: _spread(part, count) for key, part in value.items()})
