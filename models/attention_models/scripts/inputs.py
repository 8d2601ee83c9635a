"""What a model was given in a run, as lines and as the arguments of its call; of a batch all of its texts."""

from __future__ import annotations

from torch import Tensor

from attention_models.forward.batches import encode
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.position_tables import reads_padding
from attention_models.forward.vision import VisionModel
from attention_models.protocol.errors import InputError
from attention_models.scripts.pictures import prepare
from attention_models.scripts.script_text import Script

_NAMES = {
    "input_ids": ("ids", "the tokens"),
    "decoder_input_ids": ("written", "what the decoder has said"),
    "token_type_ids": ("segments", "which of two texts each is of"),
    "attention_mask": ("real", "0 of padding"),
    "decoder_attention_mask": ("said", "0 of padding"),
    "position_ids": ("positions", "each text counted from its own first token"),
}


def given(script: Script, run: CurrentRun) -> tuple[str, int]:
    """Lines with what the model was given, in a section of their own or that of the computation.

    Returns:
        The arguments of its call, and which row of the batch is the text on screen.

    Raises:
        InputError: its own call would not read each text of the batch as if alone.
    """
    model = run.model
    if isinstance(model, VisionModel):
        prepare(script, model, run.trace)
        return "pixel_values=pixels", 0
    encoded = encode(model, run.text, run.written)
    if reads_padding(model, encoded.inputs):
        raise InputError(
            f"transformers' own {type(model.module).__name__} reads padding as tokens; here each text is read as if "
            "alone. Run this text alone to have it as a script."
        )
    script.section("the numbers on screen")
    arguments = []
    chooses = model.info.class_head is not None and model.info.class_head.of == "choice"
    of_choices = "[None]" if chooses else ""  # the texts of a batch are the choices of one question
    for name, tensor in encoded.inputs.items():
        if name == "attention_mask" and bool(tensor.all()):
            arguments.append(f"{name}=torch.ones_like(ids){of_choices}")
            continue
        short, what = _NAMES[name]
        script.tensor(short, tensor, f"({', '.join(map(str, tensor.shape))}) {_told(tensor, what)}")
        arguments.append(f"{name}={short}{of_choices}")
    script.section("the computation")
    return ", ".join(arguments), encoded.row


def _told(tensor: Tensor, what: str) -> str:
    return what if len(tensor) == 1 else f"{what}, a text a row"
