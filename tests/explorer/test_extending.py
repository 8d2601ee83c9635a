"""The package that docs/extending.md builds: taken from the page, installed, at work in the window and without."""

from __future__ import annotations

import importlib
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.base import API_VERSION
from attention_explorer.panels.registry import installed
from attention_explorer.session.intents import OpenCheckpoint, SetText
from attention_models import open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.forward.model import Model
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Cancelled, Failure, never
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import EXAMPLE, opened_window, settle, wait_until
from tests.models import tiny
from tests.models.eager import attentions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
NAME = "attention_entropy"
TRANSLATED = "The black cat is sleeping on the table."


def extracted(page: str, folder: Path) -> None:
    """Write each block of code that begins with the name of a file into that file."""
    for name, code in re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")


@pytest.fixture(scope="module")
def site_packages(tmp_path_factory) -> Path:
    """A folder into which pip has installed the package."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site-packages")
    extracted(PAGE.read_text(encoding="utf-8"), source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*pip, "--target", target, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(target)


@pytest.fixture(scope="module")
def package(site_packages: Path) -> Iterator[ModuleType]:
    """Imported once: engine and window keep its classes."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(site_packages))
        yield importlib.import_module(NAME)
    for name in [name for name in sys.modules if name.split(".")[0] == NAME]:
        del sys.modules[name]


def expected(model: Model, text: str, target: str | None = None) -> dict[SiteRef, np.ndarray]:
    """torch's own entropy of transformers' own eager weights, in bits: the mean over the rows of each head."""
    weights = attentions(tiny.eager_run(model, text, target), model)
    return {
        ref: torch.distributions.Categorical(probs=torch.from_numpy(of_site).double()).entropy().mean(-1).numpy()
        / math.log(2)
        for ref, of_site in weights.items()
    }


def test_what_pip_leaves_behind_is_found(package):
    (point,) = [point for point in installed() if point.name == "entropy"]
    assert point.dist is not None
    assert (point.value, point.dist.name, point.dist.version) == (
        f"{NAME}.panel:EntropyPanel",
        "attention-entropy",
        "1.0",
    )


def test_the_request_needs_neither_torch_nor_qt(site_packages):
    program = f"import {NAME}, sys; print([n for n in ('torch', 'PySide6') if n in sys.modules])"
    environment = {"PYTHONPATH": f"{site_packages}:{os.environ['PYTHONPATH']}"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.short("story-gpt-*")
@pytest.mark.parametrize(("checkpoint", "text"), [("story-gpt", EXAMPLE), ("story-bert", "Tom [MASK] the ball.")])
def test_it_works_without_the_window(package, checkpoint, text):
    """As the page says: with `models` alone."""
    compute = importlib.import_module(f"{NAME}.compute")
    model = open_checkpoint(checkpoint)
    trace = run(model, text)
    wanted = expected(model, text)
    for site, bits in zip(trace.sites, compute.entropies(trace), strict=True):
        np.testing.assert_allclose(bits, wanted[site.ref], atol=1e-5)
    with pytest.raises(Cancelled):
        compute.entropies(trace, lambda: True)


@pytest.mark.full
def test_the_page_s_own_lines_for_a_notebook_run(package):
    (lines,) = re.findall(
        rf"^```python\n(from {NAME}\.compute.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    names: dict[str, object] = {}
    exec(lines, names)
    bits = names["bits"]
    wanted = expected(open_checkpoint("story-gpt"), "Tom and Anna went to the park.")
    np.testing.assert_allclose(np.array(bits), np.array(list(wanted.values())), atol=1e-5)


def test_the_engine_answers_its_request(package):
    engine = Engine()
    for request in (LoadRequest(ticket=1, reference="story-gpt"), ForwardRequest(ticket=2, inputs=RunInputs(EXAMPLE))):
        assert not isinstance(engine.run(request, never, lambda _label, _share: None), Failure)
    answer = engine.run(package.EntropyRequest(run=2), never, lambda _label, _share: None)
    assert isinstance(answer, package.EntropyView)
    assert [bits.shape for bits in answer.bits] == [(8,)] * 8
    assert not answer.bits[0].flags.writeable
    stale = engine.run(package.EntropyRequest(run=1), never, lambda _label, _share: None)
    assert isinstance(stale, Failure)
    assert stale.stale


def table(panel: Any) -> np.ndarray:
    rows, columns = range(panel.table.rowCount()), range(panel.table.columnCount())
    return np.array([[float(panel.table.item(row, column).text()) for column in columns] for row in rows])


@pytest.mark.full
def test_it_works_in_the_window(qapp, package):
    model = open_checkpoint("story-gpt")
    with opened_window() as window:
        panel: Any = window.panels[-1]
        assert (panel.name, panel.api_version, window.dock_host.docks["entropy"].windowTitle()) == (
            "entropy",
            API_VERSION,
            "Entropy",
        )
        assert window.panel_bar.isHidden()
        assert panel.table.rowCount() == 0  # behind a tab it has asked for nothing
        window.dock_host.raise_panel("entropy")
        wait_until(panel.isVisible)
        settle(window)
        wanted = np.array(list(expected(model, EXAMPLE).values()))
        np.testing.assert_allclose(table(panel), wanted, atol=0.0051)  # two decimals
        panel.show_about()
        assert panel.callout.sentences[1] == f"The widest head here has {wanted.max():.2f} bits."
        panel.show_about(False)
        cell = panel.table.visualRect(panel.table.model().index(3, 6)).center()
        QTest.mouseClick(panel.table.viewport(), Qt.MouseButton.LeftButton, pos=cell)
        assert (window.session.state.selection.site, window.session.state.selection.head) == (SiteRef("decoder", 3), 6)
        window.session.dispatch(SetText("Once upon a time"))
        settle(window)
        wanted = np.array(list(expected(model, "Once upon a time").values()))
        np.testing.assert_allclose(table(panel), wanted, atol=0.0051)
        window.session.dispatch(OpenCheckpoint("en-es"))
        wait_until(lambda: window.session.state.loading is None)
        settle(window)
        assert window.session.state.ran is not None
        sites = [site.ref for site in window.session.state.ran.sites]
        assert panel.table.verticalHeaderItem(len(sites) - 1).text() == f"{sites[-1].stack} {sites[-1].layer}"


@pytest.mark.full
def test_one_of_another_version_is_left_out(qapp, package, monkeypatch, unhandled_exceptions):
    panel = importlib.import_module(f"{NAME}.panel").EntropyPanel
    monkeypatch.setattr(panel, "api_version", API_VERSION + 1)
    with opened_window() as window:
        assert "entropy" not in window.dock_host.docks
        assert window.panel_bar.text == (
            "The panel “entropy” of attention-entropy 1.0 is left out: it asks for version 2 of the panel interface, "
            "and this program has version 1."
        )
        assert window.session.state.ran is not None
    unhandled_exceptions.clear()


def test_a_function_that_raises_is_named_and_the_window_goes_on(qapp, package, monkeypatch):
    compute = importlib.import_module(f"{NAME}.compute")
    with opened_window() as window:
        monkeypatch.setattr(compute, "entropies", lambda *_: 1 / 0)
        window.dock_host.raise_panel("entropy")
        wait_until(lambda: window.session.state.notice is not None)
        notice = window.session.state.notice
        assert notice is not None
        assert "entropy of every head" in notice.text
        monkeypatch.undo()
        window.session.dispatch(SetText("Once upon a time"))
        settle(window)
        assert window.session.state.up_to_date
    assert replace(package.EntropyRequest(run=1), ticket=3) == package.EntropyRequest(run=1)
