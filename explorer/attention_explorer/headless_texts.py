"""`--roles` and `--corpus`: what heads do over many texts, as tables, without a window."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from attention_explorer.console import complain, signals_raised
from attention_explorer.headless_model import no_folder, opened, sentence_of, show_progress
from attention_explorer.session.state import State

if TYPE_CHECKING:
    from attention_models.forward.model import Model


def write_tables(args: argparse.Namespace, state: State) -> str:
    """Write the files that were named; a sentence where that cannot be done."""
    for name in filter(None, (args.roles, args.weights_mean)):
        if sentence := no_folder(Path(name)):
            return sentence
    try:
        model = opened(state)
        if args.roles:
            _write_roles(args, model)
        if args.corpus:
            _write_means(args, model, state)
    except Exception as error:
        return sentence_of(error)
    return ""


def _write_roles(args: argparse.Namespace, model: Model) -> None:
    from attention_models.roles.roles import head_roles
    from attention_models.roles.roles_export import save_roles

    found = head_roles(model, args.probe, report=show_progress)
    show_progress("", None)
    with signals_raised():
        save_roles(found, args.roles)
    for sentence in found.left_out:
        complain(sentence)
    complain(f"The roles of {len(found.sites)} layers over {found.texts:,} texts are written to {args.roles}.")


def _write_means(args: argparse.Namespace, model: Model, state: State) -> None:
    from attention_models.corpus.corpus import read_corpus
    from attention_models.corpus.corpus_export import save_means

    edits = state.document.inputs.interventions
    view = read_corpus(model, args.corpus, interventions=edits, report=show_progress)
    show_progress("", None)
    with signals_raised():
        save_means(view, args.weights_mean)
    for sentence in view.left_out:
        complain(sentence)
    if view.left_out_count > len(view.left_out):
        complain(f"{view.left_out_count - len(view.left_out):,} more lines are left out.")
    complain(f"The means of {view.texts:,} texts ({view.tokens:,} tokens) are written to {args.weights_mean}.")
