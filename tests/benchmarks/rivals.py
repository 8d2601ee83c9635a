"""Side by side on one text and one machine: this program, transformers' own output_attentions, and bertviz.

    python -m tests.benchmarks.rivals
    python -m pip install bertviz ipython    # for bertviz' rows; they are left out without it

The model has GPT-2 small's shape (12 layers of 12 heads) and random weights. Each figure is measured in a process of
its own: seconds from the text until there is something to look at, the bytes that are kept for it, and how much the
process grew at most. Prints a Markdown table. Times are wall-clock: run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # started as a script, from a checkout

from tests.benchmarks.forward import machine

OURS, EAGER, HEAD_VIEW, MODEL_VIEW = "ours", "eager", "head_view", "model_view"
ROWS = {
    OURS: ("this program: the run, all 144 thumbnails, one head's map", "what weights are computed from"),
    EAGER: ("transformers, eager, `output_attentions=True`", "weights"),
    HEAD_VIEW: ("bertviz `head_view`, HTML from these weights", "HTML"),
    MODEL_VIEW: ("bertviz `model_view`, HTML from these weights", "HTML"),
}
THUMBNAIL = 48


def main() -> None:
    arguments = parsed()
    if arguments.one:
        print(json.dumps(measured(arguments.one, Path(arguments.folder), arguments.tokens[0], arguments.runs)))
        return
    print(f"{machine()}\n")
    has_bertviz = importlib.util.find_spec("bertviz") is not None
    if not has_bertviz:
        print("bertviz is not installed: `python -m pip install bertviz ipython` adds its rows.\n")
    limits = {
        OURS: max(arguments.tokens),
        EAGER: arguments.eager_up_to,
        HEAD_VIEW: arguments.bertviz_up_to if has_bertviz else 0,
        MODEL_VIEW: arguments.bertviz_up_to if has_bertviz else 0,
    }
    with tempfile.TemporaryDirectory() as scratch:
        from tests.benchmarks.checkpoints import gpt2_small

        folder = gpt2_small(Path(scratch) / "gpt2-small", max(arguments.tokens))
        print("| | tokens | seconds | kept | process grew by |\n|---|---|---|---|---|")
        for tool, limit in limits.items():
            for tokens in (count for count in arguments.tokens if count <= limit):
                print(line(tool, tokens, in_a_process_of_its_own(tool, folder, tokens, arguments.runs)), flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 256, 512, 1024, 2048, 4096])
    parser.add_argument("--eager-up-to", type=int, default=1024, help="tokens; at 4,096 it takes 10 GB")
    parser.add_argument("--bertviz-up-to", type=int, default=256, help="tokens; at 512 its HTML takes a gigabyte")
    parser.add_argument("--runs", type=int, default=3, help="of which the median is told")
    parser.add_argument("--one", choices=list(ROWS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


def in_a_process_of_its_own(tool: str, folder: Path, tokens: int, runs: int) -> dict[str, float]:
    """Seconds, bytes kept, and by how many bytes the process grew (0 where the system does not say)."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", tool, "--folder", str(folder)]
    answer = subprocess.run(
        [*command, "--tokens", str(tokens), "--runs", str(runs)], stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def line(tool: str, tokens: int, found: dict[str, float]) -> str:
    what, kept = ROWS[tool]
    grown = f"{found['grown'] / 1e6:,.0f} MB" if found["grown"] else "not known"
    return f"| {what} | {tokens:,} | {found['seconds']:.2f} | {found['kept'] / 1e6:,.0f} MB of {kept} | {grown} |"


def measured(tool: str, folder: Path, tokens: int, runs: int) -> dict[str, float]:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with torch.no_grad():
        way = {OURS: ours, EAGER: eager}.get(tool, bertviz_html)(folder, tokens, tool)
        before = resident()
        times, kept = [], 0
        for _ in range(runs):
            started = time.perf_counter()
            kept, seconds = way()
            times.append(seconds or time.perf_counter() - started)
        return {"seconds": statistics.median(times), "kept": kept, "grown": max(0, peak() - before)}


Way = Callable[[], tuple[int, float]]  # bytes kept, and seconds where not all of it counts


def ours(folder: Path, tokens: int, _tool: str) -> Way:
    from attention_models import open_checkpoint, run
    from attention_models.attention.tiles import HeadTiles
    from attention_models.protocol.values import Tile, top_level
    from tests.benchmarks.checkpoints import text_of

    model = open_checkpoint(folder)
    text = text_of(model.tokenizer, tokens)
    run(model, "Tom and Anna").atlas(THUMBNAIL)  # what is done once

    def way() -> tuple[int, float]:
        trace = run(model, text)
        trace.atlas(THUMBNAIL)
        site = trace.sites[5]
        HeadTiles(trace.at(5, 5), 5).tile(Tile(top_level(site.queries, site.keys), 0, 0))
        return trace.nbytes, 0.0

    return way


def eager(folder: Path, tokens: int, _tool: str) -> Way:
    model, inputs, _ = opened(folder, tokens)

    def way() -> tuple[int, float]:
        weights = model(**inputs, output_attentions=True, use_cache=False).attentions
        return sum(layer.nbytes for layer in weights), 0.0

    return way


def bertviz_html(folder: Path, tokens: int, tool: str) -> Way:
    import bertviz  # type: ignore[import-not-found]

    model, inputs, words = opened(folder, tokens)
    weights = model(**inputs, output_attentions=True, use_cache=False).attentions

    def way() -> tuple[int, float]:
        started = time.perf_counter()
        html = getattr(bertviz, tool)(weights, words, html_action="return")
        return len(html.data.encode()), time.perf_counter() - started

    return way


def opened(folder: Path, tokens: int) -> tuple[Any, dict[str, Any], list[str]]:
    """The model as transformers opens it, its input, and the tokens' names."""
    import transformers

    from tests.benchmarks.checkpoints import text_of

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    inputs = tokenizer(text_of(tokenizer, tokens), return_tensors="pt")
    model(**tokenizer("Tom and Anna", return_tensors="pt"), output_attentions=True)  # what is done once
    return model, dict(inputs), tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])


def resident() -> int:
    """Bytes of memory that this process has now; 0 where the system does not say."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * 4096 if pages.exists() else 0


def peak() -> int:
    """The most that this process ever had."""
    if not Path("/proc/self/statm").exists():
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
