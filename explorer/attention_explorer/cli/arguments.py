"""The command's options."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from attention_explorer.cli.training_options import add_training_options, check_training, is_training
from attention_explorer.console import complain, say
from attention_explorer.session.text_limits import MOST_CHARACTERS, too_long
from attention_explorer.version import __version__
from attention_models.files.catalogue import FIRST
from attention_models.files.text_stream import read_lines
from attention_models.protocol.ablation import parse_skip
from attention_models.protocol.batch import MOST_TEXTS, PaddingSide
from attention_models.protocol.decoding import DecodeSettings, Strategy
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.interventions import Intervention, Scale, is_neutral, mask_spellings, parse_mask
from attention_models.protocol.two_runs import Matching
from attention_models.protocol.values import UNIT_ROUNDOFFS

_CHANGES = ("checkpoint", "text", "pair", "choice", "chat", "target", "picture", "scale", "mask", "skip", "padding")

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_NEVER_EMPTY = (
    *("checkpoint", "texts", "picture", "scale", "mask", "device", "png", "size", "weights", "save", "ablate"),
    *("roles", "probe", "corpus", "weights_mean", "compare", "with_text", "with_checkpoint", "with_session"),
    *("with_scale", "with_mask", "with_picture"),
)
"""Options that mean nothing without a word; an empty text is a text."""


def parse(given: Sequence[str]) -> argparse.Namespace:
    """What was typed, with `interventions` and `decode_settings` made of it.

    Of several texts `text`, `pair` and `target` are the first one's; `more` has (text, second, target) of the others.

    Raises:
        ValueError: an option that does not go with the others, or out of range; the sentence says which.
        SystemExit: `--help`, `--version`, or an option that there is none of.
    """
    parser = _parser()
    args = parser.parse_args(given[1:] if given[:1] == ["open"] and len(given) > 1 else given)
    check_training(args, parser)
    if is_training(args) or args.experiment is not None:
        args.without_window = True
        return args
    for name in _NEVER_EMPTY:
        if getattr(args, name) == "" or (name in ("mask", "with_mask") and "" in getattr(args, name)):
            raise ValueError(f"{_option(name)} is given nothing (“”). Give it a value, or leave it out.")
    _take_texts(args)
    args.interventions = interventions_of(args.scale, args.mask, args.skip)
    _take_other(args)
    args.decode_settings = decode_settings_of(args)
    if args.chat and args.pair is not None:
        raise ValueError("--chat gives a turn of a conversation, and --pair the second of two texts. Give one of them.")
    args.without_window = bool(args.png or args.weights or args.save or args.ablate or args.decode is not None)
    args.without_window |= bool(args.roles or args.corpus or args.compare) or args.check_lessons is not None
    if args.probe is not None and not args.roles:
        raise ValueError("--probe names the texts that roles are found on, and goes with --roles.")
    if (args.corpus is None) != (args.weights_mean is None):
        raise ValueError("--corpus names a file of texts, and --weights-mean where its means go. Give both.")
    if args.against is not None and not args.ablate:
        raise ValueError("--against names the other token of a difference, and goes with --ablate.")
    if args.position is not None and not args.ablate:
        raise ValueError("--position names a token to measure at, and goes with --ablate.")
    if args.cut and not (args.png or args.weights or args.save or args.decode is not None):
        raise ValueError("--cut goes with --png, --weights, --save or --decode: the window asks before it cuts.")
    if args.words and not (args.png or args.weights):
        raise ValueError("--words goes with --png or --weights: in the window it is in the View menu.")
    if args.session is not None and not args.without_window:
        beside = next((name for name in _CHANGES if getattr(args, name)), None)
        if beside is not None:
            raise ValueError(
                f"{_option(beside)} changes a session only without a window, as with --weights. Leave it out, and "
                "change the session in the window."
            )
    of_b = (("--with-text", args.with_text), ("--with-target", args.with_target))
    others = (("--text", text) for given in args.more for text in given)
    for what, text in (("--text", args.text), ("--pair", args.pair), ("--target", args.target), *of_b, *others):
        if text is not None and len(text) > MOST_CHARACTERS:
            raise ValueError(f"{too_long(what, text)}. Give it a shorter part.")
    return args


def _take_texts(args: argparse.Namespace) -> None:
    """Sort what was given of several texts by text.

    Raises:
        ValueError: seconds or targets of other texts than there are, or several where one is meant.
    """
    if args.choice:
        beside = next((name for name in ("texts", "pair") if getattr(args, name) is not None), None)
        if beside is not None or len(args.text or ()) != 1:
            other = f", and {_option(beside)} does not go with it" if beside is not None else ""
            raise ValueError(f"--choice goes with one --text, which is read with each choice{other}.")
        args.text, args.pair = args.text * len(args.choice), args.choice
    if args.texts is not None and args.text is not None:
        raise ValueError("--texts names a file of texts, and --text gives one. Give one of them.")
    if args.texts is not None:
        try:
            args.text = list(read_lines(args.texts))
        except ExplorerError as cause:
            raise ValueError(str(cause)) from cause
    count = len(args.text or [""])
    if count > MOST_TEXTS:
        raise ValueError(f"These are {count:,} texts; {MOST_TEXTS} are run at once at most.")
    seconds, targets = args.pair or [None] * count, args.target or [None] * count
    if len(targets) == 1:
        targets = targets * count
    for option, given in (("--pair", seconds), ("--target", targets)):
        if len(given) != count:
            texts = "is 1 text" if count == 1 else f"are {count:,} texts"
            times = "1 time" if len(given) == 1 else f"{len(given)} times"
            raise ValueError(f"{option} is given {times}, where there {texts}. Give one for each.")
    if count > 1 and (args.chat or args.ablate or args.compare or args.decode is not None):
        option = next((name for name in ("chat", "ablate", "compare") if getattr(args, name)), "decode")
        option = _option(option)
        raise ValueError(f"{option} goes with one text, and these are {count:,}. Give them one after the other.")
    if args.padding is not None and count == 1:
        raise ValueError("--padding says where the shorter of several texts are filled up, and there is one text.")
    args.more = tuple(zip(args.text[1:], seconds[1:], targets[1:], strict=True)) if args.text else ()
    args.text = args.text[0] if args.text else None
    args.pair, args.target = seconds[0], targets[0]


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """As every line of the command: argparse would say nothing of a disk that is full."""
        (say if file is sys.stdout else complain)(message.rstrip("\n"))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="attention-explorer", description="See where a transformer looks, with the numbers it computed."
    )
    parser.add_argument(
        "session",
        nargs="?",
        metavar="FILE",
        help="a session (.attn) or a short text (attn1.…) to go on with; other options change what it says. "
        "Or a lesson (.lesson, .toml)",
    )
    parser.add_argument(
        "--checkpoint",
        help=f"{FIRST} if left out: a shipped name, a folder, a GGUF file, or hf://owner/name or "
        "hf://owner/name:file.gguf once fetched; of a session, where its checkpoint is",
    )
    parser.add_argument(
        "--text",
        type=_as_typed,
        action="append",
        help="the input; the checkpoint's example if left out. Given again: several texts, run together",
    )
    parser.add_argument("--texts", metavar="FILE", help="a file of texts to run together, one a line")
    parser.add_argument(
        "--padding", choices=get_args(PaddingSide), help="where the shorter of several texts are filled up"
    )
    parser.add_argument(
        "--pair",
        metavar="TEXT",
        type=_as_typed,
        action="append",
        help="a second text, for a model that reads two together; one for each --text",
    )
    parser.add_argument(
        "--choice",
        metavar="TEXT",
        type=_as_typed,
        action="append",
        help="what may follow --text, for a model that chooses; given again, another choice",
    )
    parser.add_argument("--chat", action="store_true", help="the input is a user's turn, for a model that converses")
    parser.add_argument(
        "--target",
        type=_as_typed,
        action="append",
        help="what the decoder of an encoder-decoder model is made to say; it writes itself if left out. One for all "
        "texts, or one for each. With --ablate, of another model, the token that is measured",
    )
    parser.add_argument(
        "--picture",
        type=_as_typed,
        metavar="FILE",
        help="what a vision model looks at: a file, or a sample, as chelsea",
    )
    parser.add_argument(
        "--cut",
        action="store_true",
        help="keep what fits of a text that is too long, with --png, --weights or --decode",
    )
    parser.add_argument("--scale", metavar="FACTOR", help="multiply every attention score by this, as 0.5")
    parser.add_argument(
        "--mask",
        metavar="KIND[:N]",
        action="append",
        default=[],
        help=f"mask every head: {', '.join(mask_spellings())}; may be given again",
    )
    parser.add_argument(
        "--skip",
        metavar="LAYER.PART",
        action="append",
        default=[],
        help="switch a part of a block off, as 5.mlp, 5.attention, encoder.2.mlp, 5.layer, 5.head3, 5.neuron17, or a "
        "norm's gain, 5.norm1; or hold it at its mean, 5.head3:mean, or at what it gives at position 0, 5.head3:0; may "
        "be given again",
    )
    parser.add_argument("--device", help="cpu, cuda:0, mps, xpu:0, or auto to spread over all")
    parser.add_argument("--dtype", choices=tuple(UNIT_ROUNDOFFS), help="the number format to run in, else float32")
    parser.add_argument("--theme", choices=("system", "light", "dark"), help="for this start")
    parser.add_argument("--png", metavar="FILE", help="render the window to a picture, without opening it")
    parser.add_argument(
        "--save", metavar="FILE.attn", help="write a session of this checkpoint, text and settings, without a window"
    )
    parser.add_argument("--size", default="1440x900", help="width x height of that picture")
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help="write all attention weights, and what they are of, to an .npz or .safetensors file; with --decode also "
        "those of what the model writes",
    )
    parser.add_argument(
        "--roles", metavar="FILE.csv", help="write what every head does: stack, layer, head, role, score"
    )
    parser.add_argument(
        "--probe",
        metavar="FILE",
        help="with --roles: the texts that it is found on, .txt, .csv, .jsonl, or .conllu with dependency edges; those "
        "that come along if left out",
    )
    parser.add_argument("--corpus", metavar="FILE", help="read the texts of a file: .txt, .csv, .tsv or .jsonl")
    parser.add_argument(
        "--weights-mean", metavar="FILE.npz", help="write the mean weights of every head over --corpus, and by distance"
    )
    parser.add_argument(
        "--words", action="store_true", help="weights between words, not the pieces of them, in --png and --weights"
    )
    parser.add_argument(
        "--ablate",
        metavar="FILE.csv",
        help="write what zeroing each head does to the logit of a token after the text, that of --target, as “ Tom”, "
        "or the likeliest. Columns stack, layer, head, effect",
    )
    parser.add_argument(
        "--against",
        metavar="TOKEN",
        type=_as_typed,
        help="with --ablate: the effect on --target's logit less this one's",
    )
    parser.add_argument(
        "--position",
        metavar="N",
        type=int,
        help="with --ablate: measure at token N of the text, from 0; else at a masked model's first mask, or the end",
    )
    comparing = parser.add_argument_group(
        "comparing", "this run, A, beside another, B; what is not said of B is as in A, or as a session has it"
    )
    comparing.add_argument(
        "--compare",
        metavar="FILE",
        help="write how much every head differs, to a .csv (stack, layer, head, change) or an .npz",
    )
    comparing.add_argument("--with-text", metavar="TEXT", type=_as_typed, help="what B reads")
    comparing.add_argument("--with-checkpoint", metavar="NAME", help="the checkpoint of B; without A's interventions")
    comparing.add_argument("--with-target", metavar="TEXT", type=_as_typed, help="what the decoder of B is made to say")
    comparing.add_argument("--with-picture", metavar="FILE", type=_as_typed, help="what B looks at")
    comparing.add_argument("--with-scale", metavar="FACTOR", help="as --scale; B has these in the place of A's")
    comparing.add_argument("--with-mask", metavar="KIND[:N]", action="append", default=[], help="as --mask")
    comparing.add_argument("--with-skip", metavar="LAYER.PART", action="append", default=[], help="as --skip")
    comparing.add_argument("--with-session", metavar="FILE.attn", help="B is what a session has open")
    comparing.add_argument(
        "--match",
        choices=get_args(Matching),
        default="index",
        help="which heads are held against which: of the same layer and number, or the most alike. By index if left "
        "out, where both have as many",
    )
    writing = parser.add_argument_group("writing", "what --decode does; beam search with --beams above 1, else greedy")
    writing.add_argument("--decode", metavar="N", type=int, help="print what the model writes, at most N tokens")
    writing.add_argument("--strategy", choices=get_args(Strategy), help="instead of what the other options ask for")
    writing.add_argument("--beams", metavar="N", type=int, help="width of the beam search")
    writing.add_argument(
        "--length-penalty", metavar="X", type=float, help="of the beam search; above 1 for longer text"
    )
    writing.add_argument(
        "--temperature", metavar="X", type=float, help="sample; below 1 is surer, above 1 bolder, 0 is greedy"
    )
    writing.add_argument("--top-k", metavar="N", type=int, help="sample from the N likeliest tokens")
    writing.add_argument("--top-p", metavar="P", type=float, help="sample from the likeliest that together reach P")
    writing.add_argument(
        "--min-p", metavar="P", type=float, help="sample from those P times as likely as the likeliest"
    )
    writing.add_argument("--seed", metavar="N", type=int, help="of the draws, 0 if left out")
    add_training_options(parser)
    parser.add_argument(
        "--check-lessons",
        nargs="*",
        metavar="FILE",
        help="go through every step of these lessons, or of those that come along, and check what each says; "
        "this draws a window that nobody sees, and needs Qt's libraries",
    )
    parser.add_argument(
        "--diagnose", action="store_true", help="print versions, devices and folders, to go with the report of a fault"
    )
    parser.add_argument(
        "--self-test",
        nargs="?",
        const="",
        metavar="FOLDER",
        help="try what the program is for, a line each; of a folder, also every checkpoint in it",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def _as_typed(text: str) -> str:
    """`text` as the input could hold it: bytes that are no text become "\ufffd", and lines end one way."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text).replace("\r\n", "\n").replace("\r", "\n")


_OTHER = ("text", "checkpoint", "target", "picture", "scale", "mask", "skip", "session")
"""What B may have that A has not, each an option `--with-...`."""


def _take_other(args: argparse.Namespace) -> None:
    """Make `other_given` and `other_interventions` (None where B has those of A) of what is said of B.

    Raises:
        ValueError: something is said of B without `--compare`, a file of another kind, or an intervention is wrong.
    """
    given = [name for name in _OTHER if getattr(args, f"with_{name}") not in (None, [])]
    if given and not args.compare:
        raise ValueError(f"--with-{given[0]} says what is other in B, and goes with --compare.")
    if args.match != "index" and not args.compare:
        raise ValueError("--match says which heads are held against which, and goes with --compare.")
    if args.compare and not args.compare.lower().endswith((".csv", ".npz")):
        raise ValueError(
            f"--compare writes a table, .csv, or arrays, .npz, not “{args.compare}”. Give a name that ends in one."
        )
    args.other_given = bool(given)
    edited = any(name in given for name in ("scale", "mask", "skip"))
    args.other_interventions = (
        interventions_of(args.with_scale, args.with_mask, args.with_skip, "--with-scale") if edited else None
    )


def interventions_of(
    factor: str | None, masks: Sequence[str], skips: Sequence[str], option: str = "--scale"
) -> tuple[Intervention, ...]:
    """What `--scale`, `--mask` and `--skip` ask for; `option` is what the first is called.

    Raises:
        ValueError: the sentence says which of them is wrong, and why.
    """
    listed: list[Intervention] = []
    if factor is not None:
        try:
            number = float(factor)
        except ValueError as cause:
            raise ValueError(f"{option} takes a number, as in {option} 0.5, not “{factor}”.") from cause
        listed.append(Scale(number))
    listed += [parse_mask(text) for text in masks]
    listed += [parse_skip(text) for text in skips]
    return tuple(item for item in listed if not is_neutral(item))


_SEARCHED = ("beams", "length_penalty")
_DRAWN = ("temperature", "top_k", "top_p", "min_p", "seed")


def decode_settings_of(args: argparse.Namespace) -> DecodeSettings | None:
    """How `--decode` is to write; None without it.

    Raises:
        ValueError: an option without `--decode`, of another strategy, or out of range; the sentence says which.
    """
    given: dict[str, Any] = {
        name: getattr(args, name) for name in (*_SEARCHED, *_DRAWN) if getattr(args, name) is not None
    }
    if args.decode is None:
        if given or args.strategy is not None:
            option = next(iter(given), "strategy")
            raise ValueError(f"{_option(option)} says how to write, and --decode is missing: try --decode 40.")
        return None
    if args.decode < 1:
        raise ValueError(f"--decode {args.decode} would write nothing: it is 1 or more.")
    if args.target is not None:
        raise ValueError("--target says what the model is made to say, and --decode lets it write. Give one of them.")
    strategy = args.strategy or _strategy_for(given)
    for name in given:
        if strategy != ("beam" if name in _SEARCHED else "sample") and not (name == "beams" and given[name] == 1):
            raise ValueError(f"{_option(name)} changes nothing with the strategy “{strategy}”. Leave one of them out.")
    return DecodeSettings(strategy=strategy, **given)


def _strategy_for(given: dict[str, Any]) -> Strategy:
    if given.get("beams", 1) != 1 or ("length_penalty" in given and "beams" not in given):
        return "beam"
    return "sample" if any(name in given for name in _DRAWN) else "greedy"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
