"""No label has a word that is neither plain English nor in the glossary: every panel of seven checkpoints is read.

Plain English are the frequent words of `resources/languages/en.txt` and those that `plain_words.txt` beside this file
adds. What a model reads or says (tokens, classes, names) is no label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from attention_explorer.glossary import glossary
from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.panels.lookup.entries import ENTRIES
from attention_explorer.panels.lookup.panel import LookupPanel
from attention_explorer.panels.playground.form import example_of
from attention_explorer.panels.playground.panel import PlaygroundPanel
from attention_explorer.panels.positions.panel import PositionsPanel
from attention_explorer.paths import resource
from attention_explorer.session.intents import SetView
from attention_explorer.window.window import MainWindow
from attention_models.files.catalogue import SHIPPED
from attention_models.files.sample_pictures import SAMPLES
from attention_models.protocol.decoding import DecodeStepView
from attention_models.protocol.effects import EffectsView
from attention_models.protocol.prediction import PredictionView
from attention_models.textbook.tasks import TASKS, Task
from tests.explorer.real_window import opened_window, settle, wait_until
from tests.explorer.visible_texts import painted, texts_in

TEXTS = {
    "story-gpt": "Tom and Anna went to the park. Anna gave the ball to",
    "story-bert": "Tom and Anna [MASK] to the park.",
    "story-next": "Tom fell.",
    "en-es": "The black cat is sleeping on the table.",
    "recurrent-en-es-bahdanau": "The black cat is sleeping.",
    "recurrent-en-es-bottleneck": "The black cat is sleeping.",
    "vit-cifar10": "",
}
_NO_LABEL = re.compile(
    r"“[^”]*”"  # a token in a sentence
    r"|<[^>]*>"  # mark-up
    r"|(?:\S+ )?\S*…\S*"  # cut by the width, maybe within a term of two words
    r"|(?:Ctrl|Alt|Shift)\+\S+|\bEsc\b"  # keys
    r"|␣\S*"  # a token
    r"|https?:\S+"
    r"|\b[\w-]+ (?:et al\.|and \w+) \d{4}"  # a paper
)
_WORD = re.compile(r"(?<![\w.])[^\W\d_][^\W\d_'’-]*")


def plain_words() -> frozenset[str]:
    added = Path(__file__).with_name("plain_words.txt").read_text(encoding="utf-8")
    return frozenset((*resource("languages/en.txt").read_text(encoding="utf-8").split(), *added.split()))


def unexplained(texts: set[str], names: frozenset[str] = frozenset()) -> dict[str, str]:
    """Words of labels that nobody explains, each with a text that has it."""
    plain, found = plain_words(), {}
    for text in texts:
        rest = re.sub(r"['’]s\b", "", glossary().without_terms(_NO_LABEL.sub(" ", text)))
        for word in _WORD.findall(rest):
            if word.casefold() not in plain and word.casefold() not in names:
                found[word.casefold()] = text
    return found


@dataclass
class Read:
    window: MainWindow
    texts: set[str]
    names: frozenset[str]  # what the model reads and says


OTHERS = [pytest.param(name, marks=pytest.mark.full) for name in TEXTS if name != "story-gpt"]


@pytest.fixture(scope="module", params=["story-gpt", *OTHERS])
def read(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[Read]:
    """Every text of every panel, page by page."""
    with painted() as seen, opened_window(request.param, TEXTS[request.param]) as opened:
        texts, names = shown_by(opened)
        yield Read(opened, texts | set(seen), names)


def said_by_model(window: MainWindow) -> frozenset[str]:
    """Tokens of the run and of its answers, names of checkpoints, pictures and classes, word by word."""
    state = window.session.state
    ran, loaded = state.ran, state.results.loaded
    names = {
        *SHIPPED,
        *(path.stem for path in SAMPLES.rglob("*.jpg")),
        *(entry.key for entry in ENTRIES),
        *(word for task in TASKS.values() for word in (task.name, *_example(task))),
        "banan",
        "grapes",
        "kiwi",
    }
    if ran is not None:
        names |= {token.word for token in (*ran.tokens, *ran.source)} | {token.piece for token in ran.tokens}
    if loaded is not None and loaded.info.class_head is not None:
        names |= set(loaded.info.class_head.labels)
    for kind in (PredictionView, DecodeStepView):
        view = state.results.of(kind)
        if isinstance(view, PredictionView):
            names |= {candidate.label.lstrip("␣") for one in view.predictions for candidate in one.candidates}
        elif isinstance(view, DecodeStepView):
            names |= {candidate.label.lstrip("␣") for candidate in view.candidates}
            names |= {beam.label.lstrip("␣") for beam in view.beams}
    effects = state.results.of(EffectsView)
    if effects is not None:  # what a target may be chosen from, at its own position
        names |= {candidate.label.lstrip("␣") for candidate in effects.aim.candidates}
    return frozenset(word.casefold() for name in names for word in (name, *_WORD.findall(name)))


def _example(task: Task) -> tuple[str, ...]:
    """What the Playground shows of a task's rows, whole or cut."""
    row = example_of(task, task.difficulty)
    return tuple(text[:end] for text in (row.prompt, row.answer) for end in range(1, len(text) + 1))


def shown_by(window: MainWindow) -> tuple[set[str], frozenset[str]]:
    """Every text of every panel, page by page, and what the model said meanwhile."""
    texts, names = texts_in(window), said_by_model(window)

    def note() -> None:
        nonlocal names
        settle(window)
        texts.update(texts_in(panel))
        names |= said_by_model(window)

    for panel in window.panels:
        window.dock_host.docks[panel.name].show()
        window.dock_host.raise_panel(panel.name)
        wait_until(panel.isVisible)
        note()
        if isinstance(panel, PositionsPanel):
            for page in (1, 2, 0):
                panel.show_page(page)
                note()
        elif isinstance(panel, LookupPanel):
            for page in (1, 2, 0):
                panel.go_to(page)
                note()
        elif isinstance(panel, PlaygroundPanel):
            for button in panel.pages.findChildren(QPushButton):
                button.click()
                note()
        elif panel.name == "flow":
            for distance in ("block", "attention", "model"):
                window.session.dispatch(SetView("distance", distance))
                note()
        elif isinstance(panel, DecodingPanel) and not panel.player.silence():
            panel.view.transport.step.emit()
            wait_until(partial(_is_idle, panel))
            for page in range(4):
                panel.view.tabs.button(page).click()
                note()
        panel.show_about()
        texts.update(panel.callout.sentences)
        panel.show_about(False)
    return texts, names


def _is_idle(panel: DecodingPanel) -> bool:
    return panel.player.pending is None


def test_every_word_of_every_label_is_plain_or_explained(read):
    assert len(read.texts) > 300
    assert unexplained(read.texts, read.names) == {}


def test_a_planted_term_is_found(read):
    planted = QLabel("The eigenlogit of a hyperhead", read.window.centralWidget())
    planted.show()
    try:
        assert set(unexplained(texts_in(read.window), read.names)) == {"eigenlogit", "hyperhead"}
    finally:
        planted.hide()
        planted.setParent(None)
        planted.deleteLater()


def test_what_is_painted_by_hand_is_read_too(read):
    if read.window.session.state.site is not None:
        assert {"query (looks)", "key (is looked at)"} <= read.texts
        assert any("written by attention" in text for text in read.texts) or "recurrent" in str(read.names)


def test_the_list_of_plain_words_names_no_term():
    terms = {word.casefold() for entry in glossary().entries for word in entry.words if len(word) > 1}
    added = Path(__file__).with_name("plain_words.txt").read_text(encoding="utf-8").split()
    assert not terms & set(added)
    assert not {*resource("languages/en.txt").read_text(encoding="utf-8").split()} & set(added)
    assert added == sorted(set(added))
