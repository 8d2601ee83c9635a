"""The lines that open the model itself, or its tokenizer, without a network."""

from __future__ import annotations

from pathlib import Path

import transformers

from attention_models.files.training_steps import WEIGHTS_PREFIX, weights_place
from attention_models.forward.model import Model
from attention_models.forward.recurrent_model import MOST_TOKENS, RecurrentModel
from attention_models.protocol.errors import InputError
from attention_models.scripts.script_text import NAME, Script


def why_not_loaded(model: Model) -> str:
    """Why a script cannot open this model by itself; "" where it can."""
    info = model.info
    if info.borrowed:
        return "this model is an object of another program"
    if isinstance(model, RecurrentModel):
        return "transformers has no such recurrent model"
    if info.put_on is not None:
        return "an adapter is merged into its weights"
    if info.training is not None and info.training.step is not None:
        return "its folder opens as the end of its training, and this is a step before"
    return ""


def load(script: Script, model: Model) -> None:
    """Lines after which `model` is the open one, with eager attention, in the number format that it runs in here."""
    info, kind = model.info, type(model.module)
    is_own = kind.__module__.startswith("attention_models.")
    home = "transformers" if hasattr(transformers, kind.__name__) else kind.__module__
    script.uses(f"from {home} import {kind.__name__}")
    if is_own:
        _of_this_program(script, kind.__name__)
    options = [repr(info.folder), "local_files_only=True", f"dtype=torch.{model.dtype_name}"]
    options += ['attn_implementation="eager"', *([f"gguf_file={info.gguf!r}"] if info.gguf else [])]
    script.line("\n".join([f"model = {kind.__name__}.from_pretrained(", *(f"    {o}," for o in options), ").eval()"]))


def _of_this_program(script: Script, name: str) -> None:
    script.remark(f"{name} is a class of this program: run this where {NAME} is installed.")


def load_tokenizer(script: Script, model: Model) -> None:
    """Lines after which `tokenizer` is the model's own.

    Raises:
        InputError: it is an object of another program.
    """
    info, kind = model.info, type(model.tokenizer)
    name = "PreTrainedTokenizerFast" if kind is transformers.PreTrainedTokenizerFast else kind.__name__
    if info.borrowed:
        raise InputError(f"The tokenizer of {info.name} is an object of another program, which no script can open.")
    if isinstance(model, RecurrentModel):
        script.uses("from tokenizers import Tokenizer", "from transformers import PreTrainedTokenizerFast")
        script.remark("No config of transformers says how this tokenizer is set up: it was made by this program.")
        script.line(
            "tokenizer = PreTrainedTokenizerFast(\n"
            f"    tokenizer_object=Tokenizer.from_file({str(Path(info.folder) / 'tokenizer.json')!r}),\n"
            f'    bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>", '
            f"model_max_length={MOST_TOKENS},\n)"
        )
        return
    if type(model.module).__module__.startswith("attention_models."):
        script.remark(
            "attention_models/textbook/tokenizer.py made it, of transformers' own class: a token a character or word."
        )
    script.uses(f"from transformers import {name}")
    options = [repr(info.folder), "local_files_only=True", *([f"gguf_file={info.gguf!r}"] if info.gguf else [])]
    script.line(f"tokenizer = {name}.from_pretrained({', '.join(options)})")


def load_recurrent(script: Script, model: RecurrentModel) -> None:
    """Lines after which `model` is the open recurrent one, of this program's own class, at its step of a training."""
    script.uses("import json", "from pathlib import Path", "from safetensors.torch import load_file")
    script.uses(
        "from attention_models.textbook.config import RecurrentConfig",
        "from attention_models.textbook.recurrent import RecurrentSeq2Seq",
    )
    _of_this_program(script, "RecurrentSeq2Seq")
    folder = Path(model.info.folder)
    place = weights_place(model.info)
    place = folder / "model.safetensors" if place == folder else place
    script.line(f"folder = Path({str(folder)!r})")
    script.line(
        "known = RecurrentConfig.__dataclass_fields__\n"
        'said = json.loads((folder / "config.json").read_text(encoding="utf-8"))\n'
        "config = RecurrentConfig(**{key: said[key] for key in known if key in said})\n"
        "model = RecurrentSeq2Seq(config).eval()\n"
        f"weights = load_file({str(place)!r})"
    )
    if place.parent == folder:
        script.line("model.load_state_dict({name: t.float() for name, t in weights.items()})")
    else:  # beside them a snapshot has what the optimiser keeps
        script.line(
            f"prefix = {WEIGHTS_PREFIX!r}\n"
            "weights = {name: t.float() for name, t in weights.items() if name.startswith(prefix)}\n"
            "model.load_state_dict({name.removeprefix(prefix): t for name, t in weights.items()})"
        )
    if model.dtype_name != "float32":
        script.line(f"model = model.to(torch.{model.dtype_name})")
