"""The page Fine-tune asks for what it shows; what cannot be tuned is said, and the two sides are what was told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.playground.fine_tune import FILE, TUNED
from attention_explorer.panels.playground.panel import CURVES, FINE_TUNE, SET_UP, PlaygroundPanel
from attention_explorer.panels.playground.training_form import STEPS
from attention_explorer.recovery import training_folders
from attention_explorer.session.intents import OpenCheckpoint, TrainingTold
from attention_explorer.session.state import Document, State
from attention_explorer.widgets import dialogs
from attention_models.files.catalogue import TUNABLE, WEIGHTS
from attention_models.protocol.training_messages import (
    Asked,
    AskedTuning,
    Began,
    Classified,
    ClassShare,
    Ended,
    HeldOutPoint,
    Learned,
    Measured,
    Said,
    TrainingPoint,
    Write,
    Wrote,
)
from attention_models.protocol.training_plan import PlanRequest, PlanView
from attention_models.protocol.values import ClassHead, TrainingSteps
from tests.explorer.session.answers import loaded
from tests.explorer.silent import SilentSession, shown


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(State(Document(checkpoint="story-gpt", text="Tom went")))


@pytest.fixture
def panel(qtbot, session) -> PlaygroundPanel:
    panel = shown(qtbot, PlaygroundPanel, session)
    session.arrive(loaded("story-gpt"))
    QTest.mouseClick(panel.pages.button(FINE_TUNE), Qt.MouseButton.LeftButton)
    return panel


def press(button) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def plans(session: SilentSession) -> list[PlanRequest]:
    return [request for request in session.asked if isinstance(request, PlanRequest)]


def test_as_it_is_at_first_all_weights_of_the_open_checkpoint_learn_for_a_minute(panel):
    assert panel.fine_tune.asked() == AskedTuning("story-gpt", prompt="Tom went")
    assert panel.fine_tune.checkpoint.currentText() == "story-gpt, open now"
    assert panel.fine_tune.checkpoint.count() == 1 + len(TUNABLE)


def test_before_anything_is_tuned_the_page_says_what_it_does(panel, session):
    assert "A copy of a checkpoint goes on learning" in panel.about(session.state).sentences[0]
    press(panel.pages.button(SET_UP))
    assert "learns a task from nothing" in panel.about(session.state).sentences[0]


def test_another_checkpoint_is_tried_on_its_own_example(panel):
    """Not on the text of the one that is open."""
    page = panel.fine_tune
    for name in ("story-next", "story-bert"):
        card = json.loads((WEIGHTS / name / "explorer.json").read_text(encoding="utf-8"))
        page.checkpoint.setCurrentIndex(page.checkpoint.findData(name))
        assert page.asked().prompt == page.prompt.placeholderText() == card["example"]
        assert page.asked().second == card.get("second", "")
    page.checkpoint.setCurrentIndex(0)
    assert page.asked().prompt == page.prompt.placeholderText() == "Tom went"


def test_what_is_chosen_and_typed_is_asked_for(panel, session, qtbot, tmp_path, monkeypatch):
    page = panel.fine_tune
    assert not page.rank.isVisible()
    page.text.setFocus()
    QTest.keyClicks(page.text, "Once more")
    page.checkpoint.setFocus()
    QTest.keyClick(page.checkpoint, Qt.Key.Key_End)
    press(page.tuned.button(TUNED.index("lora")))
    assert page.rank.isVisible()
    page.rank.setValue(4)
    press(page.limit.button(STEPS))
    page.steps.setValue(7)
    page.rate.setValue(0.01)
    page.prompt.setFocus()
    QTest.keyClicks(page.prompt, "The dog")
    wanted = AskedTuning(
        TUNABLE[-1], "Once more", tuned="lora", rank=4, rate=0.01, prompt="The dog", seconds=None, steps=7
    )
    assert page.asked() == wanted
    qtbot.waitUntil(lambda: plans(session)[-1].asked.text == "Once more" and plans(session)[-1].asked.steps == 7)
    chosen = tmp_path / "pairs.tsv"
    monkeypatch.setattr(dialogs, "file_to_open", lambda *_: str(chosen))
    press(page.source.button(FILE))
    assert (page.text.isVisible(), page.file.isVisible()) == (False, True)
    page.file.ask()
    assert (page.asked().file, page.asked().text) == (str(chosen), "")
    assert page.file_name.text() == "pairs.tsv"
    press(page.tuned.button(TUNED.index("head")))
    assert (page.asked().tuned, page.asked().rank) == ("head", 0)


def test_what_cannot_be_tuned_is_said_and_train_waits(panel, session):
    request = plans(session)[-1]
    assert request.asked == AskedTuning("story-gpt")  # what is written before and after changes no plan
    session.arrive(PlanView(request=request, sentence="The text is empty: there is nothing to learn from it."))
    assert panel.fine_tune.sentence.text() == "The text is empty: there is nothing to learn from it."
    assert not panel.train.isEnabled()
    press(panel.pages.button(CURVES))
    assert panel.train.toolTip() == "The text is empty: there is nothing to learn from it."
    session.arrive(PlanView(request=request, parameters=8_500_000, rows=1_300, held_out=7))
    assert panel.fine_tune.sentence.text() == "8,500,000 parameters learn from 1,300 rows; 7 more are held out."
    assert panel.train.isEnabled()
    assert "Begin with a copy of the checkpoint" in panel.train.toolTip()


def test_train_begins_what_the_page_in_front_shows(panel, session):
    assert panel.train.text() == "Fine-tune"
    press(panel.train)
    assert session.live.learning.asked == AskedTuning("story-gpt", prompt="Tom went")
    assert panel.stack.currentIndex() == FINE_TUNE
    press(panel.pages.button(CURVES))
    assert panel.train.text() == "Fine-tune"  # the form that was in front last
    press(panel.pages.button(SET_UP))
    assert panel.train.text() == "Train"
    press(panel.train)
    assert isinstance(session.live.learning.asked, Asked)


def test_the_lowest_held_out_loss_is_named_where_it_is_not_the_last(panel, session):
    press(panel.train)
    tell(session, Began("/none/story-gpt-tuned", "go on", "", 12))
    for step, loss in ((0, 4.5), (20, 2.0), (40, 1.25), (60, 1.5), (80, 1.75)):
        tell(session, Learned((TrainingPoint(max(1, step), 2.0, 0.5, 2e-4, 100.0),), 1.0, 1.0, "running"))
        tell(session, Measured(HeldOutPoint(step, loss, 0.1, 0.0, 20)))
    assert panel.fine_tune.result.losses.text() == "Held-out loss 4.500 → 1.750, lowest 1.250 after step 40"
    tell(session, Measured(HeldOutPoint(100, 1.2, 0.1, 0.0, 20)))
    assert panel.fine_tune.result.losses.text() == "Held-out loss 4.500 → 1.200", "the last is the best"


def test_a_checkpoint_that_only_gets_worse_was_best_before_the_first_step(panel, session):
    press(panel.train)
    tell(session, Began("/none/story-gpt-tuned", "go on", "", 12))
    tell(session, Measured(HeldOutPoint(0, 1.5, 0.1, 0.0, 20)))
    tell(session, Measured(HeldOutPoint(10, 2.5, 0.1, 0.0, 20)))
    assert panel.fine_tune.result.losses.text() == "Held-out loss 1.500 → 2.500, lowest 1.500 before the first step"


def test_before_and_after_are_what_was_told(panel, session):
    press(panel.train)
    tell(session, Began("/none/story-gpt-tuned", "go on", "", 12))
    tell(session, Measured(HeldOutPoint(0, 4.5559, 0.1, 0.0, 20)))
    tell(session, Wrote("Tom went", " home.", " home.", 0))
    result = panel.fine_tune.result
    assert result.losses.text() == "Held-out loss 4.556"
    assert not result.compare.isVisible()
    tell(session, Learned((TrainingPoint(1, 2.0, 0.5, 2e-4, 100.0),), 1.0, 1.0, "running"))
    tell(session, Measured(HeldOutPoint(1, 1.6603, 0.6, 0.0, 20)))
    tell(session, Wrote("Tom went", " home.", " to sea.", 1))
    tell(session, Ended("done", 1, 1.0))
    assert result.losses.text() == "Held-out loss 4.556 → 1.660"
    assert [side.title.text() for side in (result.before, result.after)] == ["Before", "After step 1"]
    assert [side.text.text() for side in (result.before, result.after)] == ["home.", "to sea."]
    assert panel.curves.right.text() == result.losses.text()
    about = " ".join(panel.about(session.state).sentences)
    assert "4.556 before the first step, and is 1.660 after step 1" in about
    tell(session, Said("The text is longer than the model reads."))
    assert result.sentence.text() == "The text is longer than the model reads."


def tell(session: SilentSession, message) -> None:
    training = session.live.learning
    assert training is not None
    session.dispatch(TrainingTold(training.number, message))


def test_enter_and_the_button_ask_for_another_prompt(panel, session):
    page = panel.fine_tune
    assert not page.write.isEnabled()
    press(panel.train)
    tell(session, Began("/none/story-gpt-tuned", "go on", "", 12))
    press(page.write)
    assert session.live.learning.command == Write("Tom went")
    page.prompt.setFocus()
    QTest.keyClicks(page.prompt, "A cat")
    QTest.keyClick(page.prompt, Qt.Key.Key_Return)
    assert session.live.learning.command == Write("A cat")


def test_a_model_that_goes_when_another_learns_is_not_tuned(panel, session):
    private = str(training_folders.trainings_folder() / "1-1" / "reverse")
    session.dispatch(OpenCheckpoint(f"{private}@20"))
    session.arrive(loaded(f"{private}@20"))
    request = plans(session)[-1]
    assert isinstance(request.asked, AskedTuning)
    session.arrive(PlanView(request=request, parameters=1, rows=1, held_out=1))
    assert "Save it as a folder, and open that" in panel.fine_tune.sentence.text()
    assert not panel.train.isEnabled()


def test_a_tuned_model_is_tuned_anew_from_what_it_was(panel, session):
    press(panel.train)
    folder = str(Path("/none/story-gpt-tuned"))
    tell(session, Began(folder, "go on", "", 12))
    opened = loaded(f"{folder}@0")
    session.arrive(replace(opened, info=replace(opened.info, training=TrainingSteps(folder, (0,), 0))))
    assert panel.fine_tune.checkpoint.currentText() == "story-gpt, as it was"
    assert panel.fine_tune.asked().checkpoint == "story-gpt"


def test_a_word_without_end_is_broken_and_cannot_be_copied_with_what_breaks_it(panel, session):
    press(panel.train)
    tell(session, Began("/none/story-gpt-tuned", "go on", "", 12))
    tell(session, Wrote("Tom went", " home to the sea", "k" * 80, 1))
    before, after = panel.fine_tune.result.before.text, panel.fine_tune.result.after.text
    assert before.text() == "home to the sea"
    assert before.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse
    assert after.text().replace("\N{ZERO WIDTH SPACE}", "") == "k" * 80
    assert not after.textInteractionFlags() & Qt.TextInteractionFlag.TextSelectableByMouse
    assert after.heightForWidth(100) >= 4 * after.fontMetrics().height()


def test_of_a_classifier_two_texts_are_asked_for_and_its_classes_stand_side_by_side(panel, session):
    page = panel.fine_tune
    assert (page.write.text(), page.second.isVisible()) == ("Write", False)
    page.checkpoint.setCurrentIndex(page.checkpoint.findData("story-next"))
    assert (page.write.text(), page.second.isVisible()) == ("Classify", True)
    assert "class" in page.text.placeholderText()
    assert page.second.placeholderText() == page.asked().second != ""
    page.prompt.setFocus()
    QTest.keyClicks(page.prompt, "Tom ran.")
    page.second.setFocus()
    QTest.keyClicks(page.second, "He fell.")
    assert (page.asked().prompt, page.asked().second) == ("Tom ran.", "He fell.")
    press(panel.train)
    tell(session, Began("/none/story-next-tuned", "go on", "", 12, classifies=True))
    tell(session, Measured(HeldOutPoint(0, 0.7012, 0.625, 0.625, 8)))
    tell(session, Learned((TrainingPoint(3, 0.5, 0.75, 2e-4, 40.0),), 1.0, 0.5, "running"))
    tell(session, Measured(HeldOutPoint(3, 0.0114, 1.0, 1.0, 8)))
    shares = (ClassShare("goes on", 0.25, 0.875), ClassShare("another story", 0.75, 0.125))
    tell(session, Classified("Tom ran.", "He fell.", shares, 3, 3))
    result = page.result
    assert result.losses.text() == "Held-out loss 0.701 → 0.011\nHeld-out texts right 62.5 % → 100.0 %"
    assert "nats a text" in result.losses.toolTip()
    assert "texts a second" in result.standing.text()
    assert (result.classes.isVisible(), result.before.isVisible()) == (True, False)
    assert result.classified.text() == "Tom ran. · He fell. · 3 less likely classes are left out"
    result.resize(700, result.height())
    said = "goes on 25.0 %, another story 75.0 %, goes on 87.5 %, another story 12.5 %"
    assert result.classes.accessibleDescription() == said
    result.resize(400, result.height())  # where only one of the two would be in sight
    assert result.classes.accessibleDescription() == "goes on 87.5 %, was 25.0 %, another story 12.5 %, was 75.0 %"
    assert "nats a text" in panel.about(session.state).sentences[-1]
    press(page.write)
    assert session.live.learning.command == Write("Tom ran.", "He fell.")
    page.checkpoint.setCurrentIndex(page.checkpoint.findData("en-es"))
    assert (page.second.isVisible(), page.asked().second) == (False, "")


def test_what_the_open_classifier_reads_is_classified_where_nothing_is_typed(qtbot):
    document = Document(checkpoint="story-next", text="Tom lost it.", second="He found it.")
    session = SilentSession(State(document))
    panel = shown(qtbot, PlaygroundPanel, session)
    head = ClassHead("text", "softmax", ("goes on", "another story"))
    answer = loaded("story-next")
    session.arrive(replace(answer, info=replace(answer.info, class_head=head, pairs=True)))
    press(panel.pages.button(FINE_TUNE))
    page = panel.fine_tune
    assert (page.asked().prompt, page.asked().second) == ("Tom lost it.", "He found it.")
    assert page.second.placeholderText() == "He found it."
    page.prompt.setFocus()
    QTest.keyClicks(page.prompt, "Anna slept.")
    assert (page.asked().prompt, page.asked().second) == ("Anna slept.", "")
    assert "may be left out" in page.second.placeholderText()


def test_of_much_to_learn_from_it_is_said_that_the_rows_are_counted_later(panel, session):
    session.arrive(PlanView(request=plans(session)[-1], parameters=514))
    said = "514 parameters learn. How many rows there are is found when it begins: they are many."
    assert panel.fine_tune.sentence.text() == said
    assert panel.train.isEnabled()
