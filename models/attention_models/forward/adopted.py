"""Models that a person has as Python objects, made visible without a checkpoint.

    import attention_explorer as ax
    ax.open(model, tokenizer)

Three kinds of module can be looked into:

- a model of transformers: its attention goes through the registered function, as a checkpoint's does;
- a module that calls `torch.nn.functional.scaled_dot_product_attention`, itself or through `nn.MultiheadAttention`
  (asked for weights or not) and what torch makes of that, `nn.Transformer` say: while it runs here, that call is
  answered by our function;
- a module with an attention of its own, which calls `attend` in the place of its softmax. That is the adapter:

      from attention_models import attend
      ...
      y = attend(self, q, k, v, causal=True)    # was: softmax(q @ k.mT / sqrt(d)) @ v, with its mask

The model is borrowed: `Adopted.release` gives it back as it was.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from attention_models.attention import attention
from attention_models.attention import output as mixing
from attention_models.attention.inputs import AttentionInputs, Part
from attention_models.files.catalogue import HANDED_OVER
from attention_models.files.families import (
    class_head_of,
    context_of,
    family_of,
    pair_head_of,
    refusal,
    stacks_of,
    vocabulary_of,
    weights_only,
    wordless,
)
from attention_models.forward.capture import IMPLEMENTATION, Recorder, active, recording
from attention_models.forward.model import Encoded, Given, Model
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.values import CheckpointInfo, StackInfo
from attention_models.text.pairs import reads_pairs
from attention_models.text.plain_tokenizer import as_tokenizer
from attention_models.text.templates import has_template

Family = Literal["causal", "masked", "encoder"]

_PROBE = 4  # tokens
_CELLS = 1 << 22  # of a mask that are looked at at once

_own_sdpa = F.scaled_dot_product_attention
_own_multi_head = F.multi_head_attention_forward
_of_multi_head = inspect.signature(_own_multi_head)
_answered = threading.Lock()  # one thread at a time answers torch's attention


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """Attention (Vaswani et al. 2017, equation 1) that can be looked into while its model runs in the program.

    Anywhere else it computes the same and keeps nothing.

    Args:
        module: whose attention it is; its name in the model tells the layers apart.
        query: (batch, heads, queries, head_dim).
        key: (batch, key_heads, keys, head_dim), where heads is a multiple of key_heads.
        value: (batch, key_heads, keys, value_dim).
        causal: query i attends to keys 0 to i only.
        mask: broadcasts to (batch, heads, queries, keys): bool, True is visible; or added to the scores.
        bias: broadcasts likewise, added to the scaled scores.
        scale: of the scores; 1 / sqrt(head_dim) if None.

    Returns:
        (batch, heads, queries, value_dim).
    """
    return _attended(module, query, key, value, causal, mask, bias, scale)[0]


def _attended(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: bool,
    mask: Tensor | None,
    bias: Tensor | None,
    scale: float | None,
    stack: str = "",
) -> tuple[Tensor, AttentionInputs]:
    """As `attend`, and what the weights depend on; `stack` is told by the mask where it is not given."""
    mask, bias = _of_four(mask), _of_four(bias)
    if causal and mask is not None:
        past = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device).tril()
        mask = mask & past if mask.dtype == torch.bool else mask.masked_fill(~past, torch.finfo(mask.dtype).min)
    x = AttentionInputs(
        query=query,
        key=key,
        value=value,
        scale=query.shape[-1] ** -0.5 if scale is None else float(scale),
        causal=causal and mask is None and query.shape[2] > 1,
        mask=mask,
        bias=bias,
    )
    recorder = active()
    if recorder is None:
        return mixing.output(x), x
    x = recorder.keep(module, x, stack or ("decoder" if causal or _hides_the_future(x) else "encoder"))
    return recorder.mix(x), x


def _of_four(t: Tensor | None) -> Tensor | None:
    """With leading dimensions of 1, as they broadcast: a mask may be given as (queries, keys)."""
    return None if t is None else t[(None,) * (4 - t.dim())]


def _hides_the_future(x: AttentionInputs) -> bool:
    """Whether its mask lets no query look past its own place."""
    if x.mask is None or x.queries != x.keys or x.queries == 1:
        return False
    step = max(1, _CELLS // x.keys)
    for start in range(0, x.queries, step):
        rows = slice(start, min(start + step, x.queries))
        masked = attention.masked_cells(x, Part([0], rows))
        if masked is None or (~masked).expand(1, 1, rows.stop - start, x.keys)[0, 0].triu(start + 1).any():
            return False
    return True


def _stack_within(modules: Sequence[nn.Module]) -> str:
    """Of the attention that runs within `modules`, the outermost first: of torch's own encoder and decoder; else ""."""
    around = modules[-2] if len(modules) > 1 else None
    if isinstance(around, nn.TransformerDecoderLayer):
        return "cross" if modules[-1] is around.multihead_attn else "decoder"
    return "encoder" if any(isinstance(module, nn.Transformer) for module in modules) else ""


class Adopted(Model):
    """A model of transformers that was handed over, and is given back."""

    def __init__(self, info: CheckpointInfo, module: nn.Module, tokenizer: Any) -> None:
        self._lent = ExitStack()
        for child in module.modules():
            self._lent.callback(setattr, child, "training", child.training)
        wanted = [(p, p.requires_grad) for p in module.parameters()]
        super().__init__(info, module, tokenizer)
        for p, wants in wanted:
            p.requires_grad_(wants)  # nothing that is run here asks for gradients, and the owner may
        for handle in self.hooks:
            self._lent.callback(handle.remove)
        if isinstance(module, PreTrainedModel):
            self._lent.callback(module.set_attn_implementation, module.config._attn_implementation)
            module.set_attn_implementation("eager" if info.weights_only else IMPLEMENTATION)

    def release(self) -> None:
        """Give the module back as it was: train or eval mode, attention implementation, hooks."""
        self._lent.close()


class PlainModel(Adopted):
    """A torch module that turns ids, (1, tokens), into logits, (1, tokens, vocabulary), or an encoder into states."""

    def __init__(
        self, info: CheckpointInfo, module: nn.Module, tokenizer: Any, forward: Callable[[Tensor], Any] | None
    ) -> None:
        self._call = forward or module
        self._where = threading.local()  # the modules that this thread is inside of, while ours answers
        super().__init__(info, module, tokenizer)
        for child in module.modules():
            for handle in (
                child.register_forward_pre_hook(self._enter),
                child.register_forward_hook(self._leave, always_call=True),
            ):
                self._lent.callback(handle.remove)
            if isinstance(child, nn.TransformerEncoder):
                hook = partial(self._without_padding, child)
                self._lent.callback(child.layers[-1].register_forward_hook(hook, with_kwargs=True).remove)

    def ready(self) -> AbstractContextManager[None]:
        return self._visible()

    def forward(self, inputs: Mapping[str, Tensor]) -> Any:
        """Run the module with its attention answered by ours."""
        with self._visible():
            return self._found(self._call(inputs["input_ids"]), inputs["input_ids"])

    @torch.no_grad()
    def own_logits(self, ids: Tensor) -> Tensor | None:
        """(1, tokens, vocabulary), computed with torch's own attention; None for an encoder."""
        logits: Tensor | None = self._found(self._call(ids), ids).logits
        return logits

    def encode(self, text: Given, target: str | list[int] | None = None) -> Encoded:
        encoded = super().encode(text, target)
        return Encoded({"input_ids": encoded.inputs["input_ids"]}, encoded.tokens)

    def start_run(self, encoded: Encoded) -> PlainRun:
        return PlainRun(self, encoded)

    @contextmanager
    def _visible(self) -> Iterator[None]:
        """While it lasts, torch's attention is answered by ours in this thread, and by its own in every other."""

        def answer(
            query: Tensor,
            key: Tensor,
            value: Tensor,
            attn_mask: Tensor | None = None,
            dropout_p: float = 0.0,
            is_causal: bool = False,
            scale: float | None = None,
            enable_gqa: bool = False,
        ) -> Tensor:
            inside = getattr(self._where, "modules", None)
            if not inside or query.dim() != 4:
                return _own_sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
            out, self._where.looked = _attended(
                inside[-1], query, key, value, is_causal, attn_mask, None, scale, _stack_within(inside)
            )
            return out

        def answer_with_weights(*args: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
            """nn.MultiheadAttention makes weights by a way of its own where it is asked for them, as by default."""
            bound = _of_multi_head.bind(*args, **options)
            bound.apply_defaults()
            given = bound.arguments
            if not getattr(self._where, "modules", None) or not given["need_weights"]:
                return _own_multi_head(*args, **options)
            given["need_weights"] = False
            if given["attn_mask"] is not None:
                given["is_causal"] = False  # no more than a hint, and not needed where the mask is there
            out, _ = _own_multi_head(**given)
            weights = attention.weights(self._where.looked)  # (batch, heads, queries, keys)
            weights = weights.mean(dim=1) if given["average_attn_weights"] else weights
            return out, weights.to(out.dtype) if given["query"].dim() == 3 else weights[0].to(out.dtype)

        with _answered:
            fast = torch.backends.mha.get_fastpath_enabled()
            torch.backends.mha.set_fastpath_enabled(False)  # nn.TransformerEncoder would go round the function
            setattr(F, "scaled_dot_product_attention", answer)  # noqa: B010
            setattr(F, "multi_head_attention_forward", answer_with_weights)  # noqa: B010
            self._where.modules, self._where.fast = [], fast
            try:
                yield
            finally:
                self._where.modules = self._where.looked = None
                setattr(F, "scaled_dot_product_attention", _own_sdpa)  # noqa: B010
                setattr(F, "multi_head_attention_forward", _own_multi_head)  # noqa: B010
                torch.backends.mha.set_fastpath_enabled(fast)

    def _without_padding(
        self, encoder: nn.TransformerEncoder, _layer: nn.Module, args: Any, options: Any, out: Tensor
    ) -> Tensor:
        """What torch's encoder has after its last layer by its fast path: zeros in the padded places."""
        padding = options.get("src_key_padding_mask")
        takes_it = getattr(self._where, "modules", None) is not None and self._where.fast
        if not takes_it or padding is None or options.get("src_mask") is not None or args[0].dim() != 3:
            return out
        real = padding.logical_not()  # bool, or -inf where it hides
        comes_last = not encoder.mask_check or torch._nested_tensor_from_mask_left_aligned(args[0], real)
        if not encoder.use_nested_tensor or torch.is_autocast_enabled() or not comes_last:
            return out
        kept: Tensor = out * real[..., None]
        return kept

    def _enter(self, module: nn.Module, _args: Any) -> None:
        inside = getattr(self._where, "modules", None)
        if inside is not None:
            inside.append(module)

    def _leave(self, _module: nn.Module, _args: Any, _out: Any) -> None:
        inside = getattr(self._where, "modules", None)
        if inside:
            inside.pop()

    def _found(self, out: Any, ids: Tensor) -> Any:
        """The logits in what the module gave."""
        if self.info.family == "encoder":
            states = getattr(out, "last_hidden_state", out)
            fits = isinstance(states, Tensor) and states.dim() == 3 and states.shape[:2] == ids.shape
            return SimpleNamespace(logits=None, last_hidden_state=states if fits else None)
        logits = getattr(out, "logits", None)
        if logits is None:
            logits = out[0] if isinstance(out, (tuple, list)) and out else out
        name = self.info.name
        if not isinstance(logits, Tensor) or logits.dim() != 3 or logits.shape[0] != 1:
            found = f"a tensor of {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
            raise InputError(
                f"{name} gave {found}; logits of (1, tokens, vocabulary) were expected. "
                "Pass forward=, a function from ids to logits, or family='encoder' for a model without any."
            )
        if logits.shape[1] != ids.shape[1]:
            raise InputError(
                f"{name} gave the logits of {logits.shape[1]} of {ids.shape[1]} tokens. Pass forward=, a function that "
                "gives all of them; for nanoGPT that is lambda ids: model(ids, ids)[0]."
            )
        return SimpleNamespace(logits=logits)


class PlainRun:
    """Writes step by step, as `CachedRun` does, but a module of one's own has no cache: all is computed again."""

    def __init__(self, model: PlainModel, encoded: Encoded) -> None:
        if model.info.family != "causal":
            raise InputError(f"{model.info.name} does not write from left to right: there is nothing to decode.")
        self.model = model
        self.ids = encoded.inputs["input_ids"]
        self.prompt = self.ids.shape[1]

    @torch.no_grad()
    def logits(self) -> Tensor:
        """The next token's logits, (sequences, vocabulary) float32."""
        limit = self.model.info.context
        if limit is not None and self.ids.shape[1] > limit:
            raise InputError(f"The context is full: {self.model.info.name} takes {limit:,} tokens.")
        rows = [self.model.own_logits(row[None]) for row in self.ids]
        return torch.stack([row[0, -1] for row in rows if row is not None]).float()

    def append(self, tokens: Tensor, sources: Tensor | None = None) -> None:
        ids = self.ids if sources is None else self.ids[sources]
        self.ids = torch.cat([ids, tokens[:, None]], dim=1)

    @property
    def cache_bytes(self) -> int:
        return 0


def adopt(
    module: nn.Module,
    tokenizer: Any,
    *,
    name: str = "",
    family: Family = "causal",
    forward: Callable[[Tensor], Any] | None = None,
    context: int | None = None,
    vocabulary: int | None = None,
) -> Adopted:
    """Make a model out of a module and a tokenizer that a person has.

    Args:
        module: a model of transformers, or any module of which the introduction of this file speaks.
        tokenizer: what `attention_models.text.plain_tokenizer.as_tokenizer` takes.
        name: what to call it; its class's name if empty.
        family: of a plain module: "causal" continues a text, "masked" fills in masks, "encoder" gives no logits.
        forward: of a plain module: from ids, (1, tokens), to logits, (1, tokens, vocabulary); the module itself if
            None.
        context: how many tokens it takes; None if unknown.
        vocabulary: how many tokens it knows; the size of its first embedding if None.

    Raises:
        CheckpointError: nothing of it could be shown; the sentence says why.
    """
    if not isinstance(module, nn.Module):
        raise CheckpointError(f"A {type(module).__name__} is no torch module, so it cannot be run.")
    if family not in get_args(Family):
        raise CheckpointError(f"“{family}” is none of {', '.join(get_args(Family))}.")
    name = name or type(module).__name__
    given = as_tokenizer(tokenizer)
    if isinstance(module, PreTrainedModel):
        return Adopted(_described(module, given, name), module, given)
    model = PlainModel(_guessed(module, given, name, family, context, vocabulary), module, given, forward)
    try:
        model.info = _probed(model)
    except BaseException:
        model.release()
        raise
    return model


def _described(module: PreTrainedModel, tokenizer: Any, name: str) -> CheckpointInfo:
    config, architecture = module.config, type(module).__name__
    family = family_of(architecture, config)
    sentence = refusal(family, architecture, config)
    if sentence or family == "vision":
        raise CheckpointError(f"{name}: {sentence or 'pictures can be given to checkpoints only.'}")
    return _info(
        module,
        tokenizer,
        name,
        family,
        model_type=config.model_type,
        stacks=stacks_of(config, family),
        width=int(getattr(config.get_text_config(), "hidden_size", 0) or 0),
        context=context_of(config),
        vocabulary=vocabulary_of(config),
        chat=family == "causal" and has_template(tokenizer),
        pairs=reads_pairs(tokenizer, family),
        weights_only=weights_only(architecture, config),
        wordless=wordless(family, architecture, config),
        class_head=class_head_of(architecture, config) if family == "encoder" else None,
        pair_head=pair_head_of(architecture, config) if family == "masked" else None,
    )


def _guessed(
    module: nn.Module, tokenizer: Any, name: str, family: str, context: int | None, vocabulary: int | None
) -> CheckpointInfo:
    table = next((child for child in module.modules() if isinstance(child, nn.Embedding)), None)
    if vocabulary is None:
        if table is None:
            raise CheckpointError(f"{name} has no nn.Embedding that tells how many tokens it knows. Pass vocabulary=.")
        vocabulary = table.num_embeddings
    return _info(
        module,
        tokenizer,
        name,
        family,
        model_type="torch module",
        stacks=(),  # known once it ran
        width=table.embedding_dim if table is not None else 0,
        context=context,
        vocabulary=vocabulary,
    )


def _info(module: nn.Module, tokenizer: Any, name: str, family: str, **details: Any) -> CheckpointInfo:
    """What is said of every model that was handed over, with the `details` of this one."""
    return CheckpointInfo(
        reference=HANDED_OVER + name,
        name=name,
        folder="",
        family=family,
        architecture=type(module).__name__,
        parameters=sum(p.numel() for p in module.parameters()),
        file_bytes=0,
        summary="Handed over from Python.",
        mask_token=tokenizer.mask_token if family == "masked" else None,
        borrowed=True,
        **details,
    )


def _probed(model: PlainModel) -> CheckpointInfo:
    """What is known of the model once a few tokens went through it."""
    recorder = Recorder(model.module_names)
    count = min(_PROBE, model.info.context or _PROBE)
    ids = torch.zeros(1, count, dtype=torch.long, device=model.device)
    try:
        with torch.no_grad(), recording(recorder):
            model.forward({"input_ids": ids})
    except InputError as cause:
        raise CheckpointError(str(cause)) from cause
    except Exception as cause:
        first = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        raise CheckpointError(
            f"{model.info.name} could not be run on ids of shape (1, {count}): {first.rstrip('.')}. Pass forward=, a "
            "function from ids to logits."
        ) from cause
    if not recorder.sites:
        raise CheckpointError(
            f"{model.info.name} ran, and no attention was seen in it: it calls neither torch's "
            "scaled_dot_product_attention nor ax.attend. Let its attention call ax.attend(self, q, k, v)."
        )
    stacks = {}
    for site in recorder.sites:
        stacks[site.stack] = StackInfo(site.stack, site.layer + 1, site.heads, site.key_heads)
    return replace(model.info, stacks=tuple(stacks.values()))
