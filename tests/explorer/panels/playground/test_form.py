"""The form asks for what it shows, and knows every switch of the model and of the training."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from explorer.panels.playground.fields import default_of
from explorer.panels.playground.form import STEPS, Form
from explorer.panels.playground.panel import PlaygroundPanel
from explorer.panels.playground.switches import SWITCHES, Choose
from models.protocol.training_messages import Asked
from models.protocol.training_plan import PlanRequest, PlanView
from models.textbook.tasks import TASKS
from models.textbook.transformer_config import CHOICES, TransformerConfig
from models.textbook.transformer_config import SWITCHES as OF_THE_MODEL
from models.training.experiment import experiment
from models.training.settings import NUMBERS, Settings
from tests.explorer.silent import SilentSession, shown


def test_there_is_a_field_for_every_switch_with_the_same_default():
    assert {switch.name for switch in SWITCHES} == {*OF_THE_MODEL, *NUMBERS}
    depends = {"inner", "context", "key_heads"}  # 0 stands for what follows from others
    for switch in SWITCHES:
        if switch.name not in depends:
            where = Settings() if switch.name in NUMBERS else TransformerConfig()
            assert default_of(switch) == getattr(where, switch.name), switch.name
        if isinstance(switch.kind, Choose):
            assert {word for word, _ in switch.kind.words} == set(CHOICES[switch.name])


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
    assert request.asked.switches == (("heads", "3"),)
    session.arrive(PlanView(request=request, sentence="Heads is 3."))
    assert panel.form.sentence.text() == "Heads is 3."
    assert not panel.train.isEnabled()


def test_train_begins_what_the_form_shows(qtbot):
    session = SilentSession()
    panel = shown(qtbot, PlaygroundPanel, session)
    QTest.mouseClick(panel.train, Qt.MouseButton.LeftButton)
    assert session.state.learning is not None
    assert session.state.learning.asked == panel.form.asked()
    assert panel.stack.currentIndex() == 1
