"""Sequence to sequence with recurrent networks, and the attention that was invented for them.

    encoder   h_1 .. h_S = GRU(x_1 .. x_S), both directions side by side
    score     e_ij = v . tanh(W s_{i-1} + U h_j)       additive: Bahdanau et al. 2015, appendix A.1.2
                     s_i . h_j | s_i . W h_j | v . tanh(W [s_i; h_j])     dot, general, concat: Luong et al. 2015, eq. 8
    weight    a_ij = softmax over j of e_ij
    context   c_i = sum_j a_ij h_j
    decoder   s_i = GRU([y_{i-1}; c_i], s_{i-1})       Bahdanau: the context goes in
              s_i = GRU(y_{i-1}, s_{i-1}), then tanh(W_c [c_i; s_i])     Luong: it is mixed in afterwards

Without attention the decoder has one context for all words, made of the encoder's last states: the bottleneck
(Cho et al. 2014). Luong's local attention looks through a window of 2 D + 1 words around a place p_i, which moves with
the words written (monotonic) or is predicted (equations 9 and 10).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_models.attention import output as mixing
from attention_models.attention.inputs import AttentionInputs
from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.scores import SCORES, Place

_NOTHING = torch.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """What the decoder did at every step."""

    logits: Tensor  # (batch, steps, target vocabulary)
    inputs: AttentionInputs | None  # scores enter as a bias, values are encoder states; None for the bottleneck
    states: Tensor  # (batch, steps, hidden)
    contexts: Tensor  # (batch, steps, encoded)
    looking: Tensor  # (batch, steps, hidden): the states that were scored; Bahdanau's are those of the step before
    encoded: Tensor  # (batch, source, encoded)
    first: Tensor  # (batch, hidden): the decoder's state before the first step


class RecurrentSeq2Seq(nn.Module):
    """An encoder, an attention (or none) and a decoder, chosen once by the config."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        recurrent = nn.GRU if config.cell == "gru" else nn.LSTM
        cell = nn.GRUCell if config.cell == "gru" else nn.LSTMCell
        self.source_embedding = nn.Embedding(config.vocabulary, config.embedding, padding_idx=config.pad)
        self.target_embedding = nn.Embedding(config.target_vocabulary, config.embedding, padding_idx=config.pad)
        self.encoder = recurrent(config.embedding, config.hidden, batch_first=True, bidirectional=config.bidirectional)
        self.bridge = nn.Linear(config.encoded, config.hidden)  # the decoder's first state
        luong = config.is_luong
        self.decoder = cell(config.embedding + (0 if luong else config.encoded), config.hidden)
        self.combine = nn.Linear(config.encoded + config.hidden + (0 if luong else config.embedding), config.hidden)
        self.output = nn.Linear(config.hidden, config.target_vocabulary)
        self.dropout = nn.Dropout(config.dropout)
        self.score = SCORES[config.score](config)
        self.place = Place(config) if config.scope == "predictive" else None
        self._advance = self._luong if luong else self._bahdanau

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Encoder states (batch, source, encoded) and the decoder's first state (batch, hidden), for padded ids."""
        lengths = (source != self.config.pad).sum(dim=1).clamp(min=1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.source_embedding(source)), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = self.encoder(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        last = states.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, states.shape[-1]))[:, 0]
        if self.config.bidirectional:  # the backward direction ends at the first word
            half = self.config.hidden
            last = torch.cat([last[:, :half], states[:, 0, half:]], dim=-1)
        return states, torch.tanh(self.bridge(last))

    def begin(self, source: Tensor) -> DecoderState:
        """Read the source, (batch, source) ids; nothing is written yet."""
        states, first = self.encode(source)
        masked = source == self.config.pad  # (batch, source)
        return DecoderState(
            states=states,
            keys=self.score.prepare(states),
            masked=masked,
            lengths=(~masked).sum(dim=1),
            state=first,
            memory=torch.zeros_like(first),
            fixed=_bottleneck(first, self.config) if self.config.score == "none" else None,
        )

    def step(self, writing: DecoderState, words: Tensor) -> tuple[Tensor, DecoderState]:
        """Logits (batch, target vocabulary) of what follows `words` (batch,), and the decoder after them."""
        mixed, writing = self._advance(self.dropout(self.target_embedding(words)), writing)
        return self.output(self.dropout(mixed)), writing

    def forward(self, source: Tensor, target: Tensor) -> Decoded:
        """Teacher forcing: what follows each of `target` (batch, steps), which begins with the start token."""
        begun = writing = self.begin(source)
        logits, steps = [], []
        for i in range(target.shape[1]):
            logit, writing = self.step(writing, target[:, i])
            logits.append(logit)
            steps.append(writing)
        inputs = None
        if self.config.score != "none":
            scores, windows = torch.stack([s.scores for s in steps], 1), torch.stack([s.window for s in steps], 1)
            inputs = _inputs(scores, windows, writing.states)
        states = torch.stack([s.state for s in steps], 1)
        before = torch.cat([begun.state[:, None], states[:, :-1]], dim=1)
        return Decoded(
            logits=torch.stack(logits, 1),
            inputs=inputs,
            states=states,
            contexts=torch.stack([s.context for s in steps], 1),
            looking=states if self.config.is_luong else before,
            encoded=begun.states,
            first=begun.state,
        )

    def _bahdanau(self, word: Tensor, writing: DecoderState) -> tuple[Tensor, DecoderState]:
        writing = self._look(writing)
        writing = self._turn(torch.cat([word, writing.context], dim=-1), writing)
        return torch.tanh(self.combine(torch.cat([writing.state, writing.context, word], dim=-1))), writing

    def _luong(self, word: Tensor, writing: DecoderState) -> tuple[Tensor, DecoderState]:
        writing = self._look(self._turn(word, writing))
        return torch.tanh(self.combine(torch.cat([writing.context, writing.state], dim=-1))), writing

    def _turn(self, x: Tensor, writing: DecoderState) -> DecoderState:
        """One turn of the recurrent cell."""
        if self.config.cell == "gru":
            return replace(writing, state=self.decoder(x, writing.state))
        state, memory = self.decoder(x, (writing.state, writing.memory))
        return replace(writing, state=state, memory=memory)

    def _look(self, writing: DecoderState) -> DecoderState:
        """Look back at the source: scores, window and context for the decoder's present state."""
        if writing.fixed is not None:
            return replace(writing, context=writing.fixed, written=writing.written + 1)
        scores, window = self.score(writing.state, writing.keys), writing.masked  # (batch, source) each
        if self.config.scope != "global":
            distance = torch.arange(window.shape[1], device=window.device)[None] - self._centre(writing)
            window = window | (distance.abs() > self.config.window)
            if self.place is not None:  # a Gaussian around the predicted place: its logarithm joins the scores
                scores = scores - distance**2 / (2 * (self.config.window / 2) ** 2)
        mixed = mixing.output(_inputs(scores[:, None], window[:, None], writing.states))  # (batch, 1, 1, encoded)
        return replace(writing, scores=scores, window=window, context=mixed[:, 0, 0], written=writing.written + 1)

    def _centre(self, writing: DecoderState) -> Tensor:
        """The place that local attention attends to, (batch, 1)."""
        if self.place is not None:
            centre: Tensor = self.place(writing.state, writing.lengths)
            return centre
        return torch.clamp(writing.lengths - 1, max=writing.written)[:, None].float()


@dataclass(frozen=True, slots=True, eq=False)
class DecoderState:
    """A decoder in the middle of its work. Tensors have the batch first."""

    states: Tensor  # (batch, source, encoded): what is looked back at
    keys: Tensor  # (batch, source, ...): the score function's view of them
    masked: Tensor  # (batch, source) bool: padding
    lengths: Tensor  # (batch,)
    state: Tensor  # (batch, hidden)
    memory: Tensor  # (batch, hidden): of an LSTM
    fixed: Tensor | None  # (batch, encoded): the bottleneck's one context; None with attention
    written: int = 0
    scores: Tensor = _NOTHING  # (batch, source): of the last look
    window: Tensor = _NOTHING  # (batch, source) bool: what is masked
    context: Tensor = _NOTHING  # (batch, encoded): what it brought

    def taken(self, sources: Tensor) -> DecoderState:
        """The same for some of the batch, in this order."""
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        picked: dict[str, Any] = {name: t[sources] for name, t in parts.items() if isinstance(t, Tensor) and len(t)}
        return replace(self, **picked)


def _inputs(scores: Tensor, masked: Tensor, states: Tensor) -> AttentionInputs:
    """The one attention function's inputs, for scores that are no product of a query and a key: they enter as a bias.

    Shapes: scores and masked (batch, steps, source), states (batch, source, encoded).
    """
    batch, steps, source = scores.shape
    return AttentionInputs(
        query=scores.new_zeros(batch, 1, steps, 1),
        key=scores.new_zeros(batch, 1, source, 1),
        value=states[:, None],
        scale=1.0,
        mask=~masked[:, None],
        bias=scores[:, None],
    )


def _bottleneck(first: Tensor, config: RecurrentConfig) -> Tensor:
    """One context for every step: the decoder's first state, in the place of the states that attention would mix."""
    return F.pad(first, (0, config.encoded - config.hidden))
