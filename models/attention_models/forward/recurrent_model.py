"""Opens the recurrent checkpoints, and runs them so that the panels of transformers serve them too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from attention_models.files.catalogue import WEIGHTS, read_card
from attention_models.forward.capture import active
from attention_models.forward.model import Encoded, Model
from attention_models.forward.trace import Trace
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.values import CheckpointInfo, Site, StackInfo
from attention_models.textbook.config import RecurrentConfig
from attention_models.textbook.recurrent import Decoded, DecoderState, RecurrentSeq2Seq

MODEL_TYPE = "explorer-recurrent"
MOST_TOKENS = 128
_MOST_WIDTH = 4096  # a config that asks for more describes no textbook model


class RecurrentModel(Model):
    """A recurrent encoder and decoder. Its one attention site, if it has any, is ("cross", 0) with one head."""

    module: RecurrentSeq2Seq

    def __init__(self, info: CheckpointInfo, module: RecurrentSeq2Seq, tokenizer: Any) -> None:
        super().__init__(info, module, tokenizer)
        self._last: tuple[tuple[tuple[int, ...], tuple[int, ...]], Decoded] | None = None

    def forward(self, inputs: Mapping[str, Tensor]) -> Any:
        recorder = active()
        if recorder is not None and recorder.interventions:
            raise InputError(f"{self.info.name} is a recurrent model: interventions are for transformers.")
        with torch.no_grad():
            out = self.module(inputs["input_ids"], inputs["decoder_input_ids"])
        self._last = (_ids(inputs["input_ids"]), _ids(inputs["decoder_input_ids"])), out
        if recorder is not None and out.inputs is not None:
            recorder.inputs.append(out.inputs)
            recorder.sites.append(
                Site(
                    stack="cross",
                    layer=0,
                    heads=1,
                    key_heads=1,
                    head_dim=self.module.config.hidden,
                    queries=out.inputs.queries,
                    keys=out.inputs.keys,
                    module="score",
                )
            )
        return out

    def read_again(self, trace: Trace) -> Decoded:
        """The hidden states behind `trace`, batch 1: the trace keeps those that are looked at alone.

        The last run's are kept, as every cell that is looked at asks for them.
        """
        ids = tuple(token.id for token in trace.source), tuple(token.id for token in trace.tokens)
        if self._last is None or self._last[0] != ids:
            source, target = (torch.tensor([side], device=self.device) for side in ids)
            with torch.no_grad():
                self._last = (ids, self.module(source, target))
        return self._last[1]

    def start_run(self, encoded: Encoded) -> RecurrentRun:
        return RecurrentRun(self, encoded)


def _ids(row: Tensor) -> tuple[int, ...]:
    return tuple(int(id_) for id_ in row[0])


class RecurrentRun:
    """Writes step by step, as `CachedRun` does for transformers; what is kept is a state, not a cache."""

    def __init__(self, model: RecurrentModel, encoded: Encoded) -> None:
        self.model = model
        self.ids = encoded.inputs["decoder_input_ids"]
        self.prompt = self.ids.shape[1]
        with torch.no_grad():
            self._writing: DecoderState = model.module.begin(encoded.inputs["input_ids"])
            for word in self.ids[:, :-1].unbind(1):
                _, self._writing = model.module.step(self._writing, word)

    @torch.no_grad()
    def logits(self) -> Tensor:
        """The next token's logits, (sequences, vocabulary) float32."""
        logits, self._writing = self.model.module.step(self._writing, self.ids[:, -1])
        return logits.float()

    def append(self, tokens: Tensor, sources: Tensor | None = None) -> None:
        if sources is not None:
            self._writing = self._writing.taken(sources)
            self.ids = self.ids[sources]
        self.ids = torch.cat([self.ids, tokens[:, None]], dim=1)

    @property
    def cache_bytes(self) -> int:
        kept = (self._writing.states, self._writing.keys, self._writing.state, self._writing.memory)
        return sum(t.numel() * t.element_size() for t in kept)


def open_recurrent(folder: Path, raw: dict[str, Any], reference: str) -> RecurrentModel:
    """Open a checkpoint that `attention_models.training.recurrent` wrote; `raw` is its config.json.

    Raises:
        CheckpointError: config, weights and tokenizer do not make a whole.
    """
    try:
        known = {f.name for f in fields(RecurrentConfig)}
        config = RecurrentConfig(**{key: value for key, value in raw.items() if key in known})
        if max(config.hidden, config.embedding) > _MOST_WIDTH or config.vocabulary > 1 << 18:
            raise ValueError("it describes a far larger model than any of these")
        module = RecurrentSeq2Seq(config)
        weights = load_file(folder / "model.safetensors")
        module.load_state_dict({name: t.float() for name, t in weights.items()})
    except RuntimeError as cause:  # names and shapes, one a line
        raise CheckpointError(f"{folder.name}: its weights do not fit its config. Fetch its files again.") from cause
    except (TypeError, ValueError, OSError, SafetensorError) as cause:
        first = str(cause).strip().splitlines()[0].rstrip(".")
        raise CheckpointError(f"{folder.name} cannot be loaded: {first}. Fetch its files again.") from cause
    try:
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_file(str(folder / "tokenizer.json")),
            bos_token="<s>",
            eos_token="</s>",
            pad_token="<pad>",
            unk_token="<unk>",
            model_max_length=MOST_TOKENS,
        )
    except Exception as cause:  # the tokenizers library raises plain Exception
        raise CheckpointError(f"{folder.name}: its tokenizer cannot be read. Fetch tokenizer.json again.") from cause
    return RecurrentModel(_info(folder, config, module, reference), module, tokenizer)


def _info(folder: Path, config: RecurrentConfig, module: nn.Module, reference: str) -> CheckpointInfo:
    card = read_card(folder)
    return CheckpointInfo(
        reference=reference,
        name=card.title,
        folder=str(folder),
        family="seq2seq",
        model_type=MODEL_TYPE,
        architecture="RecurrentSeq2Seq",
        stacks=() if config.score == "none" else (StackInfo("cross", 1, 1, 1),),
        width=config.hidden,
        context=MOST_TOKENS,
        vocabulary=config.vocabulary,
        parameters=sum(p.numel() for p in module.parameters()),
        file_bytes=(folder / "model.safetensors").stat().st_size,
        summary=card.summary,
        look=card.look,
        example=card.example,
        reads=card.reads,
        prefix="",
        shipped=folder.parent == WEIGHTS,
        textbook=True,
    )
