"""What can be opened, what is in it, and why something cannot be.

A checkpoint is a folder as transformers writes it (`config.json`, `*.safetensors`, a tokenizer), a name on a hub whose
files were fetched, or one GGUF file. `attention_models.opening.inspect_checkpoint` reads the rest of its files,
and checks every bound, before a weight is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import GenerationConfig
from transformers.pytorch_utils import Conv1D
from transformers.utils import logging as transformers_logging

from attention_models.files import devices
from attention_models.files.adapter_files import PREFIX, TENSORS
from attention_models.files.families import auto_class, from_config
from attention_models.files.gguf_reading import quiet_unpacking, reading_once
from attention_models.files.weight_files import read_headers, read_json, summary
from attention_models.forward.adapter import MergedAdapter
from attention_models.forward.capture import IMPLEMENTATION
from attention_models.forward.first_run import check_first_run
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import MODEL_TYPE, open_recurrent
from attention_models.forward.vision import open_vision
from attention_models.opening.building import called_off_by
from attention_models.opening.checkpoint_inspector import CheckpointInspector
from attention_models.opening.inspect_checkpoint import find, inspect_checkpoint
from attention_models.opening.inspection import Inspection, check_opens, incomplete, misfit
from attention_models.opening.snapshots import at_step, fitted, put, read_weights, title_at, training_of
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.request import Cancelled, ShouldStop, never
from attention_models.protocol.values import BEST, AdapterInfo, CheckpointInfo, Placement

_NAME = "default"


def merge(module: nn.Module, info: AdapterInfo) -> MergedAdapter:
    """Put the adapter on `module`, whose modules stay the ones that they are.

    Raises:
        CheckpointError: it does not fit, or holds what is no number.
    """
    from peft import inject_adapter_in_model, set_peft_model_state_dict
    from peft.tuners.lora import LoraLayer

    named, parameters = dict(module.named_modules()), dict(module.named_parameters(remove_duplicate=False))
    lost = [name for name in info.modules if not hasattr(named.get(name), "weight")]
    if lost:
        raise _unfit(info, f"there is no {lost[0]}")
    heads = [name.rpartition(".")[0] for name in info.replaced if name not in parameters]
    if heads:
        raise _unfit(
            info,
            f"it brings a head of its own ({heads[0]}), where the model has none that it could be compared with",
        )
    tuned = [f"{name}.weight" for name in info.modules]
    base: dict[str, Tensor] = {name: parameters[name].detach() for name in info.replaced}
    base |= {name: parameters[name].detach().clone() for name in tuned}
    try:
        tensors = load_file(Path(info.folder) / TENSORS, device=str(next(module.parameters()).device))
        broken = next((name for name, tensor in tensors.items() if not bool(torch.isfinite(tensor).all())), None)
        if broken is not None:
            raise CheckpointError(
                f"The adapter {info.name} is broken: {broken} holds values that are no numbers. Fetch it again."
            )
        tensors = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
        whole = {name: tensors.pop(name) for name in info.replaced}
        inject_adapter_in_model(_config(info, named), module, _NAME)
        loaded: Any = set_peft_model_state_dict(module, tensors, _NAME)
        if loaded.unexpected_keys:
            raise _unfit(info, f"there is no place for {loaded.unexpected_keys[0]}")
        _merge_layers(module, LoraLayer)
        for name, tensor in whole.items():
            _replace(module, info, name, tensor)
    except CheckpointError:
        raise
    except Exception as cause:  # whatever peft runs into
        raise _unfit(info, summary(cause)) from cause
    for left in ("peft_config", "_hf_peft_config_loaded"):
        vars(module).pop(left, None)
    module.eval().requires_grad_(False)
    return MergedAdapter(info, base)


def _config(info: AdapterInfo, named: Mapping[str, nn.Module]) -> Any:
    """peft's own, by which each module gets its rank and scale."""
    from peft import LoraConfig

    apart = [
        (f"^{re.escape(name)}", rank, scale)
        for name, rank, scale in zip(info.modules, info.ranks, info.scales, strict=True)
        if (rank, scale) != (info.rank, info.scale)
    ]
    return LoraConfig(
        r=info.rank,
        lora_alpha=info.scale * info.rank,  # type: ignore[arg-type]
        rank_pattern={name: rank for name, rank, _ in apart},
        alpha_pattern={name: scale * rank for name, rank, scale in apart},
        use_dora=info.dora,
        target_modules=list(info.modules),
        fan_in_fan_out=any(isinstance(named[name], Conv1D) for name in info.modules),
        inference_mode=True,
    )


def _replace(module: nn.Module, info: AdapterInfo, name: str, tensor: Tensor) -> None:
    """Give `module` a parameter of its own: what was tied to the one before keeps that."""
    parent, _, last = name.rpartition(".")
    before = module.get_parameter(name)
    if tensor.shape != before.shape:
        raise _unfit(info, f"its {name} is {tuple(tensor.shape)}, and the model's is {tuple(before.shape)}")
    own = nn.Parameter(tensor.to(before.device, before.dtype), requires_grad=False)
    setattr(module.get_submodule(parent), last, own)


def _merge_layers(module: nn.Module, kind: type) -> None:
    """Each layer of peft's, merged, makes room for the one that it stands around."""
    layers: list[tuple[str, Any]] = [(name, child) for name, child in module.named_modules() if isinstance(child, kind)]
    for name, layer in layers:
        layer.merge(safe_merge=True)
        parent, _, last = name.rpartition(".")
        setattr(module.get_submodule(parent), last, layer.get_base_layer())


def _unfit(info: AdapterInfo, why: str) -> CheckpointError:
    return CheckpointError(
        f"The adapter {info.name} does not fit the model that it lies beside or names: {why}. Take its two files out "
        "of the folder to open the model alone."
    )


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


def describe(reference: str) -> CheckpointInfo:
    """Everything that can be said of a checkpoint without reading the weights of a transformer.

    Raises:
        CheckpointError: it cannot be understood; the sentence says what is wrong, where and what to do.
    """
    textbook = open_textbook(reference)  # a fifth of a million weights: as quick as to describe them
    return textbook.info if textbook is not None else inspect_checkpoint(reference).info


def open_checkpoint(reference: str | Path, *, device: str = "cpu", dtype: str = "float32") -> Model:
    """Open a shipped checkpoint by name, any folder or GGUF file, or hf://owner/name from the cache, in eval mode.

    Args:
        device: as torch names it ("cuda:0", "mps"), or "auto" to spread the layers over all devices by accelerate.
        dtype: "float32", "bfloat16" or "float16". The textbook models stay in float32 on the CPU.

    Raises:
        CheckpointError: it cannot be opened; the sentence says what is wrong, where and what to do.
    """
    return open_examined(CheckpointInspector(str(reference)), Placement(device, dtype))


def open_examined(examination: CheckpointInspector, placement: Placement, should_stop: ShouldStop = never) -> Model:
    """Open what `examination` is of. The tokenizer and the config that it read become the model's own.

    Raises:
        CheckpointError: as from `open_checkpoint`.
        Cancelled: `should_stop` said so.
    """
    recurrent = open_textbook(examination.reference)
    if recurrent is not None:
        return recurrent
    with reading_once(), called_off_by(should_stop):
        return _open(examination, placement)


def _open(examination: CheckpointInspector, placement: Placement) -> Model:
    where, number = devices.parse(placement)
    examined = examination.examined
    check_opens(examined, placement)
    if where is None and not _can_be_spread(examined):
        where, _ = devices.parse(Placement(BEST))
    if examined.info.family == "vision":
        module, adapter = _merged(examined, where, number)
        seeing = open_vision(examined.info, module, examined.folder)
        seeing.adapter = adapter
        return seeing
    tokenizer, info = examination.tokenizer
    module, adapter = _merged(replace(examined, info=info), where, number)
    model = Model(info, module, tokenizer)
    model.adapter = adapter
    check_first_run(model)
    return model


def _merged(
    examined: Inspection, device: torch.device | None, dtype: torch.dtype
) -> tuple[torch.nn.Module, MergedAdapter | None]:
    """The weights, with the adapter that is put on them."""
    module, adapter = _weights(examined, device, dtype), examined.info.put_on
    return module, None if adapter is None else merge(module, adapter)


def open_textbook(reference: str) -> Model | None:
    """The textbook model called `reference`; None where it is another kind of checkpoint."""
    try:
        folder = find(reference)
        raw = read_json(folder / "config.json", "")
    except CheckpointError:
        return None  # said better by those who look for a transformer
    if raw.get("model_type") != MODEL_TYPE:
        return None
    read_headers(folder)
    model, training = open_recurrent(folder, raw, reference), training_of(reference, folder)
    if training is not None:
        model.info = at_step(model.info, training)
        put(fitted(model.module, read_weights(model.info), title_at(folder.name, training)))
    return model


def _weights(examined: Inspection, device: torch.device | None, dtype: torch.dtype) -> torch.nn.Module:
    transformers_logging.disable_progress_bar()  # a second or two, and nowhere to draw it
    info, config, title = examined.info, examined.config, examined.title
    kind, options = auto_class(info, config)
    try:
        with quiet_unpacking(), _without_report():
            snapshot = info.training is not None and info.training.step is not None
            source = examined.source
            if snapshot:  # of tensors no auto class makes a model
                kind, source = type(_empty(examined)), {"state_dict": read_weights(info)}
            module, report = kind.from_pretrained(
                None if snapshot else examined.folder,
                config=config,
                use_safetensors=True,
                weights_only=True,
                dtype=dtype,
                **({"device_map": "auto"} if device is None else {}),
                attn_implementation="eager" if info.weights_only else IMPLEMENTATION,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are refused below, in a sentence that names one
                adapter_kwargs={"subfolder": os.devnull},  # where one lies beside them, peft would put it on them
                **(_unpacked() if info.gguf else {}),
                **source,
                **options,
            )
        if snapshot and (examined.folder / "generation_config.json").is_file() and module.can_generate():
            module.generation_config = GenerationConfig.from_pretrained(examined.folder, local_files_only=True)
        if device is None:
            _put_beside_the_head(module)
        elif device.type != "cpu":
            module.to(device)
    except (Cancelled, CheckpointError):
        raise
    except Exception as cause:
        if devices.is_out_of_memory(cause):
            raise  # its own sentence, with other devices to choose from
        advice = "Choose one device, or open another checkpoint." if device is None else ""  # not all can be spread
        raise CheckpointError(
            f"{title} cannot be loaded: {summary(cause)}. {advice or 'Fetch it again, or open another checkpoint.'}"
        ) from cause
    missing = sorted(report.get("missing_keys", ()))
    mismatched = sorted(report.get("mismatched_keys", ()))
    if mismatched:
        raise misfit(title, [(name, tuple(found), tuple(wanted)) for name, found, wanted in mismatched])
    if missing:
        raise incomplete(title, missing)
    assert isinstance(module, torch.nn.Module)
    broken = [name for name, p in module.named_parameters() if not p.is_meta and not bool(torch.isfinite(p).all())]
    if broken:
        if dtype == torch.float16 and not any(bool(module.get_parameter(name).isnan().any()) for name in broken):
            raise CheckpointError(
                f"{title} does not fit into float16, which ends at 65,504: {len(broken)} of its tensors hold larger "
                f"values, {broken[0]}{_layer_of(broken[0])} first. Choose bfloat16 or float32."
            )
        raise CheckpointError(
            f"{title} is broken: {len(broken)} of its tensors hold values that are no numbers (NaN or infinite), "
            f"{broken[0]}{_layer_of(broken[0])} first. Every figure would be meaningless, so the model was not opened."
        )
    left_over = _left_over_layers(report.get("unexpected_keys", ()), module)
    if left_over:
        raise CheckpointError(
            f"{title}: its files hold more layers than config.json describes; {left_over[0]} would be "
            "left out. The two do not belong together."
        )
    return module


@contextmanager
def _without_report() -> Iterator[None]:
    """transformers prints a table of left-over tensors; what matters of them is said below, or refused."""
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(before)


def _can_be_spread(examined: Inspection) -> bool:
    """Whether transformers knows which modules must stay whole; of others (Marian, ALBERT) it would part attention."""
    return bool(_empty(examined)._no_split_modules)


def _empty(examined: Inspection) -> Any:
    """The model without its weights."""
    kind, options = auto_class(examined.info, examined.config)
    with torch.device("meta"):
        return from_config(kind, examined.config, **options)


def _put_beside_the_head(module: Any) -> None:
    """What is added to the logits (in mBART) goes where they are made: accelerate gives it a device of its own."""
    head = module.get_output_embeddings()
    if head is not None and not head.weight.is_meta:
        for name, added in module.named_buffers(recurse=False):
            setattr(module, name, added.to(head.weight.device))


def _unpacked() -> dict[str, Any]:
    """What has transformers unpack a GGUF file: packed weights are multiplied by a kernel from a hub, which is code."""
    kind = getattr(transformers, "GgufConfig", None)  # older ones know no other way
    return {} if kind is None else {"quantization_config": kind(dequantize=True)}


def _layer_of(name: str) -> str:
    """ " in layer 3" for a tensor of one; layers count from 0."""
    found = _NUMBER.search(name)
    return f" in layer {found[0]}" if found is not None else ""


def _left_over_layers(unexpected: Iterable[str], module: torch.nn.Module) -> list[str]:
    """Of the tensors that the model has no place for, those that are one more of what it has (h.8 beside h.0)."""
    known = {_NUMBER.sub("#", name) for name in module.state_dict()}
    return sorted(name for name in unexpected if _NUMBER.sub("#", name) in known)
