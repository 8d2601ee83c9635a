"""The scripts behind Effects, run on their own: they print what the program's own interventions and readings give."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from attention_models import adopt, open_checkpoint
from attention_models.engine.engine import Engine
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.effects import (
    ACCOUNTS,
    BY_POSITION,
    AdversarialAttentionRequest,
    AdversarialAttentionView,
    AttributionRequest,
    AttributionView,
    EffectsRequest,
    EffectsView,
    ExplanationRequest,
    ExplanationView,
    HeadEffectRequest,
    InContextAtRequest,
    InContextView,
    LensAtRequest,
    LensView,
    Metric,
    PatchColumnRequest,
    PatchRequest,
    PatchView,
    Scope,
)
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention, Mask, Positions, Scale
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.scripts import ScriptRequest
from attention_models.protocol.values import SiteRef
from attention_models.scripts.own_functions import FACE, open_here
from attention_models.scripts.script_text import Script
from tests.models import textbook_folders, tiny
from tests.models.asking import ask, failure_of, opened
from tests.models.scripts.running import check_lines, few_first, printed, script
from tests.models.training_folders import trained

TOLERANCE = 2e-6
"""Of the largest number that a script prints: of logits of about 10, read after two products of float32."""

check = partial(check_lines, tolerance=TOLERANCE)

KINDS = ("gpt2", "llama", "gemma2", "gpt_neox", "gpt_oss", "bert", "distilbert", "albert", "t5", "bart", "marian")
OTHERS = ("story-gpt", "story-bert", "en-es")
RUN = 2
TEXTS = ("They sat on the river bank.", "She has money in the bank.")


def engine_of(name: str, tiny_folder) -> Engine:
    return opened(str(tiny_folder(name)) if name in tiny.KINDS else name)


def ran(engine: Engine, text: str = tiny.SENTENCE, *interventions: Intervention, target: str | None = None) -> Ran:
    view = ask(engine, ForwardRequest(inputs=RunInputs(text, target, interventions=interventions), ticket=RUN))
    assert isinstance(view, Ran), view
    return view


def whole(engine: Engine, request: EffectsRequest) -> EffectsView:
    while True:
        view = ask(engine, request)
        assert isinstance(view, EffectsView)
        if view.done == 1:
            return view


every_kind = few_first((*KINDS, *OTHERS), "gpt2", "gemma2", "bert")


@every_kind
def test_one_head_ablated(tiny_folder, tmp_path: Path, kinds) -> None:
    scripts, wanted = {}, {}
    for name in kinds:
        engine = engine_of(name, tiny_folder)
        run = ran(engine, target="La casa" if name == "en-es" else None)
        for site in {site.stack: site for site in run.sites}.values():
            aim = Metric(measure="difference", position=len(run.tokens) - 1)
            view = whole(engine, EffectsRequest(run=RUN, aim=aim))
            place = f"{name} {site.stack}"
            scripts[place] = script(engine, HeadEffectRequest(run=RUN, aim=aim, site=site.ref, head=site.heads - 1))
            found = view.of(site.ref)
            assert found is not None
            wanted[place] = float(found[-1])
    hooked = {place for place, code in scripts.items() if "register_forward_pre_hook" in code}
    assert {place.split()[0] for place in scripts.keys() - hooked} <= {"albert"}  # its layers share their weights
    lines = printed(scripts, tmp_path, own_classes=True)
    check(lines)
    for place, effect in wanted.items():
        assert {line.shown for line in lines[place] if line.name == "change"} == {effect}


@pytest.mark.full
def test_the_loss_without_a_head_in_both_units(gpt, tmp_path: Path) -> None:
    ran(gpt)
    site = SiteRef("decoder", 5)
    view = whole(gpt, EffectsRequest(run=RUN, aim=Metric(measure="loss")))
    code = script(gpt, HeadEffectRequest(run=RUN, aim=Metric(measure="loss"), site=site, head=5))
    lines = printed({"loss": code}, tmp_path)
    check(lines)
    said = {line.name: line.shown for line in lines["loss"]}
    assert said["as it is, nats"] == view.aim.value
    assert said["as it is, bits"] == pytest.approx(view.aim.value / np.log(2))
    found = view.of(site)
    assert found is not None
    assert said["change, nats"] == found[5]


@every_kind
def test_the_logit_lens(tiny_folder, tmp_path: Path, kinds) -> None:
    scripts, views = {}, {}
    for name in kinds:
        engine = engine_of(name, tiny_folder)
        ran(engine)
        for target in (None, 7):
            request = LensAtRequest(run=RUN, target=target, position=3)
            view = ask(engine, request)
            assert isinstance(view, LensView)
            if not view.why:
                scripts[f"{name} {target}"] = script(engine, request)
                views[f"{name} {target}"] = view
    lines = printed(scripts, tmp_path, own_classes=True)
    check(lines)
    for name, view in views.items():
        assert view.target_rank is not None
        ranks = [line.shown for line in lines[name] if line.name.startswith("rank")]
        assert ranks == view.target_rank[:, 3].tolist()
    if "gpt2" in kinds:
        assert "head(norm(stream))" in scripts["gpt2 None"]
        assert "head_of(model, " in scripts["gemma2 None"]  # a cap on its logits
    assert {name.split()[0] for name, code in scripts.items() if FACE in code} == set()


@every_kind
def test_a_word_in_two_texts(tiny_folder, tmp_path: Path, kinds) -> None:
    scripts, views = {}, {}
    for name in kinds:
        engine = engine_of(name, tiny_folder)
        ran(engine)
        request = InContextAtRequest(texts=TEXTS, words=("bank", "money"), layer=1)
        view = ask(engine, request)
        assert isinstance(view, InContextView)
        scripts[name], views[name] = script(engine, request), view
    lines = printed(scripts, tmp_path)
    check(lines)
    for name, view in views.items():
        said = {line.name: line.shown for line in lines[name]}
        assert [said[f"cosine {i}"] for i in range(view.layers)] == view.cosine.tolist()
        assert said["any two tokens"] == view.anisotropy[1]


INTERVENTIONS: dict[str, tuple[Intervention, ...]] = {
    "scaled": (Scale(0.5, SiteRef("decoder", 5), 5),),
    "masked": (Mask("window", window=3), Mask("painted", cells=((9, 1, False), (13, 2, True)))),
    "ablated": (Ablation("mlp", SiteRef("decoder", 2)), Ablation("head", SiteRef("decoder", 3), 1, fill="mean")),
}


@pytest.mark.full
def test_interventions_are_part_of_it(gpt, tmp_path: Path) -> None:
    scripts, views = {}, {}
    for name, interventions in INTERVENTIONS.items():
        ran(gpt, tiny.SENTENCE, *interventions)
        request = HeadEffectRequest(run=RUN, aim=Metric(position=13), site=SiteRef("decoder", 7), head=2)
        scripts[f"{name} head"] = script(gpt, request)
        scripts[f"{name} lens"] = script(gpt, LensAtRequest(run=RUN, position=13))
        words = InContextAtRequest(
            texts=(TEXTS[0] * 2, TEXTS[1]),
            words=("bank", "bank"),
            starts=(22, None),
            interventions=interventions,
            layer=4,
        )
        scripts[f"{name} words"] = script(gpt, words)
        view = ask(gpt, request)
        assert isinstance(view, EffectsView)
        views[name] = view
    assert all("Interventions are on" in code for code in scripts.values())
    lines = printed(scripts, tmp_path, own_classes=True)
    check(lines)
    for name, view in views.items():
        assert lines[f"{name} head"][0].shown == view.aim.value
    assert len({round(view.aim.value, 3) for view in views.values()}) == 3  # each of them changes it


@pytest.mark.full
def test_the_textbook_transformer(tmp_path: Path) -> None:
    scripts = {}
    for name in ("decoder", "llama-like", "encoder", "t5-like"):
        switches = textbook_folders.KINDS[name]
        engine = opened(str(textbook_folders.write_folder(tmp_path / name, **switches)))
        run = ran(engine, textbook_folders.text_for(switches.get("shape", "encoder-decoder")))
        request = HeadEffectRequest(run=RUN, site=run.sites[-1].ref, head=1)
        scripts[f"{name} head"] = script(engine, request)
        scripts[f"{name} lens"] = script(engine, LensAtRequest(run=RUN, position=0))
        scripts[f"{name} words"] = script(engine, InContextAtRequest(texts=("abc", "bca"), words=("a", "a"), layer=1))
    assert "register_forward_pre_hook" in scripts["decoder head"]
    check(printed(scripts, tmp_path, own_classes=True))


@pytest.mark.full
def test_a_pair_of_texts_under_interventions(bert, tmp_path: Path) -> None:
    pair = Pair("Tom went to the park.", "Anna gave the [MASK] to Ben.")
    inputs = RunInputs(pair, interventions=(Scale(0.5), Positions("off")))
    assert isinstance(ask(bert, ForwardRequest(inputs=inputs, ticket=RUN)), Ran)
    request = HeadEffectRequest(run=RUN, site=SiteRef("encoder", 3), head=2)
    check(printed({"pair": script(bert, request)}, tmp_path, own_classes=True))


@pytest.mark.full
def test_a_picture(tmp_path: Path) -> None:
    engine = opened("vit-cifar10")
    inputs = RunInputs("", picture="sample:chelsea")
    run = ask(engine, ForwardRequest(inputs=inputs, ticket=RUN))
    assert isinstance(run, Ran), run
    requests = {
        "head": HeadEffectRequest(run=RUN, aim=Metric(position=0), site=run.sites[-1].ref, head=1),
        "lens": LensAtRequest(run=RUN, position=0),
        "sum": AttributionRequest(run=RUN, aim=Metric(position=0)),
    }
    check(printed({name: script(engine, request) for name, request in requests.items()}, tmp_path, own_classes=True))


def test_what_cannot_be_written_is_said(gpt, bert) -> None:
    ran(bert)
    loss = HeadEffectRequest(run=RUN, aim=Metric(measure="loss"), site=SiteRef("encoder", 0), head=0)
    assert "there is no loss" in failure_of(bert, ScriptRequest(of=loss)).sentence
    ran(gpt)
    nowhere = InContextAtRequest(texts=TEXTS, words=("bank", "river"), layer=1)
    assert "does not have “river”" in failure_of(gpt, ScriptRequest(of=nowhere)).sentence
    unlike = PatchColumnRequest(run=RUN, other="Tom went.", aim=Metric(), column=3)
    assert "tokens long to story-gpt" in failure_of(gpt, ScriptRequest(of=unlike)).sentence
    without = PatchColumnRequest(run=RUN, other="Tom went.", align="start", aim=Metric(), column=13)
    assert "No token of the other text stands for “to” (13)" in failure_of(gpt, ScriptRequest(of=without)).sentence
    head = HeadEffectRequest(run=RUN, site=SiteRef("decoder", 0), head=0)
    batch = RunInputs(Batch(("Tom went.", tiny.SENTENCE)))
    assert isinstance(ask(gpt, ForwardRequest(inputs=batch, ticket=RUN)), Ran)
    assert "Run it alone" in failure_of(gpt, ScriptRequest(of=head)).sentence
    opened_here = open_checkpoint("story-gpt")
    borrowed = adopt(opened_here.module, opened_here.tokenizer)
    with pytest.raises(InputError, match="object of another program"):
        open_here(Script(""), borrowed, "")


@every_kind
def test_a_logit_as_a_sum(tiny_folder, tmp_path: Path, kinds) -> None:
    scripts, views = {}, {}
    for name in kinds:
        engine = engine_of(name, tiny_folder)
        run = ran(engine)
        for measure in ("logit", "difference"):
            request = AttributionRequest(run=RUN, aim=Metric(measure=measure, position=len(run.tokens) - 1))
            view = ask(engine, request)
            assert isinstance(view, AttributionView)
            if view.why:
                assert failure_of(engine, ScriptRequest(of=request)).sentence == view.why
                continue
            scripts[f"{name} {measure}"], views[f"{name} {measure}"] = script(engine, request), view
    plain = {name: code for name, code in scripts.items() if not views[name].held}
    last_norm_alone = {"gpt2", "llama", "gpt_neox", "gpt_oss", "t5", "story-gpt"}
    assert {name.split()[0] for name in plain} == last_norm_alone & set(kinds)
    assert all("register_forward_hook" in code for code in plain.values())
    assert all("logit_attribution(" in code for name, code in scripts.items() if views[name].held)
    lines = printed(scripts, tmp_path, own_classes=True)
    check(lines)
    for name, view in views.items():
        said = {line.name: line.shown for line in lines[name]}
        for site in view.sites:
            of_heads = [said[f"{site.site.stack} layer {site.site.layer}, head {i}"] for i in range(len(site.heads))]
            assert of_heads == site.heads.tolist()


OTHER = "Tom and Anna went to the park. Tom gave the ball to"
SWAPPED = "Tom and Anna went to the park. Anna the gave ball to"  # as many tokens to every tokenizer


def patched(engine: Engine, **asked: object) -> tuple[str, PatchView]:
    """The script, and the whole map of the panel."""
    request = PatchColumnRequest(run=RUN, **asked)  # type: ignore[arg-type]
    fields = {name: value for name, value in asked.items() if name not in ("site", "column")}
    while True:
        view = ask(engine, PatchRequest(run=RUN, **fields))  # type: ignore[arg-type]
        assert isinstance(view, PatchView)
        if view.done == 1:
            return script(engine, request), view


@every_kind
def test_a_place_of_another_run(tiny_folder, tmp_path: Path, kinds) -> None:
    scripts, wanted = {}, {}
    for name in kinds:
        engine = engine_of(name, tiny_folder)
        run = ran(engine, target="La casa" if name == "en-es" else None)
        for kind in BY_POSITION:
            column = 0 if len(run.tokens) == 1 else 1
            scripts[f"{name} {kind}"], view = patched(
                engine, other=OTHER, kind=kind, align="tokens", aim=Metric(), column=column
            )
            wanted[f"{name} {kind}"] = view.values[:, column].tolist()
        for kind in ("head", "pattern"):
            site = run.sites[-1]
            scripts[f"{name} {kind}"], view = patched(
                engine, other=SWAPPED, kind=kind, align="same", aim=Metric(), site=site.ref, column=1
            )
            wanted[f"{name} {kind}"] = [view.values[view.rows.index(site.ref), 1]]
    own = {name for name, code in scripts.items() if FACE in code}
    assert {name.split()[0] for name in own} <= {"albert"}
    lines = printed(scripts, tmp_path, own_classes=True)
    check(lines)
    for name, values in wanted.items():
        assert [line.shown for line in lines[name] if line.name.startswith("patched")] == values, name


@few_first(("gpt2", "gpt_oss", "bert", "albert", "story-gpt"), "gpt2")
def test_tokens_weighed(tiny_folder, tmp_path: Path, kinds) -> None:
    scripts, views = {}, {}
    for name in kinds:
        engine = engine_of(name, tiny_folder)
        run = ran(engine, "Tom and Anna went to the")
        request = ExplanationRequest(run=RUN, aim=Metric(measure="difference", position=len(run.tokens) - 2))
        view = ask(engine, request)
        assert isinstance(view, ExplanationView)
        scripts[name], views[name] = script(engine, request), view
    assert all("torch.autograd.grad" in code for code in scripts.values())
    lines = printed(scripts, tmp_path)
    check(lines, tolerance=1e-5)  # differences of logits of up to 30
    for name, view in views.items():
        said = {line.name: line.shown for line in lines[name]}
        for account in ("attention", "integrated", "ablation"):
            values = view.of(account)
            assert values is not None
            assert [said[f"{ACCOUNTS[account]}, token {i}"] for i in range(len(values))] == values.tolist()


ATTENDING = ("gpt2", "llama", "gemma2", "gpt_oss", "bert", "t5", "albert", "story-gpt", "en-es")


@few_first(ATTENDING, "gpt2", "albert")
def test_other_weights(tiny_folder, tmp_path: Path, kinds) -> None:
    scripts, views = {}, {}
    for name in kinds:
        engine = engine_of(name, tiny_folder)
        run = ran(engine, "Tom and Anna went to the", target="La casa" if name == "en-es" else None)
        scope: Scope = "layer" if name in ("gpt_oss", "bert") else "head"
        request = AdversarialAttentionRequest(run=RUN, site=run.sites[-1].ref, head=1, scope=scope)
        ask(engine, request)
        view = ask(engine, request)
        assert isinstance(view, AdversarialAttentionView)
        scripts[name], views[name] = script(engine, request), view
    assert all(("modeling.eager_attention_forward" in code) == (name != "albert") for name, code in scripts.items())
    lines = printed(scripts, tmp_path, own_classes=True)
    check(lines)
    for name, view in views.items():
        said = {line.name: line.shown for line in lines[name]}
        assert said["divergence, nats"] == float(view.same.divergence.mean())
        assert said["same, total variation distance"] == view.same.distance


@pytest.mark.full
def test_other_weights_under_interventions_and_none_at_all(gpt, tmp_path: Path) -> None:
    run = ran(gpt, tiny.SENTENCE, Scale(0.5, SiteRef("decoder", 5), 5))
    request = AdversarialAttentionRequest(run=RUN, site=SiteRef("decoder", 5), head=5)
    assert "No other weights were found yet" in failure_of(gpt, ScriptRequest(of=request)).sentence
    ask(gpt, request)
    code = script(gpt, request)
    assert "Interventions are on" in code
    lines = printed({"edited": code}, tmp_path, own_classes=True)
    check(lines)
    assert len(run.tokens) == 14


@pytest.mark.full
def test_a_step_of_a_training_is_that_step(tmp_path: Path) -> None:
    trained(tmp_path / "copy", shape="decoder")
    scripts = {}
    for step in (2, 6):
        engine = opened(f"{tmp_path / 'copy'}@{step}")
        run = ran(engine, "abcd>")
        scripts[str(step)] = script(engine, HeadEffectRequest(run=RUN, site=run.sites[-1].ref, head=1))
        scripts[f"{step} patch"], _ = patched(engine, other="bacd>", kind="residual", aim=Metric(), column=1)
    lines = printed(scripts, tmp_path, own_classes=True)
    check(lines)
    assert lines["2"][0].shown != lines["6"][0].shown
