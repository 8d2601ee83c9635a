"""Writes `transformer_lens.json`: what TransformerLens 2.16.1 says of the GPT-2 of `reference_model.py`.

    python -m tests.models.effects.transformer_lens_reference

TransformerLens is no part of the tests' environment: it wants older libraries. Install it beside this program to write
the file again: `pip install --no-deps transformer-lens==2.16.1`, and what it says is missing.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch

from tests.models.effects.reference_model import AGAINST, HERE, TARGET, THERE, reference_model
from tests.models.tiny import eager

FILE = Path(__file__).with_name("transformer_lens.json")


def main() -> None:
    from transformer_lens import HookedTransformer, HookedTransformerConfig  # type: ignore[import-not-found]
    from transformer_lens.pretrained.weight_conversions import (  # type: ignore[import-not-found]
        convert_gpt2_weights,
    )

    theirs = eager(reference_model(Path(tempfile.mkdtemp())))
    c = theirs.config
    cfg = HookedTransformerConfig(
        n_layers=c.n_layer,
        d_model=c.n_embd,
        n_ctx=c.n_positions,
        d_head=c.n_embd // c.n_head,
        n_heads=c.n_head,
        d_mlp=4 * c.n_embd,
        d_vocab=c.vocab_size,
        act_fn="gelu_new",
        eps=c.layer_norm_epsilon,
        normalization_type="LN",
    )
    model = HookedTransformer(cfg)
    state = convert_gpt2_weights(theirs, cfg)
    model.load_and_process_state_dict(
        state, fold_ln=True, center_writing_weights=False, center_unembed=False, fold_value_biases=False
    )
    model.eval().cfg.use_attn_result = True
    whole = HookedTransformer(cfg)
    whole.load_and_process_state_dict(
        convert_gpt2_weights(theirs, cfg)
    )  # as it processes weights unless told otherwise
    with torch.no_grad():
        said = {**reference(model), "copying": copying(whole)}
        FILE.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


def copying(model: Any) -> Any:
    """(layers, heads): the eigenvalues of W_E W_V W_O W_U, summed, over the sum of their sizes."""
    eigenvalues = (model.W_E @ model.OV @ model.W_U).eigenvalues
    return (eigenvalues.sum(dim=-1).real / eigenvalues.abs().sum(dim=-1)).tolist()


def reference(model: Any) -> dict[str, Any]:
    here, there = (torch.tensor([ids]) for ids in (HERE, THERE))
    _, cache = model.run_with_cache(here)
    _, other = model.run_with_cache(there)

    def aim(logits: torch.Tensor) -> float:
        return float(logits[0, -1, TARGET] - logits[0, -1, AGAINST])

    def hooked(name: str, edit: Any) -> float:
        return aim(model.run_with_hooks(here, fwd_hooks=[(name, edit)]))

    layers, heads, tokens = model.cfg.n_layers, model.cfg.n_heads, len(HERE)

    def zero(head: int) -> Any:
        def edit(z: torch.Tensor, hook: Any) -> torch.Tensor:
            z[:, :, head] = 0.0
            return z

        return edit

    def copy_row(name: str, position: int) -> Any:
        def edit(stream: torch.Tensor, hook: Any) -> torch.Tensor:
            stream[:, position] = other[name][:, position]
            return stream

        return edit

    def copy_head(name: str, head: int, axis: int) -> Any:
        def edit(t: torch.Tensor, hook: Any) -> torch.Tensor:
            place = [slice(None)] * axis + [head]
            t[tuple(place)] = other[name][tuple(place)]
            return t

        return edit

    stack = cache.stack_head_results(layer=-1, pos_slice=-1)  # (layers * heads, batch, width)
    scaled = cache.apply_ln_to_stack(stack, layer=-1, pos_slice=-1)
    direction = model.W_U[:, TARGET] - model.W_U[:, AGAINST]
    # `apply_ln=True` would divide every layer by the last one's deviation
    lens = model.unembed(model.ln_final(cache.accumulated_resid(layer=-1, incl_mid=False)[:, 0]))
    names = [f"blocks.{layer}" for layer in range(layers)]
    return {
        "value": aim(model(here)),
        "other": aim(model(there)),
        "zeroed": [[hooked(f"{n}.attn.hook_z", zero(h)) for h in range(heads)] for n in names],
        "attributed": (scaled[:, 0] @ direction).view(layers, heads).tolist(),
        "lens": lens[:, -1].log_softmax(dim=-1)[:, TARGET].exp().tolist(),
        "resid_pre": [
            [hooked(f"{n}.hook_resid_pre", copy_row(f"{n}.hook_resid_pre", p)) for p in range(tokens)] for n in names
        ],
        "mlp_out": [
            [hooked(f"{n}.hook_mlp_out", copy_row(f"{n}.hook_mlp_out", p)) for p in range(tokens)] for n in names
        ],
        "z": [[hooked(f"{n}.attn.hook_z", copy_head(f"{n}.attn.hook_z", h, 2)) for h in range(heads)] for n in names],
        "pattern": [
            [hooked(f"{n}.attn.hook_pattern", copy_head(f"{n}.attn.hook_pattern", h, 1)) for h in range(heads)]
            for n in names
        ],
    }


if __name__ == "__main__":
    main()
