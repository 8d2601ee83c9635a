"""The recurrent models once more, written out in float64 NumPy, one vector at a time."""

from __future__ import annotations

import numpy as np

from attention_models.textbook.recurrent import RecurrentSeq2Seq


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Hand:
    """The whole model once more, one vector at a time."""

    def __init__(self, model: RecurrentSeq2Seq) -> None:
        self.config = model.config
        self.named = {name: t.detach().numpy() for name, t in model.state_dict().items()}
        self.states: list[np.ndarray] = []  # the decoder's, after each step
        self.scores: list[list[float]] = []  # before any window
        self.weights: list[list[float]] = []
        self.logits: list[np.ndarray] = []

    def linear(self, name, x):
        bias = self.named.get(f"{name}.bias", 0.0)
        return self.named[f"{name}.weight"] @ x + bias

    def turn(self, where: str, suffix: str, x, h, c):
        gates_x = self.named[f"{where}.weight_ih{suffix}"] @ x + self.named[f"{where}.bias_ih{suffix}"]
        gates_h = self.named[f"{where}.weight_hh{suffix}"] @ h + self.named[f"{where}.bias_hh{suffix}"]
        if self.config.cell == "lstm":
            i, f, g, o = np.split(gates_x + gates_h, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            return sigmoid(o) * np.tanh(c), c
        (rx, zx, nx), (rh, zh, nh) = np.split(gates_x, 3), np.split(gates_h, 3)
        z = sigmoid(zx + zh)
        return (1 - z) * np.tanh(nx + sigmoid(rx + rh) * nh) + z * h, c

    def read(self, ids: list[int], suffix: str) -> list[np.ndarray]:
        h = c = np.zeros(self.config.hidden)
        states = []
        for id_ in ids:
            h, c = self.turn("encoder", suffix, self.named["source_embedding.weight"][id_], h, c)
            states.append(h)
        return states

    def score(self, s: np.ndarray, h: np.ndarray) -> float:
        match self.config.score:
            case "dot" | "general":
                return float(s @ (self.linear("score.narrow", h) if "score.narrow.weight" in self.named else h))
            case _:
                inside = np.tanh(self.linear("score.w", s) + self.linear("score.u", h))
                return float(self.linear("score.v", inside)[0])

    def look(self, s, encoded, step):
        e = [self.score(s, h) for h in encoded]
        self.scores.append(e)
        last, d = len(encoded) - 1, self.config.window
        factors = [1.0] * len(encoded)
        if self.config.scope == "monotonic":
            factors = [float(abs(j - min(step, last)) <= d) for j in range(len(encoded))]
        if self.config.scope == "predictive":
            p = last * sigmoid(self.linear("place.v", np.tanh(self.linear("place.w", s)))[0])
            # Luong et al. 2015, equation 10, with sigma = D / 2; here the row is made to sum to 1 after it
            factors = [
                float(np.exp(-((j - p) ** 2) / (2 * (d / 2) ** 2))) if abs(j - p) <= d else 0.0
                for j in range(len(encoded))
            ]
        powers = [np.exp(score - max(e)) * factor for score, factor in zip(e, factors, strict=True)]
        self.weights.append([power / sum(powers) for power in powers])
        return sum(w * h for w, h in zip(self.weights[-1], encoded, strict=True))

    def run(self, source: list[int], target: list[int]) -> Hand:
        config = self.config
        encoded = self.read(source, "_l0")
        last = encoded[-1]
        if config.bidirectional:
            backward = self.read(source[::-1], "_l0_reverse")[::-1]
            last = np.concatenate([encoded[-1], backward[0]])
            encoded = [np.concatenate(pair) for pair in zip(encoded, backward, strict=True)]
        first = s = np.tanh(self.linear("bridge", last))
        memory = np.zeros_like(s)
        for step, id_ in enumerate(target):
            y = self.named["target_embedding.weight"][id_]
            if config.score in ("none", "bahdanau"):
                if config.score == "none":
                    context = np.concatenate([first, np.zeros(config.encoded - config.hidden)])
                else:
                    context = self.look(s, encoded, step)
                s, memory = self.turn("decoder", "", np.concatenate([y, context]), s, memory)
                joined = np.concatenate([s, context, y])
            else:
                s, memory = self.turn("decoder", "", y, s, memory)
                context = self.look(s, encoded, step)
                joined = np.concatenate([context, s])
            self.states.append(s)
            self.logits.append(self.linear("output", np.tanh(self.linear("combine", joined))))
        return self
