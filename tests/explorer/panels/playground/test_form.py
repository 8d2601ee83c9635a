"""The form asks for what it shows, and knows every switch of the model and of the training."""

from __future__ import annotations

import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox

from attention_explorer.panels.playground.form import (
    RECURRENT,
    SWITCHES,
    TRANSFORMER,
    Choose,
    Form,
    Switch,
    SwitchField,
    default_of,
)
from attention_explorer.panels.playground.panel import PlaygroundPanel
from attention_explorer.panels.playground.training_form import STEPS
from attention_models.protocol.training_messages import Asked
from attention_models.protocol.training_plan import PlanRequest, PlanView
from attention_models.textbook.config import RECURRENT_SWITCHES
from attention_models.textbook.tasks import TASKS
from attention_models.textbook.transformer_config import CHOICES, TransformerConfig
from attention_models.textbook.transformer_config import SWITCHES as OF_THE_MODEL
from attention_models.training.experiment import experiment
from attention_models.training.settings import NUMBERS, Settings
from tests.explorer.silent import SilentSession, shown

RECURRENT_CHOICES = {name: set(words) for name, words in RECURRENT_SWITCHES.items() if words}


CHANGED = {
    "inner": "71",
    "scope": "monotonic",
    "window": "1",
    "causal_mask": "off",
    "buckets": "8",
    "farthest": "64",
    "tied": "off",
}
"""Another value for each switch that is put away at times."""


def of(model: str) -> dict[str, Switch]:
    return {switch.name: switch for switch in SWITCHES if switch.model in (None, model)}


def choose_in(field: SwitchField, word: str) -> None:
    """With the keyboard, as a person chooses in a list."""
    listed = field.control
    assert isinstance(listed, QComboBox)
    listed.setFocus()
    QTest.keyClick(listed, Qt.Key.Key_Home)
    while listed.currentData() != word:
        before = listed.currentIndex()
        QTest.keyClick(listed, Qt.Key.Key_Down)
        assert listed.currentIndex() != before, f"there is no {word}"


def field_of(form: Form, name: str, model: str | None) -> SwitchField:
    return next(field for field in form.fields if (field.switch.name, field.switch.model) == (name, model))


def test_there_is_a_field_for_every_switch_of_the_transformer_with_the_same_default():
    switches = of("transformer")
    assert set(switches) == {*OF_THE_MODEL, *NUMBERS}
    depends = {"inner", "context", "key_heads"}  # 0 stands for what follows from others
    for name, switch in switches.items():
        if name not in depends:
            where = Settings() if name in NUMBERS else TransformerConfig()
            assert default_of(switch) == getattr(where, name), name
        if isinstance(switch.kind, Choose):
            assert {word for word, _ in switch.kind.words} == set(CHOICES[name])


def test_there_is_a_field_for_every_switch_of_a_recurrent_model_with_the_same_default():
    switches, config = of("recurrent"), experiment("reverse", {"model": "recurrent"}).config
    assert set(switches) == {*RECURRENT_SWITCHES, *NUMBERS}
    for name, switch in switches.items():
        assert default_of(switch) == getattr(Settings() if name in NUMBERS else config, name), name
        if isinstance(switch.kind, Choose):
            assert {word for word, _ in switch.kind.words} == RECURRENT_CHOICES[name]


@pytest.mark.parametrize("model", ["transformer", "recurrent"])
def test_a_switch_that_is_put_away_is_refused_or_changes_no_logit(model):
    for name, switch in of(model).items():
        for other, words in switch.needs:
            kind = of(model)[other].kind
            assert isinstance(kind, Choose)
            for word in {word for word, _ in kind.words} - set(words):
                given = {"model": model, other: word}
                assert_refused_or_the_same_model(given, {**given, name: CHANGED[name]})


def assert_refused_or_the_same_model(one: dict[str, str], other: dict[str, str]) -> None:
    try:
        trainings = [experiment("copy:4", switches).training() for switches in (one, other)]
    except ValueError:
        return
    batch, _ = trainings[0].next_batch()
    logits = [training.model.eval()(**batch.inputs).logits for training in trainings]
    assert torch.equal(*logits), other


def test_what_does_not_apply_is_not_to_be_seen_and_not_asked_for(qtbot):
    form = Form()
    qtbot.addWidget(form)
    form.resize(700, 900)
    form.show()
    heads, buckets = field_of(form, "heads", "transformer"), field_of(form, "buckets", "transformer")
    positions = field_of(form, "positions", "transformer")
    score, scope = field_of(form, "score", "recurrent"), field_of(form, "scope", "recurrent")
    window = field_of(form, "window", "recurrent")
    assert (heads.isVisible(), buckets.isVisible(), score.isVisible()) == (True, False, False)
    choose_in(positions, "t5")
    assert buckets.isVisible()
    buckets.choice.choose(8)
    assert form.asked().switches == (("positions", "t5"), ("buckets", "8"))
    QTest.mouseClick(form.model.button(RECURRENT), Qt.MouseButton.LeftButton)
    assert form.asked().switches == (("model", "recurrent"),)
    assert (heads.isVisible(), score.isVisible(), scope.isVisible(), window.isVisible()) == (False, True, False, False)
    choose_in(score, "general")
    choose_in(scope, "monotonic")
    assert window.isVisible()
    window.choice.choose(2)
    asked = (("model", "recurrent"), ("score", "general"), ("scope", "monotonic"), ("window", "2"))
    assert form.asked().switches == asked
    choose_in(score, "none")
    assert form.asked().switches == (("model", "recurrent"), ("score", "none"))
    assert not window.isVisible()
    assert experiment("dates", dict(form.asked().switches)).config.score == "none"
    QTest.mouseClick(form.model.button(TRANSFORMER), Qt.MouseButton.LeftButton)
    assert form.asked().switches == (("positions", "t5"), ("buckets", "8"))


def test_as_it_is_at_first_it_asks_for_a_minute_of_reverse(qtbot):
    form = Form()
    qtbot.addWidget(form)
    assert form.asked() == Asked("reverse:10", (), 0, "", 60.0, None)


@pytest.mark.parametrize("task", TASKS)
def test_each_task_can_be_trained_as_it_is_offered(qtbot, task):
    form = Form()
    qtbot.addWidget(form)
    form.task.setCurrentIndex(form.task.findData(task))
    asked = form.asked()
    assert experiment(asked.task, dict(asked.switches), asked.seed).name.partition(":")[0] == task


def test_every_switch_is_asked_for_as_the_command_takes_it(qtbot):
    form = Form()
    qtbot.addWidget(form)
    for field in form.fields:
        if field.switch.model == "recurrent":
            continue
        if isinstance(field.switch.kind, Choose):
            field.choice.choose(field.switch.kind.words[-1][0])
        elif isinstance(default_of(field.switch), bool):
            field.choice.choose(not default_of(field.switch))
    form.limit.button(STEPS).click()
    asked = form.asked()
    said = dict(asked.switches)
    assert said["positions"] == "none"
    assert said["residual"] == "off"
    assert (asked.seconds, asked.steps) == (None, 1000)
    form.set_back.click()
    assert form.asked().switches == ()


def test_what_does_not_go_together_is_said_and_cannot_be_trained(qtbot):
    session = SilentSession()
    panel = shown(qtbot, PlaygroundPanel, session)
    asked = [request for request in session.asked if isinstance(request, PlanRequest)]
    session.arrive(PlanView(request=asked[-1], parameters=1234))
    assert "1,234 parameters" in panel.form.sentence.text()
    next(field for field in panel.form.fields if field.switch.name == "heads").choice.choose(3)
    qtbot.waitUntil(lambda: session.asked[-1] != asked[-1])
    request = session.asked[-1]
    assert isinstance(request, PlanRequest)
    assert request.asked == Asked("reverse:10", (("heads", "3"),))
    session.arrive(PlanView(request=request, sentence="Heads is 3."))
    assert panel.form.sentence.text() == "Heads is 3."
    assert not panel.train.isEnabled()


def test_train_begins_what_the_form_shows(qtbot):
    session = SilentSession()
    panel = shown(qtbot, PlaygroundPanel, session)
    QTest.mouseClick(panel.train, Qt.MouseButton.LeftButton)
    assert session.live.learning is not None
    assert session.live.learning.asked == panel.form.asked()
    assert panel.stack.currentIndex() == 1
