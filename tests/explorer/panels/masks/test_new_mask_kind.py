"""A kind of mask that only its own class knows of, on the command line, in the Masks panel and in a session file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attention_explorer.app import main
from attention_explorer.cli.arguments import parse
from attention_explorer.session import files
from attention_explorer.session.intents import SetView
from attention_explorer.session.state import Document, InterventionItem, Selection
from attention_models.protocol.comparison import CompareView
from attention_models.protocol.interventions import Mask
from attention_models.protocol.mask_kinds import MASK_KINDS, MaskKind, register
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.masks_host import opened_host
from tests.explorer.real_window import EXAMPLE

SITE, HEAD = SiteRef("decoder", 5), 5
START = Document("story-gpt", EXAMPLE, Selection(SITE, HEAD, 13, 1))


@pytest.fixture(autouse=True)
def strided(monkeypatch: pytest.MonkeyPatch) -> None:
    class Strided(MaskKind):
        name, title, sentence = "strided", "Strided", "A token attends to every nth token of the text."
        counts, example = "how far apart the tokens are that are visible", 5

        def allows(self, q: Any, k: Any, n: int, keys: int) -> Any:
            return k % n == 0

    monkeypatch.setitem(MASK_KINDS, Strided.name, None)
    register(Strided)


def test_the_command_line_reads_it_and_names_it_in_its_help(capsys, tmp_path):
    assert parse(["--mask", "strided:3"]).interventions == (Mask("strided", window=3),)
    with pytest.raises(SystemExit):
        parse(["--help"])
    assert "strided:5" in capsys.readouterr().out
    out = tmp_path / "w.npz"
    assert main(["--text", EXAMPLE, "--mask", "strided:3", "--weights", str(out)]) == 0
    with np.load(out) as saved:
        seen = saved["decoder.2"].any(axis=(0, 1))
    np.testing.assert_array_equal(seen, np.arange(len(seen)) % 3 == 0)


def test_a_file_keeps_it_and_a_program_without_it_says_what_is_missing(monkeypatch):
    document = Document("story-gpt", EXAMPLE, interventions=(InterventionItem(Mask("strided", window=3)),))
    content = files.encode(document)
    assert files.decode(content) == document
    monkeypatch.delitem(MASK_KINDS, "strided")
    with pytest.raises(ValueError, match="There is no mask “strided”: choose one of trained, "):
        files.decode(content)


@pytest.mark.full
def test_the_panel_offers_it_with_its_number_and_its_sentence(qapp):
    with opened_host(START) as host:
        host.session.dispatch(SetView("edit_scope", "head"))
        knobs = host.masks.mask_knobs
        knobs.kind.setCurrentIndex(knobs.kind.findText("Strided"))
        knobs.kind.activated.emit(knobs.kind.currentIndex())
        host.settle()
        n = knobs.number.value()
        listed = [item.value for item in host.state.document.interventions]
        assert listed == [Mask("strided", window=n, site=SITE, head=HEAD)]
        assert knobs.number.isVisibleTo(knobs)
        assert knobs.number.toolTip() == "how far apart the tokens are that are visible"
        assert "A token attends to every nth token of the text." in knobs.explanation.text()
        view = host.state.results.of(CompareView)
        assert view is not None
        assert view.masked_after is not None
        assert view.masked_after[:, np.arange(view.masked_after.shape[1]) % n != 0].all()
