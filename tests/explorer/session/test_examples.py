"""The examples: every claim on the shipped weights, what a file may say, showing one, undo, and another model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from attention_explorer.panels.registry import TITLES
from attention_explorer.session.example_rules import interventions_of, selection_of
from attention_explorer.session.examples import Example, decode, examples_of
from attention_explorer.session.intents import (
    Arrived,
    OpenCheckpoint,
    PutIntervention,
    SelectCell,
    SetText,
    ShowExample,
)
from attention_explorer.session.session import Session
from attention_explorer.session.state import InterventionItem, Selection, State
from attention_models.engine.engine import Engine
from attention_models.files.catalogue import SHIPPED
from attention_models.files.sample_pictures import path_of
from attention_models.forward.trace import Trace
from attention_models.protocol.chat import Pair
from attention_models.protocol.interventions import Intervention, Mask
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.values import SiteRef
from tests.explorer.session import answers
from tests.explorer.session.answers import after
from tests.models.asking import ask, opened

ALL = [pytest.param(name, i, id=f"{name}-{i}") for name in SHIPPED for i in range(len(examples_of(name)))]


@pytest.fixture(scope="module")
def engine() -> Iterator[dict[str, Engine]]:
    """The engine with one model open, of the last test."""
    held: dict[str, Engine] = {}
    yield held
    held.clear()


def engine_of(held: dict[str, Engine], name: str) -> Engine:
    if name not in held:
        held.clear()
        held[name] = opened(name)
    return held[name]


def ran_with(engine: Engine, example: Example, changes: tuple[Intervention, ...]) -> tuple[Ran, Trace]:
    prompt = example.text if example.second is None else Pair(example.text, example.second)
    inputs = RunInputs(prompt, picture=example.picture, interventions=changes)
    ran = ask(engine, ForwardRequest(inputs=inputs, ticket=2))
    assert isinstance(ran, Ran), ran
    assert engine.workspace.run is not None
    return ran, engine.workspace.run.trace


def likeliest(engine: Engine, trace: Trace, position: int) -> tuple[str, float]:
    """The likeliest token or class and its probability, in float64."""
    model = engine.workspace.model
    assert model is not None
    labels = getattr(model.module.config, "id2label", {}) if model.tokenizer is None else {}
    if model.info.class_head is not None:
        labels = dict(enumerate(model.info.class_head.labels))
    logits = np.asarray(trace.logits, dtype=np.float64)[0 if labels else position]
    shares = np.exp(logits - logits.max())
    best = int(logits.argmax())
    name = labels[best] if labels else model.tokenizer.decode([best]).strip()
    return str(name), float(shares[best] / shares.sum())


@pytest.mark.short("*-0", "*-1", "story-gpt-*")
@pytest.mark.parametrize(("name", "index"), ALL)
def test_what_an_example_claims_is_so(engine: dict[str, Engine], name: str, index: int) -> None:
    example = examples_of(name)[index]
    claim, open_engine = example.claim, engine_of(engine, name)
    plain, trace = ran_with(open_engine, example, ())
    selection = selection_of(example, plain)
    changes = tuple(item.value for item in interventions_of(example, selection))
    assert bool(changes) == (claim.otherwise is not None)
    if claim.otherwise is not None:
        said, share = likeliest(open_engine, trace, selection.query)
        assert said == claim.otherwise
        assert share >= claim.otherwise_probability > 0
    ran, trace = ran_with(open_engine, example, changes)
    assert ran.site(selection.site) if selection.site else not ran.sites
    if claim.weight is not None:
        assert selection.site is not None
        row = trace.weights(selection.site, selection.head)[selection.query]
        assert row[selection.key] >= claim.weight > 0
        assert not claim.largest or row.argmax() == selection.key
        if claim.over is not None:
            over = next(i for i, token in enumerate(ran.tokens) if token.word == claim.over)
            assert row[selection.key] > 2 * row[over]
    if claim.next is not None:
        said, share = likeliest(open_engine, trace, selection.query)
        assert said == claim.next
        assert claim.most >= share >= claim.probability > 0
    if claim.writes is not None:
        assert ran.written == claim.writes


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_checkpoint_has_examples_that_can_be_shown(name: str) -> None:
    examples = examples_of(name)
    assert len(examples) >= 6
    assert len({example.title for example in examples}) == len(examples)
    for example in examples:
        assert example.panel in TITLES
        assert bool(example.text) != bool(example.picture)
        assert not example.picture or path_of(example.picture).is_file()


def test_other_checkpoints_have_no_examples() -> None:
    assert examples_of("/home/someone/story-gpt") == examples_of("../story-gpt") == ()


GOOD = '[[example]]\ntitle = "A"\nsay = "Look."\ntext = "Tom"\n[example.claim]\nweight = 0.5\n'


def test_a_file_of_examples_is_read() -> None:
    (example,) = decode(GOOD.encode())
    assert (example.title, example.text, example.claim.weight) == ("A", "Tom", 0.5)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("example = 3", "Expected `array`"),
        ("example = []", "length >= 1"),
        ("[[example", "[Ee]xpected"),
        (GOOD.replace("title", "titel"), "unknown field `titel`"),
        (GOOD.replace('text = "Tom"', "text = 3"), "Expected `str`, got `int`"),
        (GOOD.replace("Look.", "x" * 301), "length <= 300"),
        (GOOD.replace("0.5", "1.5"), "<= 1"),
        (GOOD.replace('"Tom"', '"Tom"\nlayer = -1'), ">= 0"),
        (GOOD.replace('"Tom"', '"Tom"\nmask = "fog"'), "no mask “fog”"),
        (GOOD.replace('"Tom"', '"Tom"\nmask = "window"'), "needs a number"),
    ],
)
def test_a_file_that_is_none_says_where(file: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        decode(file.encode())


# --------------------------------------------------------------------------- in the session

FOUND, BLOCKED, WINDOW = examples_of("story-gpt")[:3]
TO, TOM = 11, 0  # in a run of `answers`, which has no ⟨start⟩ and "park." as one token
HEAD = SiteRef("decoder", 5)


def run_of(state: State) -> Ran:
    """The answer to what `state` asks for."""
    inputs = state.document.inputs
    return answers.changed(answers.ran(text=inputs.prompt), interventions=inputs.interventions)


def shown(state: State, example: Example) -> State:
    """`example` chosen, and all that it asks for answered."""
    state = after(state, ShowExample(example))
    while not state.up_to_date:
        state = after(state, run_of(state))
    return state


def test_an_example_brings_its_text_its_cell_and_its_sentence(running: State) -> None:
    chosen = after(running, ShowExample(FOUND))
    assert (chosen.document.text, chosen.document.interventions) == (FOUND.text, ())
    assert chosen.notice is not None
    assert chosen.notice.text == FOUND.say
    state = shown(running, FOUND)
    assert state.selection == Selection(HEAD, 5, TO, TOM)
    assert state.notice == chosen.notice


def test_a_blocked_cell_is_masked_once_its_words_are_known(running: State) -> None:
    chosen = after(running, ShowExample(BLOCKED))
    assert chosen.document.interventions == ()
    state = shown(running, BLOCKED)
    blocked = Mask("painted", cells=((TO, TOM, False),), site=HEAD, head=5)
    assert state.document.interventions == (InterventionItem(blocked),)


def test_an_example_of_the_text_on_screen_is_shown_at_once(running: State) -> None:
    state = after(shown(running, FOUND), SelectCell(3, 2))
    assert after(state, ShowExample(FOUND)).selection == Selection(HEAD, 5, TO, TOM)


def test_what_the_last_example_changed_goes(running: State) -> None:
    state = shown(shown(running, WINDOW), FOUND)
    assert state.document.interventions == ()


def test_words_typed_before_the_run_ended_keep_their_own_selection(running: State) -> None:
    chosen = after(running, ShowExample(BLOCKED))
    typed = after(chosen, SetText("Mine"))
    state = after(typed, run_of(typed))
    assert state.document.interventions == ()
    again = after(state, SetText(BLOCKED.text))
    assert after(again, run_of(again)).document.interventions == ()


@pytest.mark.parametrize("example", [FOUND, BLOCKED, WINDOW], ids=["found", "blocked", "window"])
def test_an_example_is_one_step_to_undo(qapp: QApplication, example: Example) -> None:
    session = Session()
    for answer in (answers.loaded(), answers.ran()):
        session.dispatch(Arrived(answer))
    before = session.state.document
    session.dispatch(ShowExample(example))
    while not session.state.up_to_date:
        session.dispatch(Arrived(run_of(session.state)))
    there = session.state.document
    session.undo()
    assert session.state.document == before
    assert not session.can_undo
    assert session.state.notice is None
    session.redo()
    assert session.state.document == there


@pytest.mark.parametrize("example", [FOUND, BLOCKED, WINDOW], ids=["found", "blocked", "window"])
def test_an_untouched_example_gives_way_to_the_next_checkpoints(running: State, example: Example) -> None:
    state = after(shown(running, example), OpenCheckpoint("b"), answers.loaded("b", "Theirs"))
    assert state.document.text == "Theirs"
    assert state.document.interventions == ()


def test_a_changed_example_and_a_mask_of_ones_own_are_kept(running: State) -> None:
    state = after(shown(running, WINDOW), SetText(WINDOW.text + " her"))
    assert after(state, OpenCheckpoint("b"), answers.loaded("b", "Theirs")).document.text == WINDOW.text + " her"
    own = PutIntervention(Mask("window", window=3))
    state = after(shown(running, FOUND), own, OpenCheckpoint("b"), answers.loaded("b", "Theirs"))
    assert state.document.interventions == (InterventionItem(own.value),)
    assert state.document.text == "Theirs"


def test_an_examples_picture_gives_way_to_another_kind_of_pictures(running: State) -> None:
    wrong = examples_of("vit-quickdraw")[-1]
    grey = replace(answers.loaded("vit-quickdraw", "").info, family="vision", channels=1)
    colour = replace(grey, reference="vit-cifar10", channels=3)
    state = after(running, OpenCheckpoint("vit-quickdraw"), replace(answers.loaded("vit-quickdraw"), info=grey))
    state = after(state, ShowExample(wrong))
    assert state.document.picture == wrong.picture
    state = after(state, OpenCheckpoint("vit-cifar10"), replace(answers.loaded("vit-cifar10"), info=colour))
    assert state.document.picture == "sample:chelsea"


def test_an_examples_picture_does_not_make_an_example_of_a_text_of_ones_own(running: State) -> None:
    picture = after(running, SetText("Mine"), ShowExample(examples_of("vit-cifar10")[0]))
    assert picture.document.text == "Mine"
    state = after(picture, OpenCheckpoint("b"), answers.loaded("b", "Theirs"))
    assert state.document.text == "Mine"
    masked = after(picture, PutIntervention(Mask("window", window=3)))
    state = after(masked, OpenCheckpoint("b"), answers.loaded("b", "Theirs"))
    assert len(state.document.interventions) == 1


@pytest.mark.parametrize(
    ("checkpoint", "text", "said"),
    [
        ("dates-luong", "The dog ran home.", "rewrites dates, and this text has none"),
        ("story-gpt", "3/4/2001", "made for sentences, and this text has no words"),
        ("dates-luong", "The dog ran home on 5 May 1990.", ""),
        ("story-gpt", "The dog ran home.", ""),
        ("story-gpt", "¿Qué?", ""),
    ],
)
def test_a_text_of_ones_own_that_is_not_a_models_kind_is_kept_and_said_so(
    running: State, checkpoint: str, text: str, said: str
) -> None:
    theirs = replace(answers.loaded("b").info, reference=checkpoint, name=checkpoint, example="Theirs", reads="en")
    if checkpoint.startswith("dates"):
        theirs = replace(theirs, reads="")
    arrived = replace(answers.loaded(checkpoint), info=theirs)
    other = after(running, OpenCheckpoint("b"), answers.loaded("b"), SetText(text))
    state = after(other, OpenCheckpoint(checkpoint), arrived)
    assert state.document.text == text
    assert (state.notice is None) == (not said)
    if state.notice is not None:
        assert said in state.notice.text
        assert state.notice.action == SetText("Theirs")
