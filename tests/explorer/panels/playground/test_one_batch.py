"""The page of the next batch, by mouse and keys: its numbers against autograd in float64 on the same weights."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget
from torch import Tensor, nn

from attention_explorer.compute.gui_queue import GuiQueue
from attention_explorer.compute.training_link import TrainingLink, connect_training
from attention_explorer.panels.playground import batch_words as words
from attention_explorer.panels.playground.one_batch import OneBatchPage
from attention_explorer.panels.playground.panel import ONE_BATCH, PlaygroundPanel
from attention_explorer.session.intents import Train, TrainingTold
from attention_explorer.widgets.number_text import MINUS
from attention_models.protocol.training_messages import (
    Asked,
    Began,
    Dissect,
    Dissected,
    Ended,
    Failed,
    FromProcess,
    Learned,
    NotDissected,
    Pause,
    TrainingPoint,
)
from attention_models.textbook.pretrained import TextbookModel
from attention_models.textbook.tokenizer import SPECIAL
from attention_models.textbook.transformer import IGNORE
from attention_models.training.experiment import experiment
from attention_models.training.gradient_breakdown import break_down_gradient
from attention_models.training.training import Training
from tests.explorer.silent import SilentSession, shown
from tests.explorer.window.test_terms import unexplained

TINY = (("width", "16"), ("heads", "2"), ("layers", "1"), ("batch", "8"))
SHAPES: tuple[tuple[tuple[str, str], ...], ...] = (
    (),
    (("shape", "decoder"), ("tied", "off")),
    (("shape", "encoder"), ("label_smoothing", "0")),
)


@dataclass(frozen=True)
class Exact:
    """The next step of a training by torch alone, in float64."""

    labels: Tensor  # (rows, tokens)
    logits: Tensor  # (rows, tokens, vocabulary)
    losses: Tensor  # (rows, tokens), 0 where nothing is to be said
    gradients: dict[str, Tensor]
    mean: float


def exact(training: Training) -> Exact:
    model = copy.deepcopy(training.model).double()
    assert isinstance(model, TextbookModel)
    model.set_attn_implementation("eager")
    batch, number = training.next_batch()
    logits = training.logits(model, batch, number)
    losses = nn.functional.cross_entropy(
        logits.transpose(1, 2),
        batch.labels,
        ignore_index=IGNORE,
        label_smoothing=model.config.label_smoothing,
        reduction="none",
    )
    mean = losses.sum() / (batch.labels != IGNORE).sum()
    mean.backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return Exact(batch.labels, logits.detach(), losses.detach(), gradients, float(mean.detach()))


def number(text: str) -> float:
    return float(text.replace(MINUS, "-").replace(",", ""))


def line(page: OneBatchPage, caption: str) -> tuple[str, ...]:
    return next(line.cells for line in page.grid.lines if line.caption == caption)


def press(widget: QWidget, where: QPoint | None = None) -> None:
    at = widget.rect().center() if where is None else where
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)


class Watched:
    """A panel that looks on while a training goes on which is told by the test."""

    def __init__(self, qtbot, switches: tuple[tuple[str, str], ...] = (), steps: int = 3) -> None:
        self.training = experiment("reverse:4", dict((*TINY, *switches)), 5).training()
        for _ in range(steps):
            self.training.step()
        self.session = SilentSession()
        self.panel = shown(qtbot, PlaygroundPanel, self.session)
        self.page = self.panel.one_batch
        self.panel.resize(620, 700)

    def begin(self, phase: str = "paused") -> None:
        self.session.dispatch(Train(Asked("reverse:4", TINY)))
        self.tell(Began("/nowhere/reverse", "write the letters backwards", "abcd", 100))
        at = TrainingPoint(self.training.step_number, 1.0, 0.5, 0.01, 100.0)
        self.tell(Learned((at,), 1.0, 0.1, "running"))
        if phase == "paused":
            self.tell(Learned((), 1.0, 0.1, "paused"))

    def tell(self, message: FromProcess) -> None:
        assert self.session.live.learning is not None
        self.session.dispatch(TrainingTold(self.session.live.learning.number, message))

    def open(self) -> None:
        press(self.panel.pages.button(ONE_BATCH))

    def command(self) -> object:
        assert self.session.live.learning is not None
        return self.session.live.learning.command

    def answer(self) -> None:
        """As the process would."""
        asked = self.command()
        assert isinstance(asked, Dissect)
        with self.training.untouched():
            self.tell(Dissected(break_down_gradient(self.training, asked.token, asked.dimension)))


@pytest.fixture(params=range(len(SHAPES)), ids=["encoder-decoder", "decoder", "encoder"])
def watched(qtbot, request: pytest.FixtureRequest) -> Watched:
    it = Watched(qtbot, SHAPES[request.param])
    it.begin()
    it.open()
    it.answer()
    return it


def test_it_says_what_to_press_until_there_is_a_batch(qtbot):
    it = Watched(qtbot)
    it.open()
    assert "Press Train first" in it.page.reason.text()
    assert not it.page.button.isVisible()
    it.begin("running")
    assert "let it wait" in it.page.reason.text()
    assert not isinstance(it.command(), Dissect)
    press(it.page.button)
    assert isinstance(it.command(), Pause)
    it.tell(Learned((), 1.0, 0.1, "paused"))
    assert isinstance(it.command(), Dissect)
    assert "worked out" in it.page.reason.text()
    it.answer()
    assert it.page.currentIndex() == 1
    assert it.page.heading.text() == "Step 4, not taken yet: 8 rows, 40 tokens to say"


def test_it_is_asked_for_once_where_it_can_be_seen(qtbot):
    it = Watched(qtbot)
    it.begin()
    assert it.command() is None  # “Set up” is in front
    it.open()
    asked = it.command()
    assert isinstance(asked, Dissect)
    it.tell(Learned((), 1.0, 0.1, "paused"))
    assert it.command() is asked
    it.tell(NotDissected("This batch is too large."))
    assert it.page.reason.text() == "This batch is too large."
    assert it.command() is asked


def test_the_next_one_follows_a_step_and_a_fall_is_said(watched):
    before = watched.command()
    watched.training.step()
    watched.tell(Learned((TrainingPoint(4, 1.0, 0.5, 0.01, 100.0),), 1.0, 0.1, "paused"))
    assert watched.command() is not before
    assert watched.page.currentIndex() == 1  # what was there stays until the answer comes
    watched.answer()
    assert watched.page.heading.text().startswith("Step 5, ")
    watched.tell(Failed("Gone."))
    watched.tell(Learned((TrainingPoint(5, 1.0, 0.5, 0.01, 100.0),), 1.0, 0.1, "running"))
    assert watched.page.currentIndex() == 0
    watched.tell(Ended("stopped", 5, 1.0))
    assert isinstance(watched.command(), Dissect)


def test_the_row_is_the_batchs_and_its_losses_are_torchs(watched):
    page, wanted = watched.page, exact(watched.training)
    batch, _ = watched.training.next_batch()
    page.row.setFocus()
    QTest.keyClick(page.row, Qt.Key.Key_Up)
    QTest.keyClick(page.row, Qt.Key.Key_Up)
    row, alphabet = 2, watched.training.rows.alphabet
    for caption, ids in ((words.IS_TO_SAY, wanted.labels), *zip(_read(page), _inputs(batch.inputs), strict=True)):
        for said, id_ in zip(line(page, caption), ids[row].tolist(), strict=False):
            if id_ >= len(SPECIAL):
                assert said == alphabet[id_ - len(SPECIAL)], caption
            elif id_ == IGNORE:
                assert said == ""
            else:
                assert said.startswith("⟨")
    probabilities = wanted.logits[row].softmax(-1)
    for place, label in enumerate(wanted.labels[row].tolist()):
        loss, probability = line(page, words.LOSS)[place], line(page, words.PROBABILITY)[place]
        if label == IGNORE:
            assert (loss, probability) == ("", "")
            continue
        assert float(loss) == pytest.approx(float(wanted.losses[row, place]), abs=6e-4)
        assert number(probability.removesuffix(" %")) == pytest.approx(
            100 * float(probabilities[place, label]), abs=0.06
        )
    mean = number(page.mean.text().split(" is ")[1].split(" nats")[0])
    assert mean == pytest.approx(wanted.mean, rel=1e-3)


def _read(page: OneBatchPage) -> list[str]:
    return [one.caption for one in page.grid.lines if "reads" in one.caption.lower()]


def _inputs(inputs: dict[str, Tensor]) -> list[Tensor]:
    return [ids for name, ids in inputs.items() if name.endswith("input_ids")]


def test_the_target_stands_under_what_is_read_one_place_late(qtbot):
    it = Watched(qtbot)
    it.begin()
    it.open()
    it.answer()
    read, said = line(it.page, "Decoder reads"), line(it.page, words.IS_TO_SAY)
    assert read[0] == "⟨start⟩"
    assert said[-1] == "⟨end⟩"
    assert read[1:] == said[:-1]
    assert said[:-1] == line(it.page, "Encoder reads")[:-1][::-1]  # the task: backwards


def test_a_click_shows_what_is_said_there(watched):
    page, wanted = watched.page, exact(watched.training)
    place = max(p for p, label in enumerate(wanted.labels[0].tolist()) if label != IGNORE)
    press(page.grid, page.grid.cell_rect(0, place).center().toPoint())
    label = int(wanted.labels[0, place])
    assert f"position {place} it is to say" in page.place.text()
    logits = wanted.logits[0, place]
    best = logits.topk(5).indices.tolist()
    listed = best if label in best else [*best, label]
    rows = page.likeliest._rows
    assert len(rows) == len(listed)
    for row, id_ in zip(rows, listed, strict=True):
        assert number(row.cells[0].score) == pytest.approx(float(logits[id_]), rel=2e-3, abs=1e-4)
        assert row.cells[0].weight == pytest.approx(float(logits.softmax(-1)[id_]), rel=1e-4)
        assert (row.value == "is to say") == (id_ == label)


def test_the_terms_add_up_to_autograds_gradient(watched):
    page, wanted = watched.page, exact(watched.training)
    token, dimension = page.token.currentIndex(), page.dimension.value()
    name = "lm_head.weight" if "lm_head.weight" in wanted.gradients else _tied_name(wanted)
    gradient = float(wanted.gradients[name][token, dimension])
    sums = dict(page.sums.texts)
    is_tied = name != "lm_head.weight"
    total = "Both ways" if is_tied else "All rows"
    assert number(sums["PyTorch's own gradient"]) == pytest.approx(gradient, rel=2e-4, abs=1e-7)
    assert number(sums[total]) == pytest.approx(gradient, rel=2e-4, abs=1e-7)
    assert ("By way of the embedding, which is the same matrix" in sums) == is_tied
    terms = page.terms.texts
    counted = int((wanted.labels != IGNORE).sum())
    for _, *texts in terms:
        p, y, h, term = map(number, texts)
        assert term == pytest.approx((p - y) * h / counted, rel=2e-4, abs=1e-8)
    assert sum(number(row[-1]) for row in terms) == pytest.approx(number(sums["Row 1"]), abs=5e-6)
    assert number(sums["Row 1"]) + number(sums["The other 7 rows"]) == pytest.approx(number(sums["All rows"]), abs=5e-6)


def _tied_name(wanted: Exact) -> str:
    return next(name for name in wanted.gradients if name.endswith("decoder.embedding.weight") or "embedding" in name)


def test_the_i_tells_the_numbers_on_screen(watched):
    page, wanted = watched.page, exact(watched.training)
    said = " ".join(watched.panel.about(watched.session.state).sentences)
    place = int(wanted.losses[0].argmax())
    assert f"at position {place} costs most, " in said
    cost = number(said.split("costs most, ")[1].split(" nats")[0])
    assert cost == pytest.approx(float(wanted.losses[0, place]), abs=6e-4)
    gradient = page.sums.texts[-1][1]
    assert f"is {gradient}: " in said
    assert f"{page.moved.texts[0][0]} would move the farthest, by {page.moved.texts[0][2]}." in said
    watched.tell(Learned((TrainingPoint(4, 1.0, 0.5, 0.01, 100.0),), 1.0, 0.1, "running"))
    assert "while a training waits" in " ".join(watched.panel.about(watched.session.state).sentences)


def test_another_weight_is_asked_for_and_shown(watched):
    page = watched.page
    wanted = exact(watched.training)
    press(page.likeliest, page.likeliest.item_rect(1).center().toPoint())
    token = int(wanted.logits[0, page.grid.selection[1]].topk(2).indices[1])
    assert watched.command() == Dissect(token, page.dimension.value())
    watched.answer()
    page.dimension.setFocus()
    before = page.dimension.value()
    QTest.keyClick(page.dimension, Qt.Key.Key_Down if before else Qt.Key.Key_Up)
    dimension = before - 1 if before else 1
    assert watched.command() == Dissect(token, dimension)
    watched.answer()
    name = "lm_head.weight" if "lm_head.weight" in wanted.gradients else _tied_name(wanted)
    shown_gradient = number(dict(page.sums.texts)["PyTorch's own gradient"])
    assert shown_gradient == pytest.approx(float(wanted.gradients[name][token, dimension]), rel=2e-4, abs=1e-7)


def test_what_moves_is_what_the_step_moves(watched):
    page, training = watched.page, watched.training
    found = page.moved.texts
    wanted, before = exact(training), {n: p.detach().clone().double() for n, p in training.model.named_parameters()}
    training.step()
    moves = {}
    for name, p in training.model.named_parameters():
        moves[words.short(name)] = name, float((p.detach().double() - before[name]).norm())
    assert {row[0] for row in found} == set(moves)
    for short, gradient, move, share in found:
        name, moved = moves[short]
        length = float(before[name].norm())
        assert number(gradient) == pytest.approx(float(wanted.gradients[name].norm()), rel=6e-3, abs=1e-6)
        assert number(move) == pytest.approx(moved, rel=6e-3, abs=1e-9)
        if share == "from 0":
            assert length == 0
        elif not share.startswith("<"):
            assert number(share.removesuffix(" %")) == pytest.approx(100 * moved / length, rel=6e-3, abs=0.06)
    listed = [number(row[2]) for row in found]
    assert listed == sorted(listed, reverse=True)
    header = page.moved.horizontalHeader()
    press(header.viewport(), QPoint(header.sectionViewportPosition(1) + 8, header.height() // 2))
    gradients = [number(row[1]) for row in page.moved.texts]
    assert gradients in (sorted(gradients), sorted(gradients, reverse=True))


@pytest.fixture
def linked(qtbot, settings_folder: Path) -> Iterator[PlaygroundPanel]:
    session, link = SilentSession(), TrainingLink(GuiQueue())
    connect_training(session, link)
    panel = shown(qtbot, PlaygroundPanel, session)
    yield panel
    assert link.stop(10.0)


@pytest.mark.full
def test_a_real_training_is_held_and_its_step_is_that_of_the_snapshot_on_disk(qtbot, linked):
    """Pressed by mouse; autograd in float64 on the weights that were written."""
    panel, page = linked, linked.one_batch
    session = panel.session
    for name, value in TINY:
        next(field for field in panel.form.fields if field.switch.name == name).choice.choose(int(value))
    press(panel.train)
    qtbot.waitUntil(lambda: session.live.learning.step >= 5, timeout=120_000)
    press(panel.pages.button(ONE_BATCH))
    press(page.button)
    qtbot.waitUntil(lambda: page.currentIndex() == 1, timeout=120_000)
    learning = session.live.learning
    asked = learning.asked
    training = experiment(asked.task, dict(asked.switches), asked.seed).training(Path(learning.folder) / "snapshots")
    training.restore(learning.step)
    wanted = exact(training)
    assert page.heading.text().startswith(f"Step {learning.step + 1:,}, not taken yet: 8 rows, ")
    for place, loss in enumerate(line(page, words.LOSS)):
        assert float(loss) == pytest.approx(float(wanted.losses[0, place]), abs=6e-4)
    token, dimension = page.token.currentIndex(), page.dimension.value()
    gradient = float(wanted.gradients[_tied_name(wanted)][token, dimension])
    assert number(dict(page.sums.texts)["Both ways"]) == pytest.approx(gradient, rel=2e-4, abs=1e-7)
    step = learning.step
    press(panel.batch)
    qtbot.waitUntil(lambda: page.heading.text().startswith(f"Step {step + 2:,}, "), timeout=120_000)
    after = training.step()
    assert session.live.learning.curves.points[-1].loss == pytest.approx(after.loss, abs=1e-6)


def test_its_words_are_plain_or_explained(watched):
    """The test of all panels opens no training. Tokens are in quotation marks; what a parameter is called is a name."""
    page = watched.page
    names = {"y", "n"}  # the rule says what they stand for
    for name in (*(one[0] for one in page.moved.texts), page.deeper.text().split("Of ")[1].split(" it gives")[0]):
        names |= set(re.split(r"\W", name.casefold()))
    said = {label.text() for label in page.findChildren(QLabel)} | {line.caption for line in page.grid.lines}
    said |= {*watched.panel.about(watched.session.state).sentences}
    assert len(said) > 12
    assert unexplained(said, frozenset(names)) == {}
