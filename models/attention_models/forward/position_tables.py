"""Tables of positions: the modules that give each position its vector, and what their numbers say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.files.devices import weight_of
from attention_models.forward.capture import stack_of
from attention_models.protocol.values import CheckpointInfo, read_only
from attention_models.textbook import waves

LARGEST_IMAGE = 512  # rows of a table that are compared with each other; beyond, every second (third, ...) one

_NAME = re.compile(r"(^|\.)(wpe|position_embeddings?|embed_positions|pos_embed(dings)?)$")
_LAYOUTS: tuple[tuple[waves.Layout, str], ...] = (
    ("interleaved", "a sine and a cosine in turn"),
    ("halves", "all sines in the first half of the dimensions, all cosines in the second"),
)


class Model(Protocol):
    """What is asked of an `attention_models.forward.model.Model`, which reads each text with the help of this file."""

    module: nn.Module
    config: Any

    @property
    def info(self) -> CheckpointInfo: ...

    @property
    def module_names(self) -> Mapping[nn.Module, str]: ...

    @property
    def blocks(self) -> Sequence[tuple[str, nn.Module]]: ...

    @property
    def seq2seq(self) -> bool: ...

    def accepts(self, name: str) -> bool: ...


def position_tables(model: Model) -> dict[str, nn.Module]:
    """The modules that give each position its vector, by name: learned or sinusoidal. Empty for RoPE, T5 and none."""
    return {
        name: module
        for module, name in model.module_names.items()
        if _NAME.search(name) and _weight(module) is not None
    }


def table_rows(table: nn.Module) -> Tensor:
    """The vectors that a table can give, from the one of a text's first token on: (positions, width)."""
    weight = _weight(table)
    assert weight is not None
    return weight[first_id(table) + int(getattr(table, "offset", 0)) :]


def first_id(table: nn.Module) -> int:
    """The position id of a text's first token: RoBERTa and its kin begin after the id of their padding."""
    padding = getattr(table, "padding_idx", None)
    # where the module adds an offset of its own it is asked for 0
    return padding + 1 if isinstance(padding, int) and not hasattr(table, "offset") else 0


def _weight(module: nn.Module) -> Tensor | None:
    for name in ("weight", "weights"):  # fairseq's sinusoids are a buffer, in the plural
        weight = getattr(module, name, None)
        if isinstance(weight, Tensor) and weight.dim() == 2:
            return weight_of(module, name)
    return None


def own_positions(model: Model, inputs: Mapping[str, Tensor]) -> Tensor | None:
    """Position ids with which each text padded on the left is read as if alone, (texts, tokens).

    None where no text is padded on the left, and where the module takes none: see `read_as_if_alone`.
    """
    real, head = inputs.get("attention_mask"), model.info.class_head
    takes = model.accepts("position_ids") and not model.seq2seq and (head is None or head.of != "choice")
    if not takes or real is None or bool(real[:, 0].all()):
        return None
    counted, before = real.bool(), -1
    first = max(map(first_id, position_tables(model).values()), default=0)
    if first:  # RoBERTa and its kin count no token of padding, one that was typed included
        counted = counted & (inputs["input_ids"] != first - 1)
        before = first - 1
        return counted.cumsum(dim=1) * counted + before
    return (counted.cumsum(dim=1) + before).clamp(min=0)


@contextmanager
def read_as_if_alone(model: Model, inputs: Mapping[str, Tensor]) -> Iterator[None]:
    """While it lasts, a text that is padded on the left is read from its own first token, as if it were alone.

    Tables count from there, in the families whose forward takes no `position_ids` (BART, Marian); to the others
    `inputs` gives them. A head that says something of a text as a whole reads its first token (BERT's pooler), and not
    the padding in the first place. MobileBERT's embeddings of the tokens beside each are none of padding either.
    """
    handles = [module.register_forward_hook(hook) for module, hook in _corrections(model, inputs)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def reads_padding(model: Model, inputs: Mapping[str, Tensor]) -> bool:
    """Whether the module's own call with these inputs would not read each text as if alone: see `read_as_if_alone`."""
    return any(True for _ in _corrections(model, inputs))


def _corrections(model: Model, inputs: Mapping[str, Tensor]) -> Iterator[tuple[nn.Module, Callable[..., Any]]]:
    """Modules, and forward hooks that let each read a padded text as if it were alone."""
    real = inputs.get("attention_mask")
    if real is None or len(real) == 1:  # a text alone is not padded, and to ask a device is to wait for it
        return
    if bool(real.all()) and bool(inputs.get("decoder_attention_mask", real).all()):
        return
    if getattr(model.config, "trigram_input", False):
        table: Any = model.module.get_input_embeddings()  # type: ignore[operator]
        yield table, lambda _table, _args, out: out * real[..., None].to(out)
    if "position_ids" not in inputs:
        for name, table in position_tables(model).items():
            is_decoders = model.seq2seq and stack_of(name, True, False) == "decoder"
            of_table = inputs.get("decoder_attention_mask") if is_decoders else real
            if of_table is not None and not bool(of_table[:, 0].all()):
                yield table, _from_first_token(of_table)
    head = model.info.class_head
    of_texts = model.info.pair_head is not None or (head is not None and head.of in ("text", "choice"))
    reads_first = of_texts and not model.seq2seq and bool(model.blocks) and model.blocks[-1][0] == "encoder"
    if reads_first and not bool(real[:, 0].all()):
        yield model.blocks[-1][1], _with_first_token(real)


def _with_first_token(real: Tensor) -> Callable[..., Any]:
    padding = real.long().argmax(dim=1)  # (texts,)

    def hook(_block: nn.Module, _args: Any, out: Any) -> Any:
        states: Tensor = out[0] if isinstance(out, tuple) else out  # (texts, tokens, width)
        if states.shape[:2] != real.shape:
            return None
        firsts = states[torch.arange(len(real), device=states.device), padding.to(states.device)]
        states = torch.cat([firsts[:, None], states[:, 1:]], dim=1)
        return (states, *out[1:]) if isinstance(out, tuple) else states

    return hook


def _from_first_token(real: Tensor) -> Callable[..., Tensor]:
    texts, tokens = real.shape
    padding = real.long().argmax(dim=1)  # (texts,): what comes before the first token

    def hook(table: nn.Module, _args: Any, out: Tensor) -> Tensor:
        rows = (out if out.dim() == 3 else out[None]).expand(texts, -1, -1)
        firsts = rows[torch.arange(texts, device=rows.device), padding.to(rows.device)]
        if rows.shape[1] != tokens or torch.equal(firsts, table_rows(table)[:1].to(rows).expand_as(firsts)):
            return out  # it counts from there already (M2M100, by the ids)
        places = (torch.arange(tokens, device=padding.device) - padding[:, None]).clamp(min=0).to(rows.device)
        return rows.gather(1, places[..., None].expand_as(rows))

    return hook


class TableNumbers(NamedTuple):
    """What is drawn of a table, read-only."""

    table: np.ndarray  # (positions, width) float32
    alike: np.ndarray  # (rows, rows) float32: cosine between every `step`th two rows
    step: int
    components: np.ndarray  # (3, positions) float32
    shares: np.ndarray  # (3,) float32


_known: WeakKeyDictionary[nn.Module, TableNumbers] = WeakKeyDictionary()


def numbers_of(table: nn.Module) -> TableNumbers:
    """Worked out once a table."""
    if table not in _known:
        rows = table_rows(table).detach().float().cpu().numpy().copy()
        step = -(-len(rows) // LARGEST_IMAGE)
        components, shares = waves.principal_components(rows)
        alike = waves.cosines(rows[::step])
        found = (part.astype(np.float32) for part in (rows, alike, components, shares))
        table_, alike_, components_, shares_ = (read_only(part) for part in found)
        _known[table] = TableNumbers(table_, alike_, step, components_, shares_)
    return _known[table]


def wave_layout(rows: np.ndarray, table: nn.Module) -> str | None:
    """How the waves lie in the dimensions, None for a table that is no waves. Judged by the numbers."""
    for layout, words in _LAYOUTS:
        if np.abs(rows - waves.sinusoidal(len(rows), rows.shape[1], layout=layout)).max() < 1e-3:
            return words
    return "in an order of this family's own" if "Sinusoidal" in type(table).__name__ else None
