"""What transformers' own eager model, or NumPy, says of the text in a window: nothing of it is the program's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import transformers

from attention_models import open_checkpoint
from attention_models.files.catalogue import WEIGHTS
from attention_models.protocol.running import Ran
from attention_models.protocol.values import SiteRef
from attention_models.textbook.recurrent import RecurrentSeq2Seq
from tests.models.recurrent_by_hand import Hand

CLASSES: dict[str, Any] = {
    "story-gpt": transformers.AutoModelForCausalLM,
    "story-bert": transformers.AutoModelForMaskedLM,
    "en-es": transformers.AutoModelForSeq2SeqLM,
    "vit-cifar10": transformers.AutoModelForImageClassification,
}
_NAMES = {"q": ("query", "q_proj"), "k": ("key", "k_proj"), "v": ("value", "v_proj")}


@dataclass
class Facts:
    """Of one run. `weights` are (heads, queries, keys), `streams` a tuple of (tokens, width) a stack."""

    weights: dict[SiteRef, np.ndarray]
    logits: np.ndarray  # (positions, vocabulary) float64; of a classifier of pictures (classes,)
    streams: dict[str, list[np.ndarray]] = field(default_factory=dict)
    outputs: dict[str, np.ndarray] = field(default_factory=dict)  # of every module that gives a vector a token
    scores: np.ndarray | None = None  # (steps, source) of a recurrent model
    module: Any = None

    def part(self, site_module: str, which: str) -> np.ndarray:
        """(tokens, heads * dim): queries, keys or values of an attention module, before they are cut into heads."""
        for name, output in self.outputs.items():
            inside = name.removeprefix(f"{site_module}.")
            if inside != name and inside.endswith(_NAMES[which]):
                return output
            if inside == "c_attn":
                return np.split(output, 3, axis=-1)["qkv".index(which)]
        raise LookupError(f"{site_module} has no {which}")


def facts_of(name: str, ran: Ran, picture: str = "") -> Facts:
    """What a shipped checkpoint gives for the ids that ran."""
    ids = torch.tensor([[token.id for token in ran.tokens]])
    source = torch.tensor([[token.id for token in ran.source]])
    if name not in CLASSES:
        return _recurrent(name, ran)
    module = CLASSES[name].from_pretrained(WEIGHTS / name, attn_implementation="eager", dtype=torch.float32).eval()
    outputs: dict[str, np.ndarray] = {}
    for path, part in module.named_modules():
        part.register_forward_hook(lambda _m, _i, out, path=path: _keep(outputs, path, out))
    asked: dict[str, Any] = {"output_attentions": True, "output_hidden_states": True}
    with torch.no_grad():
        match name:
            case "en-es":
                out = module(input_ids=source, decoder_input_ids=ids, **asked)
                kinds = {"encoder": out.encoder_attentions, "decoder": out.decoder_attentions}
                kinds["cross"] = out.cross_attentions
                states = {"encoder": out.encoder_hidden_states, "decoder": out.decoder_hidden_states}
            case "vit-cifar10":
                pixels = open_checkpoint(name).encode(picture).inputs["pixel_values"]
                out = module(pixel_values=pixels, **asked)
                kinds, states = {"encoder": out.attentions}, {"encoder": out.hidden_states}
            case _:
                out = module(input_ids=ids, **asked)
                stack = "encoder" if name == "story-bert" else "decoder"
                kinds, states = {stack: out.attentions}, {stack: out.hidden_states}
    weights = {SiteRef(k, i): each[0].numpy() for k, layers in kinds.items() for i, each in enumerate(layers)}
    streams = {stack: [state[0].numpy() for state in each] for stack, each in states.items()}
    return Facts(weights, out.logits[0].double().numpy(), streams, outputs, module=module)


def _keep(outputs: dict[str, np.ndarray], path: str, out: Any) -> None:
    first = out[0] if isinstance(out, tuple) else out
    if isinstance(first, torch.Tensor) and first.dim() == 3:
        outputs[path] = first[0].numpy()


def _recurrent(name: str, ran: Ran) -> Facts:
    module = open_checkpoint(name).module
    assert isinstance(module, RecurrentSeq2Seq)
    hand = Hand(module).run([token.id for token in ran.source], [token.id for token in ran.tokens])
    weights = {SiteRef("cross", 0): np.array([hand.weights])}
    return Facts(weights, np.array(hand.logits), scores=np.array(hand.scores), module=hand)


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: np.ndarray = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def bits_of(shares: np.ndarray) -> float:
    """By torch, in float64."""
    given = torch.from_numpy(np.asarray(shares, np.float64))
    return float(torch.special.entr(given).sum() / np.log(2))
