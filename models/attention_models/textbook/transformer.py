"""The transformer, to be read beside "Attention Is All You Need" (Vaswani et al. 2017), whose sections are named.

    stack        embedding * sqrt(d_model) + positions, then N blocks          sections 3.1, 3.4, 3.5
    block        x = norm(x + sublayer(x)) for each of its sublayers           section 3.1
    sublayers    self-attention, attention to the encoder, feed-forward        sections 3.2.3, 3.3
    attention    softmax(Q K^T / sqrt(d_k)) V, in h heads side by side         sections 3.2.1, 3.2.2

An encoder and a decoder are two stacks of the same blocks; either can stand alone (BERT: Devlin et al. 2019; GPT:
Radford et al. 2018). The config's switches name what came later: norms before the sublayers, rotary positions and so
on. Each is resolved once, where the module is made.

The numbers of attention come from the function that transformers' interface names: `eager_attention_forward` below,
the formula as it is printed, or the program's one attention function, which computes the same and can be watched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from attention_models.textbook import waves
from attention_models.textbook.transformer_config import TransformerConfig

IGNORE = -100
"""The label of a place where nothing is to be predicted."""


# ----------------------------------------------------------------------------------------- 3.2 Attention


def eager_attention_forward(
    module: nn.Module,
    query: Tensor,  # (batch, heads, queries, head_dim)
    key: Tensor,  # (batch, key_heads, keys, head_dim)
    value: Tensor,  # (batch, key_heads, keys, head_dim)
    attention_mask: Tensor | None,  # broadcasts to (batch, heads, queries, keys): True is visible; or added
    scaling: float,
    position_bias: Tensor | None = None,  # broadcasts likewise
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """3.2.1, equation 1: Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V."""
    group = query.shape[1] // key.shape[1]  # query heads that share a key head: Ainslie et al. 2023
    key, value = (t.repeat_interleave(group, dim=1) for t in (key, value))  # (batch, heads, keys, head_dim)
    scores = torch.matmul(query, key.mT) * scaling  # (batch, heads, queries, keys)
    if position_bias is not None:
        scores = scores + position_bias
    lowest = torch.finfo(scores.dtype).min
    if attention_mask is None and module.is_causal and query.shape[2] > 1:
        attention_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attention_mask is not None:
        is_bool = attention_mask.dtype == torch.bool
        scores = scores.masked_fill(~attention_mask, lowest) if is_bool else scores + attention_mask
    weights = torch.softmax(_single(scores), dim=-1).to(query.dtype)  # each row sums to 1
    return torch.matmul(weights, value).transpose(1, 2), weights  # (batch, queries, heads, head_dim)


def _single(t: Tensor) -> Tensor:
    """In float32, where it was coarser."""
    return t.to(torch.promote_types(t.dtype, torch.float32))


class MultiHeadAttention(nn.Module):
    """3.2.2: h attentions side by side, each on its own projection of queries, keys and values."""

    def __init__(self, config: TransformerConfig, layer: int, stack: str) -> None:
        super().__init__()
        self.config, self.layer_idx, self.stack = config, layer, stack
        self.is_causal = stack == "decoder" and config.causal_mask  # 3.2.3: no token attends to a later one
        self.heads, self.key_heads = config.heads, config.key_heads
        self.q_proj = nn.Linear(config.width, config.heads * config.head_dim, config.bias)  # W^Q of all heads
        self.k_proj = nn.Linear(config.width, config.key_heads * config.head_dim, config.bias)  # W^K
        self.v_proj = nn.Linear(config.width, config.key_heads * config.head_dim, config.bias)  # W^V
        self.o_proj = nn.Linear(config.heads * config.head_dim, config.width, config.bias)  # W^O
        self.scaling = {"scaled": config.head_dim**-0.5, "dot": 1.0, "additive": 0.0}[config.score]
        self.additive = nn.Linear(config.head_dim, config.heads, bias=False) if config.score == "additive" else None

    def forward(
        self,
        x: Tensor,  # (batch, queries, width)
        memory: Tensor | None = None,  # (batch, keys, width): what the encoder gave, in attention to it
        mask: Tensor | None = None,  # (batch, 1, queries, keys) bool, True is visible
        turn: Callable[[Tensor], Tensor] | None = None,  # rotates queries and keys by their positions
        bias: Tensor | None = None,  # (1, heads, queries, keys)
        cache: Any = None,
    ) -> tuple[Tensor, Tensor | None]:
        """(batch, queries, width), and the weights where the attention function gives them."""
        query = _split(self.q_proj(x), self.heads)  # (batch, heads, queries, head_dim)
        if turn is not None:
            query = turn(query)
        key, value = self._keys_and_values(x, memory, turn, cache)  # (batch, key_heads, keys, head_dim) each
        if self.additive is not None:  # in the place of the product, which counts for nothing
            bias = self._additive(query, key)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        mixed, weights = attend(self, query, key, value, mask, scaling=self.scaling, position_bias=bias)
        return self.o_proj(mixed.flatten(2)), weights  # Concat(head_1, ..., head_h) W^O

    def _keys_and_values(
        self, x: Tensor, memory: Tensor | None, turn: Callable[[Tensor], Tensor] | None, cache: Any
    ) -> tuple[Tensor, Tensor]:
        """Of the text itself, or of `memory`; with a `cache`, those of the steps before in front of them."""
        if isinstance(cache, EncoderDecoderCache):
            if memory is not None and cache.is_updated.get(self.layer_idx):  # the source has not changed since
                kept: Any = cache.cross_attention_cache.layers[self.layer_idx]
                return kept.keys, kept.values
            if memory is not None:
                cache.is_updated[self.layer_idx] = True
            cache = cache.self_attention_cache if memory is None else cache.cross_attention_cache
        read = x if memory is None else memory
        key, value = (_split(project(read), self.key_heads) for project in (self.k_proj, self.v_proj))
        if turn is not None:
            key = turn(key)
        if cache is not None:
            key, value = cache.update(key, value, self.layer_idx)
        return key, value

    def _additive(self, query: Tensor, key: Tensor) -> Tensor:
        """Bahdanau et al. 2015 in each head: v . tanh(q + k), (batch, heads, queries, keys)."""
        assert self.additive is not None
        keys = key.repeat_interleave(self.heads // self.key_heads, dim=1)
        sums = torch.tanh(query[:, :, :, None] + keys[:, :, None])  # (batch, heads, queries, keys, head_dim)
        scores: Tensor = torch.einsum("bhqkd,hd->bhqk", sums, self.additive.weight)
        return scores


def _split(t: Tensor, heads: int) -> Tensor:
    """(batch, tokens, heads * head_dim) to (batch, heads, tokens, head_dim)."""
    parts: Tensor = t.unflatten(-1, (heads, -1))
    return parts.transpose(1, 2)


# ------------------------------------------------------------------- 3.3 Position-wise feed-forward networks


class FeedForward(nn.Module):
    """3.3, equation 2: FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, at each place alike."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.activation = F.relu if config.feed_forward == "relu" else F.gelu  # GELU: Hendrycks and Gimpel 2016
        self.up_proj = nn.Linear(config.width, config.inner, config.bias)  # W_1
        self.down_proj = nn.Linear(config.inner, config.width, config.bias)  # W_2

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.activation(self.up_proj(x)))  # type: ignore[no-any-return]


class SwiGlu(nn.Module):
    """FFN(x) = (silu(x W_g) * x W_1) W_2: Shazeer 2020."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.width, config.inner, config.bias)  # W_g
        self.up_proj = nn.Linear(config.width, config.inner, config.bias)  # W_1
        self.down_proj = nn.Linear(config.inner, config.width, config.bias)  # W_2

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))  # type: ignore[no-any-return]


# --------------------------------------------------------------------------- 3.5 Positional encoding


class Sinusoids(nn.Module):
    """3.5: PE(pos, 2i) = sin(pos / 10000^(2i / d)), PE(pos, 2i + 1) = cos of the same. Nothing is learned."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.shape = (config.context, config.position_width)
        self.register_buffer("weight", self.table(), persistent=False)
        self.weight: Tensor

    def table(self) -> Tensor:
        """(positions, width) float32."""
        return torch.from_numpy(waves.sinusoidal(*self.shape)).float()

    def forward(self, positions: Tensor) -> Tensor:
        return self.weight[positions]


class RotaryEmbedding(nn.Module):
    """Su et al. 2021: dimensions i and i + d/2 of q and k are turned together by pos / 10000^(2i / d)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.turned = config.head_dim  # dimensions
        self.register_buffer("inv_freq", self.speeds(), persistent=False)
        self.inv_freq: Tensor

    def speeds(self) -> Tensor:
        """How fast each pair turns, in radians a position: (pairs,) float32."""
        return (2 * torch.pi / torch.from_numpy(waves.wavelengths(self.turned))).float()

    def forward(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the angles at `positions`, (1, tokens), in the dtype of `x`."""
        angles = (positions[..., None].float() * self.inv_freq).repeat(1, 1, 2)  # (1, tokens, head_dim)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def _turned(t: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Each pair of dimensions of `t`, (batch, heads, tokens, head_dim), rotated by its angle."""
    first, second = t.chunk(2, dim=-1)
    return t * cosines[:, None] + torch.cat([-second, first], dim=-1) * sines[:, None]


class RelativeBias(nn.Module):
    """Raffel et al. 2020 (T5), section 2.1: a learned number a head, by how far a key stands from the query."""

    def __init__(self, config: TransformerConfig, stack: str) -> None:
        super().__init__()
        self.is_decoder = stack == "decoder"
        self.relative_attention_num_buckets = config.buckets
        self.relative_attention_max_distance = config.farthest
        self.relative_attention_bias = nn.Embedding(config.buckets, config.heads)

    def forward(self, distance: Tensor) -> Tensor:
        buckets = waves.t5_buckets(
            distance.cpu().numpy(),
            not self.is_decoder,
            self.relative_attention_num_buckets,
            self.relative_attention_max_distance,
        )
        by_head: Tensor = self.relative_attention_bias(torch.from_numpy(buckets).to(distance.device))
        return by_head.permute(2, 0, 1)[None]  # (1, heads, queries, keys)


class Slopes(nn.Module):
    """Press et al. 2022 (ALiBi): each head's scores fall with distance, at a slope of its own."""

    def __init__(self, config: TransformerConfig, stack: str) -> None:
        super().__init__()
        self.slopes = tuple(waves.alibi_slopes(config.heads).tolist())

    def forward(self, distance: Tensor) -> Tensor:
        slopes = torch.tensor(self.slopes, device=distance.device)[:, None, None]
        return -(slopes * distance.abs())[None]  # (1, heads, queries, keys)


# ------------------------------------------------------------------ 3.1 Encoder and decoder stacks


_NORMS: dict[str, Callable[..., nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
"""By the config's `norm`: Ba et al. 2016; Zhang and Sennrich 2019."""


class Block(nn.Module):
    """3.1: one of a stack's N identical layers: two sublayers, or three in a decoder beside an encoder."""

    def __init__(self, config: TransformerConfig, layer: int, stack: str) -> None:
        super().__init__()
        norm = _NORMS[config.norm]
        self.self_attn = MultiHeadAttention(config, layer, stack)
        self.self_attn_norm = norm(config.width, eps=config.epsilon)
        has_cross = stack == "decoder" and config.shape == "encoder-decoder"
        self.cross_attn = MultiHeadAttention(config, layer, "cross") if has_cross else None
        self.cross_attn_norm = norm(config.width, eps=config.epsilon) if has_cross else None
        feed_forward = {"swiglu": SwiGlu, "none": None}.get(config.feed_forward, FeedForward)
        self.feed_forward = feed_forward(config) if feed_forward is not None else None
        self.feed_forward_norm = norm(config.width, eps=config.epsilon) if feed_forward is not None else None
        self.dropout = nn.Dropout(config.dropout)  # 5.4: on what each sublayer gives
        self._around = _post_norm if config.norm_place == "post" else _pre_norm
        self._join = torch.add if config.residual else _replace

    def forward(
        self,
        x: Tensor,  # (batch, tokens, width): the residual stream
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        turn: Callable[[Tensor], Tensor] | None = None,
        bias: Tensor | None = None,
        cache: Any = None,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.dropout(self.self_attn(x, None, mask, turn, bias, cache)[0])  # type: ignore[no-any-return]

        def attend_to_encoder(x: Tensor) -> Tensor:
            assert self.cross_attn is not None
            return self.dropout(self.cross_attn(x, memory, memory_mask, cache=cache)[0])  # type: ignore[no-any-return]

        def feed_forward(x: Tensor) -> Tensor:
            assert self.feed_forward is not None
            return self.dropout(self.feed_forward(x))  # type: ignore[no-any-return]

        x = self._around(x, attend, self.self_attn_norm, self._join)
        if self.cross_attn_norm is not None:
            x = self._around(x, attend_to_encoder, self.cross_attn_norm, self._join)
        if self.feed_forward_norm is not None:
            x = self._around(x, feed_forward, self.feed_forward_norm, self._join)
        return x  # (batch, tokens, width)


Join = Callable[[Tensor, Tensor], Tensor]
Sublayer = Callable[[Tensor], Tensor]


def _post_norm(x: Tensor, sublayer: Sublayer, norm: nn.Module, join: Join) -> Tensor:
    """LayerNorm(x + Sublayer(x)), as the paper has it."""
    return norm(join(x, sublayer(x)))  # type: ignore[no-any-return]


def _pre_norm(x: Tensor, sublayer: Sublayer, norm: nn.Module, join: Join) -> Tensor:
    """x + Sublayer(LayerNorm(x)): Xiong et al. 2020. What is added up is normalised once, after the last block."""
    return join(x, sublayer(norm(x)))


def _replace(_x: Tensor, given: Tensor) -> Tensor:
    """In the place of the sum, where there is no residual connection."""
    return given


class Stack(nn.Module):
    """3.1: the encoder or the decoder, from ids to the last block's output."""

    def __init__(self, config: TransformerConfig, stack: str) -> None:
        super().__init__()
        self.config, self.stack = config, stack
        self.embedding = nn.Embedding(config.vocabulary, config.token_width)  # 3.4
        self.embed_scale = config.width**0.5 if config.scaled_embedding else 1.0
        self.position_embedding: nn.Module | None = _learned(config) if config.positions == "learned" else None
        if config.positions in ("sinusoidal", "appended", "concatenated"):
            self.position_embedding = Sinusoids(config)
        mapped = config.positions == "concatenated"
        self.joint = nn.Linear(2 * config.width, config.width, bias=False) if mapped else None
        self.rotary = RotaryEmbedding(config) if config.positions == "rope" else None
        bias = {"alibi": Slopes, "t5": RelativeBias}.get(config.positions)
        self.position_bias = bias(config, stack) if bias is not None else None
        self.layers = nn.ModuleList(Block(config, layer, stack) for layer in range(config.layers))
        norm = _NORMS[config.norm]
        self.norm = norm(config.width, eps=config.epsilon) if config.norm_place == "pre" else None
        self.dropout = nn.Dropout(config.dropout)  # 5.4: on the sums of embeddings and positions

    def forward(
        self,
        input_ids: Tensor,  # (batch, tokens)
        attention_mask: Tensor | None = None,  # (batch, tokens so far): 0 is padding
        position_ids: Tensor | None = None,  # (1 or batch, tokens); counted from 0 where they are left out
        memory: Tensor | None = None,  # (batch, source, width): what the encoder gave
        memory_mask: Tensor | None = None,  # (batch, source): 0 is padding
        cache: Any = None,  # of keys and values of the steps before
        **_: Any,  # what else transformers' `generate` hands to an encoder
    ) -> BaseModelOutput:
        past = 0 if cache is None else int(cache.get_seq_length())
        if position_ids is None:
            position_ids = torch.arange(past, past + input_ids.shape[1], device=input_ids.device)[None]
        x = self._embedded(input_ids, position_ids)  # (batch, tokens, width)
        turn = None
        if self.rotary is not None:
            cosines, sines = self.rotary(x, position_ids)

            def turn(t: Tensor) -> Tensor:
                return _turned(t, cosines, sines)

        return BaseModelOutput(last_hidden_state=self.blocks(x, attention_mask, memory, memory_mask, turn, cache, past))

    def blocks(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        turn: Callable[[Tensor], Tensor] | None = None,
        cache: Any = None,
        past: int = 0,
    ) -> Tensor:
        """From what enters the first block to what leaves the last, (batch, tokens, width) both."""
        bias = None
        if self.position_bias is not None:
            keys = torch.arange(past + x.shape[1], device=x.device)
            bias = self.position_bias(keys - keys[past:, None]).to(x.dtype)  # (1, heads, queries, keys)
        mask = self._mask(x, attention_mask, past)
        visible = None if memory_mask is None or bool(memory_mask.all()) else memory_mask[:, None, None].bool()
        for block in self.layers:
            x = block(x, mask, memory, visible, turn, bias, cache)
        return x if self.norm is None else self.norm(x)

    def _embedded(self, ids: Tensor, positions: Tensor) -> Tensor:
        """3.4 and 3.5: embeddings multiplied by sqrt(d_model), and positions added or concatenated."""
        x = self.embedding(ids) * self.embed_scale  # (batch, tokens, token_width)
        if self.position_embedding is not None:
            x = self.joined(x, self.position_embedding(positions))
        return self.dropout(x)  # type: ignore[no-any-return]

    def joined(self, x: Tensor, places: Tensor) -> Tensor:
        """Embeddings (..., token_width) and positions (..., position_width) as one, (..., width): linear in both."""
        if self.config.positions not in ("appended", "concatenated"):
            return x + places
        both = torch.cat([x, places.expand(*x.shape[:-1], -1)], dim=-1)
        return both if self.joint is None else self.joint(both)  # [x; p] W = x W_x + p W_p: two maps, added

    def _mask(self, x: Tensor, attention_mask: Tensor | None, past: int) -> Tensor | None:
        """What each token may attend to, (batch, 1, queries, keys) bool; None where `is_causal` of a module says it."""
        causal = self.stack == "decoder" and self.config.causal_mask
        queries = x.shape[1]
        hides = attention_mask is not None and not bool(attention_mask.all())
        if not hides and not (causal and past and queries > 1):
            return None
        visible = torch.ones(queries, past + queries, dtype=torch.bool, device=x.device)
        if causal:
            visible = visible.tril(past)
        return visible[None, None] if attention_mask is None else visible & attention_mask[:, None, None].bool()


def _learned(config: TransformerConfig) -> nn.Embedding:
    """A vector a position, learned: Gehring et al. 2017; 3.5 finds it as good as the sinusoids."""
    return nn.Embedding(config.context, config.width)


class Transformer(nn.Module):
    """Figure 1 of the paper up to the last linear layer: an encoder, a decoder, or both."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Stack(config, "encoder") if config.shape != "decoder" else None
        self.decoder = Stack(config, "decoder") if config.shape != "encoder" else None

    def forward(
        self,
        input_ids: Tensor,  # (batch, source)
        attention_mask: Tensor | None = None,  # (batch, source)
        position_ids: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,  # (batch, target): shifted right, it begins with the start token
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,  # where the encoder has run before
        cache: Any = None,
    ) -> BaseModelOutput:
        """What the last block of the stack that predicts gives, (batch, tokens, width)."""
        if self.encoder is None:
            assert self.decoder is not None
            decoded: BaseModelOutput = self.decoder(input_ids, attention_mask, position_ids, cache=cache)
            return decoded
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask, position_ids)
        if self.decoder is None:
            return encoder_outputs  # type: ignore[no-any-return]
        memory = encoder_outputs[0]
        return self.decoder(  # type: ignore[no-any-return]
            decoder_input_ids, decoder_attention_mask, None, memory, attention_mask, cache
        )


def loss(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """Cross-entropy in nats, the mean over the labels that are not IGNORE; 5.4: with label smoothing.

    Shapes: logits (..., vocabulary), labels (...).
    """
    return F.cross_entropy(
        _single(logits).flatten(0, -2), labels.flatten(), ignore_index=IGNORE, label_smoothing=smoothing
    )
