"""The script of a role over many texts gives what the panel shows of it, and transformers' own weights by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import transformers

from attention_models import head_roles
from attention_models.engine.engine import Engine
from attention_models.forward.adopted import adopt
from attention_models.forward.model import Model
from attention_models.protocol.roles import MEASURES, PATTERNS, ROLES, RoleRequest, RolesView
from attention_models.protocol.scripts import ScriptRequest, ScriptView
from tests.models import textbook_folders, tiny, tiny_vision
from tests.models.asking import ask, failure_of, opened
from tests.models.eager import attentions
from tests.models.scripts.running import Line, left_by, printed

TOLERANCE = 2e-6
"""Of a score: float32 weights, added in another order and, in the program, in batches."""
OF_DISTANCE = 1e-5
"""Of R^2, a quotient of two differences of sums, which the program adds in float32."""

TEXTS = (
    "Tom and Anna went to the park.\n"
    "The black cat is sleeping on the table, and the dog is playing.\n"
    "Anna gave the ball to Tom. Anna went to the park.\n"
)


@pytest.fixture
def lines(tmp_path: Path) -> str:
    (tmp_path / "texts.txt").write_text(TEXTS, encoding="utf-8")
    return str(tmp_path / "texts.txt")


def script(engine: Engine, role: str, probe: str = "") -> str:
    view = ask(engine, ScriptRequest(of=RoleRequest(probe=probe, role=role)))
    assert isinstance(view, ScriptView), view
    return view.code


def model_of(engine: Engine) -> Model:
    assert engine.workspace.model is not None
    return engine.workspace.model


def check_scores(code: str, view: RolesView, role: str) -> None:
    """All scores of the stack that is last, which is what a script leaves in `scores` and `even`."""
    left, place = left_by(code), view.roles.index(role)
    stacks = {site.stack: [i for i, one in enumerate(view.sites) if one.stack == site.stack] for site in view.sites}
    at = [at for at in stacks.values() if not np.isnan(view.scores[place, at]).all()][-1]
    scores = left["scores"].numpy()
    wanted = view.scores[place, at][:, : scores.shape[1]]
    bound = {"positional": OF_DISTANCE, "ov-copying": 1e-4}.get(role, TOLERANCE)
    np.testing.assert_allclose(scores, wanted, atol=bound, err_msg=role)
    assert not np.isnan(wanted).all()
    if role not in {measure.name for measure in MEASURES}:
        np.testing.assert_allclose(left["even"].numpy(), view.even[place, at], atol=TOLERANCE, err_msg=role)


def check(found: dict[str, list[Line]]) -> None:
    for name, of_script in found.items():
        assert of_script, name
        for line in of_script:
            assert line.computed == pytest.approx(line.shown, abs=OF_DISTANCE), (name, line)


def scripts_of(engine: Engine, roles: list[str], probe: str = "") -> dict[str, str]:
    """Those of the roles that some head has, each held against what the panel shows."""
    view = head_roles(model_of(engine), probe or None)
    found = {}
    for role in roles:
        if np.isnan(view.scores[view.roles.index(role)]).all():
            why = failure_of(engine, ScriptRequest(of=RoleRequest(probe=probe, role=role))).sentence
            assert why in {sentence for name, _, sentence in view.why if name == role}
            continue
        found[role] = script(engine, role, probe)
        check_scores(found[role], view, role)
    return found


@pytest.mark.full
def test_every_role_of_a_causal_model(tmp_path: Path) -> None:
    """On the sentences that come along, with their dependency edges."""
    scripts = scripts_of(opened("story-gpt"), [role.name for role in ROLES])
    assert {"copy", "next", "rare", "ov-copying", "positional", "breadth", "nsubj-to-dependent"} <= set(scripts)
    assert "random tokens that come twice" in scripts["copy"]
    few = {name: scripts[name] for name in ("copy", "special", "ov-copying", "nsubj-to-dependent")}
    check(printed(few, tmp_path))


@pytest.mark.full
def test_families_on_a_file_of_texts(tiny_folder, lines: str, tmp_path: Path) -> None:
    """Windows, chunks, soft caps, weights alone."""
    scripts: dict[str, str] = {}
    roles = [role.name for role in (*PATTERNS, *MEASURES)]
    for kind in ("mistral", "gemma2", "gpt_neox", "llama4", "bert", "modernbert", "deberta_v2"):
        found = scripts_of(opened(str(tiny_folder(kind))), roles, lines)
        assert {"first", "special", "breadth", "positional"} <= set(found)
        scripts |= {f"{kind} {name}": found[name] for name in ("special", "positional")}
    check(printed(scripts, tmp_path))


def test_two_sides(tiny_folder, lines: str, tmp_path: Path) -> None:
    scripts = scripts_of(opened(str(tiny_folder("marian"))), ["previous", "first", "special", "breadth"], lines)
    assert "written[text]" in scripts["first"]
    for stack in ("encoder", "cross"):  # this decoder says nothing: its one query has no choice
        assert f"scores = sums_{stack}" in scripts["first"]
    check(printed(scripts, tmp_path))


@pytest.mark.full
def test_recurrent_and_textbook_models(lines: str, tmp_path: Path) -> None:
    folder = textbook_folders.write_folder(tmp_path / "textbook", **textbook_folders.KINDS["llama-like"])
    (tmp_path / "letters.txt").write_text("abcabcab\nxyzxy\n", encoding="utf-8")
    textbook = scripts_of(opened(str(folder)), ["previous", "copy", "breadth"], str(tmp_path / "letters.txt"))
    recurrent = scripts_of(opened("dates-luong"), ["first", "breadth"])
    scripts = {f"textbook {name}": code for name, code in textbook.items()}
    scripts |= {f"recurrent {name}": code for name, code in recurrent.items()}
    assert len(scripts) == 5
    check(printed(scripts, tmp_path, own_classes=True))


@pytest.mark.full
def test_pictures(tmp_path: Path) -> None:
    folder = tiny_vision.save("vit", tmp_path / "vit")
    scripts = scripts_of(opened(str(folder)), ["self", "first", "positional", "breadth"])
    assert len(scripts) == 4
    check(printed(scripts, tmp_path))


def test_by_hand(tiny_model, tiny_folder, lines: str) -> None:
    """The weight on the token before, from transformers' own weights, text by text."""
    model: Model = tiny_model("gpt2")
    left = left_by(script(opened(str(tiny_folder("gpt2"))), "previous", lines))
    shares: dict[int, list[np.ndarray]] = {}
    for text in TEXTS.splitlines():
        for ref, weights in attentions(tiny.eager_run(model, text, None), model).items():
            shares.setdefault(ref.layer, []).extend(weights[:, i, i - 1] for i in range(1, weights.shape[1]))
    for layer, of_layer in shares.items():
        np.testing.assert_allclose(left["scores"][layer].numpy(), np.mean(of_layer, axis=0), atol=TOLERANCE)
    assert len(shares) == len(left["scores"])


def test_what_has_no_lines_is_said(tiny_folder, lines: str, monkeypatch) -> None:
    engine = opened(str(tiny_folder("bert")))
    following = RoleRequest(probe=lines, role="next")
    assert "nothing has to be copied" in failure_of(engine, ScriptRequest(of=following)).sentence
    folder = tiny_folder("gpt2")
    adopted = adopt(
        transformers.AutoModelForCausalLM.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)
    )
    handed = Engine()
    handed.workspace.open(adopted)
    sentence = failure_of(handed, ScriptRequest(of=RoleRequest(probe=lines, role="first"))).sentence
    assert "this model is an object of another program" in sentence
    adopted.release()
    monkeypatch.setattr("attention_models.scripts.script_text.MOST_NUMBERS", 20)
    sentence = failure_of(engine, ScriptRequest(of=RoleRequest(probe=lines, role="first"))).sentence
    assert "more than 20 numbers" in sentence
    assert "fewer texts" in sentence
