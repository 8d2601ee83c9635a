"""The scripts of what heads do over a file of texts, run in a fresh process: means, distances, places, rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from attention_models import Ablation, Mask, Positions, Scale, open_checkpoint, read_corpus
from attention_models.forward.context import Context, Workspace
from attention_models.forward.model import Model
from attention_models.protocol.corpus import (
    CorpusFigure,
    CorpusQuestion,
    CorpusView,
    ShownCell,
    ShownDistances,
    ShownInCorpus,
    ShownPlace,
    ShownRow,
)
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.request import Cancelled
from attention_models.protocol.roles import PATTERNS
from attention_models.protocol.values import SiteRef
from attention_models.scripts import corpus
from attention_models.scripts.corpus import write
from attention_models.scripts.own_functions import FACE
from tests.models.scripts.running import Line, printed
from tests.models.tiny import TinyModel

TOLERANCE = 1e-6  # of the largest number that a script prints
TEXTS = [
    "Tom and Anna went to the park.",
    "Anna gave the ball to Tom. Tom gave the ball to",
    "The dog is playing with a red ball in the garden.",
    "Tom fell.",
    "She was singing and talking to Anna.",
]
SPANISH = ["Tom y Ana.", "Ana le dio la pelota.", "El perro juega.", "Tom se cayó.", "Ella cantaba."]
DECODER = SiteRef("decoder", 1)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(TEXTS))
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text("text,second\n" + "\n".join(f'"{a}","{b}"' for a, b in zip(TEXTS, SPANISH, strict=True)))
    return path


def code_of(
    model: Model, view: CorpusView, site: SiteRef, head: int, figure: CorpusFigure, ended: bool | None = None
) -> str:
    workspace = Workspace()
    workspace.open(model)
    request = ShownInCorpus(
        of=view.request,
        site=site,
        head=head,
        figure=figure,
        texts=view.texts,
        tokens=view.tokens,
        ended=view.ended if ended is None else ended,
    )
    return write(request, Context(workspace, lambda: False, lambda _label, _share: None)).code()


def figures_of(view: CorpusView, site: SiteRef, head: int) -> dict[str, CorpusFigure]:
    """One of each kind."""
    place = view.sites.index(site)
    mean, by_distance = view.mean[place, head], view.by_distance[place, head]
    cells = [(int(q), int(k)) for q, k in zip(*np.nonzero(~np.isnan(mean)), strict=True)]
    query, key = cells[len(cells) // 2]
    there = [i for i in range(len(by_distance)) if not np.isnan(by_distance[i])]
    found: dict[str, CorpusFigure] = {"map": ShownCell(query, key, float(mean[query, key]))}
    if there:
        found["distance"] = ShownDistances(tuple((int(view.distances[i]), float(by_distance[i])) for i in there[:4]))
    if not np.isnan(view.scores[place, head]):
        hits = view.hits[place][head]
        found["place"] = ShownPlace(float(view.scores[place, head]), hits[-1] if hits else None)
    if view.rows and site in view.row_sites:
        row = view.rows[-1]
        weights = row.weights[view.row_sites.index(site)][head]
        few = tuple((k, float(weights[k])) for k in range(len(weights)) if not np.isnan(weights[k]))[:3]
        found["row"] = ShownRow(row.line, row.text, row.second, row.query, few)
    return found


def scripts_of(
    name: str,
    model: Model,
    path: Path,
    site: SiteRef,
    asked: str,
    edits: Sequence[Intervention] = (),
) -> dict[str, str]:
    first = model.encode(TEXTS[0])
    rows_of = (first.source or first.tokens)[1].word  # whatever the tokenizer makes of it
    view = read_corpus(model, path, attends_to=asked, rows_of=rows_of, interventions=edits)
    figures = figures_of(view, site, 1)
    return {f"{name} {kind}": code_of(model, view, site, 1, figure) for kind, figure in figures.items()}


def check(scripts: dict[str, str], folder: Path, own_classes: bool = False) -> dict[str, list[Line]]:
    found = printed(scripts, folder, own_classes)
    for name, lines in found.items():
        assert lines, name
        largest = max(1.0, *(abs(line.shown) for line in lines))
        for line in lines:
            assert line.computed == pytest.approx(line.shown, abs=TOLERANCE * largest), (name, line)
    return found


def test_every_figure_by_transformers_alone(tiny_model: TinyModel, lines: Path, tmp_path: Path) -> None:
    scripts: dict[str, str] = {}
    for kind in ("gpt2", "llama", "bert"):
        site = SiteRef("encoder" if kind == "bert" else "decoder", 1)
        scripts |= scripts_of(kind, tiny_model(kind), lines, site, "previous")
    assert len(scripts) == 12
    for code in scripts.values():
        assert "from_pretrained(" in code
        assert "from models" not in code
    check(scripts, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("asked", [role.name for role in PATTERNS] + ["word:ball"])
def test_every_question(story_gpt: Model, lines: Path, tmp_path: Path, asked: str) -> None:
    view = read_corpus(story_gpt, lines, attends_to=asked)
    site = SiteRef("decoder", 5)
    scores = view.scores[view.sites.index(site)]
    head = int(np.nanargmax(scores))
    hits = view.hits[view.sites.index(site)][head]
    scripts = {"score": code_of(story_gpt, view, site, head, ShownPlace(float(scores[head]), None))}
    for i, hit in enumerate(hits[:3]):
        scripts[f"hit {i}"] = code_of(story_gpt, view, site, head, ShownPlace(float(scores[head]), hit))
    assert len(scripts) > 1
    found = check(scripts, tmp_path)
    assert found["score"][-1].shown == scores[head] > 0.01
    assert {line.shown for line in found["hit 0"]} == {hits[0].weight, hits[0].score, float(scores[head])}


@pytest.mark.full
def test_pairs_and_translations(tiny_model: TinyModel, table: Path, lines: Path, tmp_path: Path) -> None:
    scripts = scripts_of("pair", tiny_model("bert"), table, SiteRef("encoder", 1), "special")
    assert "segments" in scripts["pair map"]
    for stack in ("encoder", "decoder", "cross"):
        asked = "first" if stack == "cross" else "copy" if stack == "decoder" else "induction"
        scripts |= scripts_of(stack, tiny_model("t5"), table, SiteRef(stack, 1), asked)
        scripts |= scripts_of(f"written {stack}", tiny_model("marian"), lines, SiteRef(stack, 0), "rare")
    assert all("from models" not in code for code in scripts.values())
    check(scripts, tmp_path)


@pytest.mark.full
def test_what_transformers_cannot_say_is_run_by_this_program(
    tiny_model: TinyModel, lines: Path, tmp_path: Path
) -> None:
    scripts: dict[str, str] = {}
    edits: dict[str, tuple[Intervention, ...]] = {
        "scale": (Scale(0.5),),
        "window": (Mask("window", window=2),),
        "padding": (Mask("padding", window=2),),
        "one head": (Mask("window", window=2, site=DECODER, head=1),),
        "skip": (Ablation("mlp", 0),),  # type: ignore[arg-type]
        "positions": (Positions("off"),),
    }
    for name, changes in edits.items():
        scripts |= scripts_of(name, tiny_model("gpt2"), lines, DECODER, "induction", changes)
    scripts |= scripts_of("sliding", tiny_model("mistral"), lines, DECODER, "copy")
    scripts |= scripts_of("weights", tiny_model("gpt_neo"), lines, DECODER, "previous")
    for name, code in scripts.items():
        assert FACE in code or name.startswith(("sliding", "weights")), name
    assert "interventions=(Ablation(part='mlp', site=SiteRef(stack='decoder', layer=0), " in scripts["skip map"]
    check(scripts, tmp_path, own_classes=True)


@pytest.mark.full
def test_a_recurrent_model(tmp_path: Path) -> None:
    path = tmp_path / "dates.tsv"
    path.write_text("3 May 2001\t2001-05-03\n4 June 1999\t1999-06-04\n")
    view = read_corpus(open_checkpoint("dates-bahdanau"), path, attends_to="first")
    site = SiteRef("cross", 0)
    figures = figures_of(view, site, 0)
    model = open_checkpoint("dates-bahdanau")
    check({name: code_of(model, view, site, 0, figure) for name, figure in figures.items()}, tmp_path, own_classes=True)


@pytest.mark.full
def test_more_texts_than_a_script_lists_are_read_from_their_file(
    tiny_model: TinyModel, lines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "MOST_NUMBERS", 20)
    scripts = scripts_of("many", tiny_model("gpt2"), lines, DECODER, "previous", (Scale(0.5),))
    assert sum("read_corpus(model, " in code for code in scripts.values()) == 3
    monkeypatch.setattr(corpus, "_MOST_WRITTEN", 2)
    monkeypatch.setattr(corpus, "MOST_NUMBERS", 2000)
    more = scripts_of("written", tiny_model("marian"), lines, SiteRef("cross", 1), "first")
    assert "read_corpus(model, " in more["written map"]
    check(scripts | more, tmp_path, own_classes=True)


@pytest.mark.full
def test_what_cannot_be_had_again_is_said(tiny_model: TinyModel, lines: Path, tmp_path: Path) -> None:
    model = tiny_model("gpt2")
    rows_of = model.encode(TEXTS[0]).tokens[1].word
    view = read_corpus(model, lines, attends_to="previous", rows_of=rows_of)
    figures = figures_of(view, DECODER, 1)
    for name in ("map", "distance"):
        with pytest.raises(InputError, match="not read to its end"):
            code_of(model, view, DECODER, 1, figures[name], ended=False)
    place = code_of(model, view, DECODER, 1, figures["place"], ended=False)  # the one text is there all the same
    assert "# The file was not read to its end." in place
    check({"place": place, "row": code_of(model, view, DECODER, 1, figures["row"], ended=False)}, tmp_path)
    lines.write_text(lines.read_text() + "\n\nOne more.")
    with pytest.raises(InputError, match="has other texts now"):
        code_of(model, view, DECODER, 1, figures["map"])


def test_called_off_while_texts_are_read(tiny_model: TinyModel, lines: Path) -> None:
    model = tiny_model("gpt2")
    view = read_corpus(model, lines)
    workspace = Workspace()
    workspace.open(model)
    request = ShownInCorpus(
        of=view.request,
        site=DECODER,
        head=0,
        figure=ShownCell(1, 0, 0.5),
        texts=view.texts,
        tokens=view.tokens,
        ended=True,
    )
    with pytest.raises(Cancelled):
        write(request, Context(workspace, lambda: True, lambda _label, _share: None))
    assert view.request.question == CorpusQuestion()
