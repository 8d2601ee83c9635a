"""The lines that open the model itself with transformers, without a network."""

from __future__ import annotations

import transformers

from models.forward.model import Model
from models.forward.recurrent_model import RecurrentModel
from models.scripts.writing import Script


def why_not_loaded(model: Model) -> str:
    """Why a script cannot open this model by itself; "" where it can."""
    info = model.info
    if info.borrowed:
        return "this model is an object of another program"
    if isinstance(model, RecurrentModel):
        return "transformers has no such recurrent model"
    if info.put_on is not None:
        return "an adapter is merged into its weights"
    return ""


def load(script: Script, model: Model) -> None:
    """Lines after which `model` is the open one, with eager attention, in the number format that it runs in here."""
    info, kind = model.info, type(model.module)
    is_own = kind.__module__.startswith("models.")
    home = "transformers" if hasattr(transformers, kind.__name__) else kind.__module__
    script.uses(f"from {home} import {kind.__name__}")
    if is_own:
        script.remark(f"{kind.__name__} is a class of this program: run this in its folder, or where it is installed.")
    options = [repr(info.folder), "local_files_only=True", f"dtype=torch.{model.dtype_name}"]
    options += ['attn_implementation="eager"', *([f"gguf_file={info.gguf!r}"] if info.gguf else [])]
    script.line("\n".join([f"model = {kind.__name__}.from_pretrained(", *(f"    {o}," for o in options), ").eval()"]))
