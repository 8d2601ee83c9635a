"""`--ablate`: what every head does to a token's logit, as a table, without a window."""

from __future__ import annotations

import argparse
from pathlib import Path

from explorer.console import complain, signals_raised
from explorer.session.state import State
from models.protocol.errors import NO_MEMORY, ExplorerError


def write_ablation(args: argparse.Namespace, state: State) -> str:
    """Write the effects of the heads to the file that was named; a sentence where that cannot be done.

    The token is the one of `--target`, of an encoder-decoder model the likeliest after what `--target` makes it say.
    """
    from models.effects.effects_file import save_effects
    from models.effects.sweep import head_effects
    from models.files.devices import is_out_of_memory
    from models.files.whole_files import not_written
    from models.opening.open import open_checkpoint
    from models.opening.trial import TrialRequest
    from models.opening.trial_process import verdict_on

    document, path = state.document, Path(args.ablate)
    if not path.parent.is_dir():
        return f"There is no folder {path.parent} to write {path.name} into."
    interventions = tuple(listed.value for listed in document.interventions if listed.on)
    where = state.placement
    try:
        verdict_on(TrialRequest(reference=document.checkpoint)).check(where)
        model = open_checkpoint(document.checkpoint, device=where.device, dtype=where.dtype)
        given = document.picture if model.info.family == "vision" else document.prompt
        effects = head_effects(
            model,
            given,
            target=None if model.seq2seq else args.target,
            against=args.against,
            written=args.target if model.seq2seq else None,
            interventions=interventions,
        )
        with signals_raised():
            save_effects(effects, path)
    except OSError as error:
        return not_written("The effects", path, error)
    except Exception as error:
        if is_out_of_memory(error):
            return NO_MEMORY
        if not isinstance(error, (ExplorerError, ValueError)):
            raise
        return str(error)
    found = effects.largest
    assert found is not None
    site, head, change = found
    complain(
        f"The effects on the {effects.aim.words}, {effects.aim.value:.3f}, are written to {path}: "
        f"{site.stack} layer {site.layer}, head {head} changes it most, by {change:+.3f}."
    )
    return ""
