"""Roles over a file of the person's own, in All heads: chosen, named, undone, kept by content, stopped, refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
import transformers
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QAbstractButton

import attention_models as models
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.session.corpus import roles_view
from attention_explorer.session.intents import ChooseProbe, ColourByRole, OpenCheckpoint, SetBadges
from attention_explorer.widgets import dialogs
from attention_explorer.window.window import MainWindow
from attention_models.files.catalogue import WEIGHTS
from attention_models.protocol.roles import RolesView
from attention_models.roles import roles as finding
from attention_models.roles.probe import OURS
from tests.explorer.real_window import click, panel_of, requests_of, settle, wait_until

TEXTS = [
    "Tom and Anna went to the park. Anna gave the ball to Tom.",
    "The dog is playing with a red ball in the garden.",
    "Lily saw a big dog. The dog ran to Lily.",
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("\n".join(TEXTS))
    return path


@pytest.fixture
def panel(window) -> Iterator[HeadAtlasPanel]:
    window.dock_host.raise_panel("heads")
    settle(window)
    yield panel_of(window, HeadAtlasPanel)
    settle(window)


def push(button: QAbstractButton) -> None:
    click(button, QPoint(8, button.height() // 2))


def found(window: MainWindow) -> RolesView:
    wait_until(lambda: (view := roles_view(window.session.state)) is not None and view.done == 1)
    settle(window)
    view = roles_view(window.session.state)
    assert view is not None
    return view


def choose_by_menu(panel: HeadAtlasPanel, monkeypatch, path) -> None:
    monkeypatch.setattr(dialogs, "file_to_open", lambda *_: str(path))
    next(action for action in panel.texts.menu().actions() if action.text() == "Choose a file…").trigger()


def test_a_role_is_told_over_a_file_and_says_its_name(window, panel, file, monkeypatch):
    window.session.dispatch(ColourByRole("previous"))
    ours = found(window)
    assert panel.card._subtitle.text().startswith(f"attends to the token before, over {ours.texts} texts of ours")
    assert panel.texts.isVisible()
    assert panel.texts.text() == "Texts: ours"
    choose_by_menu(panel, monkeypatch, file)
    view = found(window)
    assert (view.texts, view.request.probe) == (3, str(file))
    assert panel.card._subtitle.text().startswith("attends to the token before, over 3 texts of mine.txt")
    assert panel.texts.text() == "Texts: mine.txt"
    folder = WEIGHTS / "story-gpt"
    tokenizer, kind = transformers.AutoTokenizer.from_pretrained(folder), transformers.AutoModelForCausalLM
    eager = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    before = []
    for text in TEXTS:
        with torch.no_grad():
            out = eager(**tokenizer("<|endoftext|>" + text, return_tensors="pt"), output_attentions=True)
        weights = np.stack([w[0].double().numpy() for w in out.attentions])  # (layers, heads, queries, keys)
        before.append(np.diagonal(weights, -1, axis1=2, axis2=3))
    mean = np.concatenate(before, axis=2).mean(axis=2)
    np.testing.assert_allclose(view.scores[view.roles.index("previous")], mean, atol=1e-6)
    layer, head = np.unravel_index(mean.argmax(), mean.shape)
    assert panel.ranking.list.item(0).text() == f"layer {layer}, head {head}   {mean.max():.3f}"
    window.session.undo()
    assert found(window).texts == ours.texts
    assert panel.texts.text() == "Texts: ours"
    assert str(file) in window.session.state.recent_texts
    next(action for action in panel.texts.menu().actions() if action.text() == "mine.txt").trigger()
    assert found(window).texts == 3


def test_what_was_found_is_kept_by_the_content_of_the_file(window, panel, file, monkeypatch):
    window.session.dispatch(SetBadges(True))
    found(window)
    window.session.dispatch(ChooseProbe(str(file)))
    first = found(window)
    monkeypatch.setattr(finding, "Finding", lambda *_: pytest.fail("it was found before"))
    window.session.dispatch(ChooseProbe(""))
    found(window)
    window.session.dispatch(ChooseProbe(str(file)))
    np.testing.assert_array_equal(found(window).scores, first.scores)
    monkeypatch.undo()
    file.write_text("Tom fell.\nAnna ran to Tom and Tom ran to Anna.\n")
    window.session.dispatch(ChooseProbe(str(file)))  # chosen again, it is read again
    assert found(window).texts == 2


def test_grammar_is_told_on_gold_edges_and_said_to_lack_them(window, panel, file, tmp_path):
    window.session.dispatch(ColourByRole("nsubj-to-dependent"))
    window.session.dispatch(ChooseProbe(str(file)))
    found(window)
    assert "without dependency edges" in panel.ranking.page.text()
    gold = tmp_path / "gold.conllu"
    sentences = OURS.read_text(encoding="utf-8").split("\n\n")
    gold.write_text("\n\n".join(sentences[:6]) + "\n\n", encoding="utf-8")
    window.session.dispatch(ChooseProbe(str(gold)))
    view = found(window)
    alone = models.head_roles(models.open_checkpoint("story-gpt"), gold, cached=False)
    np.testing.assert_allclose(view.scores, alone.scores, atol=1e-6)
    assert "of gold.conllu" in panel.card._subtitle.text()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.txt", b"", "no line that says anything"),
        ("binary.txt", b"\x00\x01", "zero bytes"),
        ("words.conllu", b"1\tTom\n", "columns"),
        ("much.txt", b"Tom " * 700, "701 tokens"),
        ("many.txt", b"Tom fell.\n" * 5001, "more than 5,000 texts"),
    ],
)
def test_a_file_that_will_not_do_is_a_sentence_and_what_was_found_stays(window, panel, tmp_path, name, content, said):
    window.session.dispatch(ColourByRole("previous"))
    ours = found(window)
    path = tmp_path / name
    path.write_bytes(content)
    window.session.dispatch(ChooseProbe(str(path)))
    wait_until(lambda: window.session.state.notice is not None)
    settle(window)
    assert said in window.session.state.notice.text
    assert window.session.state.document.probe == ""
    assert found(window).texts == ours.texts
    assert panel.ranking.isVisible()
    assert not panel.stop.isVisible()


def test_a_file_that_vanished_and_texts_that_do_not_fit(window, panel, file, tmp_path):
    window.session.dispatch(ColourByRole("self"))
    found(window)
    window.session.dispatch(ChooseProbe(str(tmp_path / "gone.txt")))
    wait_until(lambda: window.session.state.notice is not None)
    assert "gone.txt" in window.session.state.notice.text
    settle(window)
    file.write_text("Tom fell.\n" + "Tom " * 700 + "\nAnna ran.\n")
    window.session.dispatch(ChooseProbe(str(file)))
    assert found(window).texts == 2
    assert panel.ranking.page.text().startswith("Line 2 of mine.txt is left out")


def test_finding_is_stopped(window, panel, tmp_path):
    window.session.dispatch(SetBadges(True))
    found(window)
    path = tmp_path / "many.txt"
    path.write_text("\n".join(f"{text} {i}" for i in range(400) for text in TEXTS))
    window.session.dispatch(ChooseProbe(str(path)))
    wait_until(panel.stop.isVisible)
    assert "finding roles on many.txt" in panel.card._subtitle.text()
    push(panel.stop)
    settle(window)
    assert not window.session.state.document.heads.badges
    assert not panel.stop.isVisible()


def test_pictures_have_no_file_of_texts(window, panel, file):
    window.session.dispatch(ChooseProbe(str(file)))
    window.session.dispatch(ColourByRole("self"))
    found(window)
    window.session.dispatch(OpenCheckpoint("vit-quickdraw"))
    with requests_of(window):
        wait_until(lambda: window.session.state.ran is not None and window.session.state.ran.seen is not None)
        settle(window)
    assert found(window).request.probe == ""
    assert not panel.texts.isVisible()
