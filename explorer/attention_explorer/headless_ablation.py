"""`--ablate`: what every head does to a token's logit, as a table, without a window."""

from __future__ import annotations

import argparse
from pathlib import Path

from attention_explorer.console import complain, signals_raised
from attention_explorer.headless_model import no_folder, opened, sentence_of
from attention_explorer.session.state import State


def write_ablation(args: argparse.Namespace, state: State) -> str:
    """Write the effects of the heads to the file that was named; a sentence where that cannot be done.

    The token is the one of `--target`, of an encoder-decoder model the likeliest after what `--target` makes it say.
    """
    from attention_models.effects.effects_file import save_effects
    from attention_models.effects.sweep import head_effects

    document, path = state.document, Path(args.ablate)
    if sentence := no_folder(path):
        return sentence
    interventions = document.inputs.interventions
    try:
        model = opened(state)
        given = document.picture if model.info.family == "vision" else document.prompt
        effects = head_effects(
            model,
            given,
            target=None if model.seq2seq else args.target,
            against=args.against,
            position=args.position,
            written=args.target if model.seq2seq else None,
            interventions=interventions,
        )
        with signals_raised():
            save_effects(effects, path)
    except ValueError as error:  # an intervention that this model does not take
        return str(error)
    except Exception as error:
        return sentence_of(error)
    found = effects.largest
    assert found is not None
    site, head, change = found
    complain(
        f"The effects on the {effects.aim.words}, {effects.aim.value:.3f}, are written to {path}: "
        f"{site.stack} layer {site.layer}, head {head} changes it most, by {change:+.3f}."
    )
    return ""
