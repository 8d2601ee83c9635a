"""Several texts in one run, against transformers' own eager forward on what the tokenizer makes of the same texts."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from attention_models import Mask, Pair, Positions, Scale, open_checkpoint, run
from attention_models.attention.inputs import AttentionInputs
from attention_models.forward.batches import encode_batch
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import MOST_TEXTS, Batch, PaddingSide
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.values import Token, site_tokens
from attention_models.trust.check import compare_with_alone, compare_with_eager
from attention_models.trust.report import report_on_input
from attention_models.views.comparison import loss
from tests.models import tiny
from tests.models.eager import logits_of
from tests.models.forward.test_pairs import SEGMENTED, SEPARATED
from tests.models.opening.test_families import ALL
from tests.models.room import room_of
from tests.models.tiny import TinyFolder, TinyModel

TEXTS = ["She was singing", "Tom and Anna went to the park. Anna", "La casa"]
TARGETS = ["La casa tiene", "El perro", "La casa tiene tres puertas, y el"]
WEIGHTS_ALONE = ("bloom", "mpt", "gpt_neo", "deberta_v2", "xlnet", "jamba")
KINDS = [*(kind for _, kind in ALL), *WEIGHTS_ALONE]
SIDES: tuple[PaddingSide, ...] = ("right", "left")
COUNT_PADDING = ("bart_decoder", "bart", "mbart", "marian", "bert2bert")  # and take no position ids
HEADS_OF_TEXTS = (
    *("bert_classifier", "roberta_classifier", "distilbert_classifier", "modernbert_classifier", "deberta_classifier"),
    *("gpt2_classifier", "llama_classifier", "albert_pretrained", "mobilebert_pretrained"),
)


def with_positions(model: Model, side: PaddingSide, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Padded on the left, with positions as `generate` of transformers makes them; RoBERTa makes its own."""
    if side == "left" and model.accepts("position_ids") and "roberta" not in model.config.model_type:
        inputs["position_ids"] = (inputs["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    return inputs


def own_batch(model: Model, side: PaddingSide, texts: list[str] = TEXTS) -> dict[str, torch.Tensor]:
    """What the tokenizer's own call gives of the texts, and of the targets after the decoder's start."""
    tokenizer = model.tokenizer
    made = tokenizer(texts, padding=True, padding_side=side, return_tensors="pt", pad_to_multiple_of=None)
    inputs = with_positions(model, side, {name: made[name] for name in ("input_ids", "attention_mask")})
    if model.seq2seq:
        start = model.config.decoder_start_token_id
        # an end comes last, which is still to be written
        rows = [[start, *ids[:-1]] for ids in tokenizer(text_target=TARGETS)["input_ids"]]
        longest = max(map(len, rows))
        for name, fill in (("decoder_input_ids", tokenizer.pad_token_id), ("decoder_attention_mask", 0)):
            parts = rows if fill or name == "decoder_input_ids" else [[1] * len(row) for row in rows]
            missing = [[fill] * (longest - len(row)) for row in rows]
            inputs[name] = torch.tensor(
                [p + m if side == "right" else m + p for p, m in zip(parts, missing, strict=True)]
            )
    return inputs


def with_padding(model: Model) -> Model:
    """A tokenizer without padding is given some, as training loops do."""
    if model.tokenizer.pad_token is None:
        model.tokenizer.pad_token = model.tokenizer.eos_token
    return model


def ran(model: Model, side: PaddingSide, interventions: tuple[Intervention, ...] = ()) -> tuple[Trace, ...]:
    return run(model, TEXTS, target=TARGETS if model.seq2seq else None, padding=side, interventions=interventions)


def stacks_of(out: Any, model: Model) -> dict[str, list[torch.Tensor]]:
    if not model.seq2seq:
        return {model.info.stacks[0].stack: [layer for layer in out.attentions if layer is not None]}
    return {
        "encoder": list(out.encoder_attentions),
        "decoder": list(out.decoder_attentions),
        "cross": list(out.cross_attentions),
    }


def queries_of(trace: Trace, stack: str) -> tuple[Token, ...]:
    return trace.source if trace.source and stack == "encoder" else trace.tokens


def both_sides(kinds: Iterable[str]) -> list[tuple[str, PaddingSide]]:
    """Each kind with each side, but for those whose own forward counts padding on the left as tokens."""
    return [(kind, side) for kind in kinds for side in SIDES if side == "right" or kind not in COUNT_PADDING]


@pytest.mark.short(
    "gpt2-left",
    "mistral-right",
    "gemma2-left",
    "gpt_oss-right",
    "bert-right",
    "modernbert-left",
    "t5-right",
    "bart-right",
    "xlnet-left",
)
@pytest.mark.parametrize(("kind", "side"), both_sides(KINDS))
def test_equals_eager_on_the_tokenizers_own_batch(tiny_model: TinyModel, kind: str, side: PaddingSide) -> None:
    model = with_padding(tiny_model(kind))
    if side == "left" and model.info.class_head is not None and model.info.class_head.of == "text":
        pytest.skip("transformers' own head reads the padding in the first place")
    assert_as_eager(model, ran(model, side), own_batch(model, side))


def assert_as_eager(model: Model, traces: tuple[Trace, ...], inputs: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        out = tiny.eager(model)(**inputs, output_attentions=True)
    assert len(traces) == len(inputs["input_ids"])
    for row, trace in enumerate(traces):
        read = trace.source or trace.tokens
        assert [token.id for token in read] == inputs["input_ids"][row].tolist()
        assert [not token.padding for token in read] == inputs["attention_mask"][row].bool().tolist()
        seen = dict.fromkeys((site.stack for site in trace.sites), 0)
        for site, x in zip(trace.sites, trace.inputs, strict=True):
            theirs = stacks_of(out, model)[site.stack][seen[site.stack]][row]
            seen[site.stack] += 1
            real = [i for i, token in enumerate(queries_of(trace, site.stack)) if not token.padding]
            for head in range(site.heads):
                room = room_of(x, head, site.layer, theirs[head], 1e-6, 1e-5)
                np.testing.assert_allclose(
                    trace.weights(site, head)[real], theirs[head, real].numpy(), atol=room, rtol=0
                )
        logits = logits_of(out) if trace.has_logits else None
        if trace.has_logits and logits is not None and logits.shape[1] == len(trace.tokens):
            real = [i for i, token in enumerate(trace.tokens) if not token.padding]
            exact = logits[row, real].numpy()
            np.testing.assert_allclose(trace.logits[real], exact, atol=1e-5 * max(1.0, np.abs(exact).max()), rtol=0)


FIRSTS = ["Tom and Anna went to the park.", "She sang", "The cat"]
SECONDS = ["Anna gave the ball to Tom", "It was a very old song, and everybody knew it", "It ran"]


@pytest.mark.short("bert-right", "t5-left", "xlnet-left", "bart-right")
@pytest.mark.parametrize(("kind", "side"), both_sides([*SEGMENTED, *SEPARATED]))
def test_pairs_equal_eager_on_the_tokenizers_own_batch(tiny_model: TinyModel, kind: str, side: PaddingSide) -> None:
    model = with_padding(tiny_model(kind))
    made = model.tokenizer(
        FIRSTS, SECONDS, padding=True, padding_side=side, return_tensors="pt", return_token_type_ids=True
    )
    names = ["input_ids", "attention_mask"] + ["token_type_ids"] * (kind in SEGMENTED)
    inputs = with_positions(model, side, {name: made[name] for name in names})
    if model.seq2seq:
        inputs |= {name: part for name, part in own_batch(model, side).items() if name.startswith("decoder")}
    pairs = list(zip(FIRSTS, SECONDS, strict=True))
    traces = run(model, pairs, target=TARGETS if model.seq2seq else None, padding=side)
    assert_as_eager(model, traces, inputs)
    for first, second, trace in zip(FIRSTS, SECONDS, traces, strict=True):
        report = report_on_input(model, Pair(first, second), trace)
        assert report is not None
        assert report.equal
        for token in (t for t in trace.source or trace.tokens if t.start != t.end):
            assert (second if token.segment else first)[token.start : token.end] == token.text


@pytest.mark.parametrize("order", [0, 1])
def test_a_text_beside_a_pair_is_given_segments_of_zero(tiny_model: TinyModel, order: int) -> None:
    model = with_padding(tiny_model("bert"))
    texts: list[Any] = [(FIRSTS[0], SECONDS[0]), "She sang"]
    call = partial(model.tokenizer, return_token_type_ids=True)
    rows = [(call(*text) if isinstance(text, tuple) else call(text)).data for text in texts]
    if order:
        texts, rows = texts[::-1], rows[::-1]
    assert_as_eager(model, run(model, texts), dict(model.tokenizer.pad(rows, return_tensors="pt")))


def test_conversations_need_a_template_and_ids_are_run_alone(tiny_model: TinyModel) -> None:
    model = with_padding(tiny_model("llama"))
    talk: list[Any] = [[{"role": "user", "content": "Good morning."}], [{"role": "user", "content": "Hello"}]]
    with pytest.raises(InputError, match=r"Text 1: .*template"):
        run(model, talk)
    ids: list[Any] = [[5, 6], [7]]
    with pytest.raises(InputError, match=r"Text 1: it is a list of token ids, which is run alone\."):
        run(model, ids)
    mixed: list[Any] = ["She sang", 5]
    with pytest.raises(InputError, match=r"Text 2 of the list is no text \(int\)\."):
        run(model, mixed)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma2", "bert", "bart"])
def test_no_text_attends_to_padding_and_padding_changes_nothing(
    tiny_model: TinyModel, kind: str, side: PaddingSide
) -> None:
    model = with_padding(tiny_model(kind))
    for trace in ran(model, side):
        for site in trace.sites:
            keys = trace.source if site.stack in ("encoder", "cross") and trace.source else trace.tokens
            padded = [i for i, token in enumerate(keys) if token.padding]
            real = [i for i, token in enumerate(queries_of(trace, site.stack)) if not token.padding]
            for head in range(site.heads):
                assert not trace.weights(site, head)[np.ix_(real, padded)].any()
        assert all(token.special and token.start == token.end for token in trace.tokens if token.padding)


@pytest.mark.short(
    "gpt2-left",
    "mistral-right",
    "gemma2-left",
    "gpt_oss-right",
    "bert-right",
    "modernbert-left",
    "t5-left",
    "bart-right",
    "xlnet-left",
    "gpt2_classifier-left",
)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", [*KINDS, *HEADS_OF_TEXTS])
def test_each_text_is_read_as_if_alone(
    tiny_model: TinyModel, tiny_folder: TinyFolder, kind: str, side: PaddingSide
) -> None:
    """Against transformers' own eager forward of each text alone."""
    if "t5" in kind:  # unscaled scores of random weights are so large that float32 rounds by more than is asked here
        model = with_padding(open_checkpoint(str(tiny_folder(kind))))
        model.module.double()
        alone = tiny.eager(model).double()
    else:
        model = with_padding(tiny_model(kind))
        alone = tiny.eager(model)
    for row, trace in enumerate(ran(model, side)):
        inputs = model.encode(TEXTS[row], TARGETS[row] if model.seq2seq else None).inputs
        with torch.no_grad():
            out = alone(**inputs, output_attentions=True)
        seen = dict.fromkeys((site.stack for site in trace.sites), 0)
        for site in trace.sites:
            theirs = stacks_of(out, model)[site.stack][seen[site.stack]][0]
            seen[site.stack] += 1
            queries, keys = ([i for i, t in enumerate(side) if not t.padding] for side in site_tokens(trace, site))
            for head in range(site.heads):
                ours = trace.weights(site, head)[np.ix_(queries, keys)]
                np.testing.assert_allclose(ours, theirs[head].numpy(), atol=7e-6, rtol=0)
        logits = logits_of(out) if trace.has_logits else None
        if logits is not None:
            exact = logits[0].numpy()
            real = [i for i, token in enumerate(trace.tokens) if not token.padding]
            room = 7e-6 * max(1.0, np.abs(exact).max())
            np.testing.assert_allclose(trace.logits[real], np.broadcast_to(exact, trace.logits[real].shape), atol=room)


def test_texts_padded_on_the_left_say_what_each_says_alone(story_gpt: Model) -> None:
    texts = [
        "The cat sat on the",
        "Tom and Anna went to the",
        "Once upon a time there was a little girl who lived near",
    ]
    for text, trace in zip(texts, run(story_gpt, texts, padding="left"), strict=True):
        alone = run(story_gpt, text)
        real = [i for i, token in enumerate(trace.tokens) if not token.padding]
        np.testing.assert_allclose(trace.logits[real], alone.logits, atol=7e-6 * np.abs(alone.logits).max())
        for site in trace.sites:
            for head in range(site.heads):
                ours = trace.weights(site, head)[np.ix_(real, real)]
                np.testing.assert_allclose(ours, alone.weights(site, head), atol=7e-6)


@pytest.mark.parametrize("kind", ["bert_choice", "distilbert_choice", "roberta_choice", "deberta_choice"])
def test_choices_are_the_same_whichever_side_is_padded(tiny_model: TinyModel, kind: str) -> None:
    model = with_padding(tiny_model(kind))
    for left, right in zip(ran(model, "left"), ran(model, "right"), strict=True):
        np.testing.assert_allclose(left.logits[-1], right.logits[0], atol=7e-6)


def test_a_typed_padding_token_is_read_as_alone(tiny_model: TinyModel) -> None:
    """RoBERTa counts no token that is its padding, wherever it comes from."""
    model = tiny_model("roberta")
    texts = ["She <pad> was singing", TEXTS[1]]
    trace, alone = run(model, texts, padding="left")[0], run(model, texts[0])
    assert model.tokenizer.pad_token == "<pad>"
    real = [i for i, token in enumerate(trace.tokens) if not token.padding]
    assert len(real) < len(trace.tokens)
    np.testing.assert_allclose(trace.logits[real], alone.logits, atol=7e-6 * max(1.0, np.abs(alone.logits).max()))


@pytest.mark.parametrize("kind", ["gpt2", "bert", "roberta", "opt"])
def test_shifted_positions_of_a_padded_text_are_those_of_the_text_alone(tiny_model: TinyModel, kind: str) -> None:
    model, shift = with_padding(tiny_model(kind)), Positions("shift", 3)
    trace, alone = ran(model, "left", (shift,))[0], run(model, TEXTS[0], interventions=[shift])
    real = [i for i, token in enumerate(trace.tokens) if not token.padding]
    np.testing.assert_allclose(trace.logits[real], alone.logits, atol=7e-6 * max(1.0, np.abs(alone.logits).max()))


@pytest.mark.short("gpt2-left", "bert-right", "t5-left")
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5", "mt5", "marian", "bloom", "bert_classifier", "bert_choice"])
def test_the_tick_compares_with_the_text_alone(tiny_model: TinyModel, kind: str, side: PaddingSide) -> None:
    model = with_padding(tiny_model(kind))
    targets = TARGETS if model.seq2seq else None
    for shown, trace in enumerate(ran(model, side)):
        found = compare_with_alone(model, Batch(tuple(TEXTS), side, shown), targets, trace)
        assert found.holds
        assert found.tolerance is not None
        assert found.tolerance < 2e-4
    other = compare_with_alone(model, Batch(tuple(TEXTS), side, 2), targets, replace(trace, inputs=wrong_inputs(trace)))
    assert other.holds is False


def wrong_inputs(trace: Trace) -> tuple[AttentionInputs, ...]:
    """What the sites were given, one of them with other scores: a text that was read as something else."""
    first, *others = trace.inputs
    if first.precomputed is not None:
        return (replace(first, precomputed=first.precomputed.flip(1)), *others)
    return (replace(first, query=-first.query), *others)


def test_padding_counted_as_tokens_turns_the_tick_red(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """As transformers' own forward reads such a batch."""
    monkeypatch.setattr("attention_models.forward.batches.own_positions", lambda *_: None)
    monkeypatch.setattr("attention_models.forward.model.read_as_if_alone", lambda *_: nullcontext())
    batch = Batch(tuple(TEXTS), "left")
    found = compare_with_alone(story_gpt, batch, None, run(story_gpt, TEXTS, padding="left")[0])
    assert found.weight_difference > 0.1
    assert found.holds is False


def test_padding_on_the_right_gives_what_each_text_gives_alone(tiny_model: TinyModel) -> None:
    model = with_padding(tiny_model("llama"))
    for text, trace in zip(TEXTS, ran(model, "right"), strict=True):
        alone = run(model, text)
        count = len(alone.tokens)
        assert trace.tokens[:count] == alone.tokens
        assert trace.last == count - 1
        np.testing.assert_allclose(trace.logits[:count], alone.logits, atol=1e-5)
        theirs = alone.weights(2, 3)
        room = room_of(alone.inputs[2], 3, 2, torch.from_numpy(theirs), 1e-6, 1e-5)
        np.testing.assert_allclose(trace.weights(2, 3)[:count, :count], theirs, atol=room, rtol=0)


def test_traces_are_views_of_the_same_tensors(tiny_model: TinyModel) -> None:
    traces = ran(with_padding(tiny_model("bert")), "right")
    storages = {trace.inputs[1].query.untyped_storage().data_ptr() for trace in traces}
    assert len(storages) == 1
    assert all(trace.inputs[1].query.shape[0] == 1 for trace in traces)
    assert all(trace.inputs[1].mask is not None and trace.inputs[1].mask.shape[0] == 1 for trace in traces)
    assert traces[0].nbytes == traces[2].nbytes


@pytest.mark.short("gpt2-left", "gemma2-right", "bert-right", "t5-left")
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["gpt2", "gemma2", "gpt_oss", "llama4", "bert", "modernbert", "t5", "bart", "bloom"])
def test_strip_holds_for_each_text_and_turns_red_for_another(
    tiny_model: TinyModel, kind: str, side: PaddingSide
) -> None:
    model = with_padding(tiny_model(kind))
    target = TARGETS if model.seq2seq else None
    traces = ran(model, side)
    encoded = encode_batch(model, Batch(tuple(TEXTS), side), target)
    for text, one, trace in zip(TEXTS, encoded, traces, strict=True):
        found = compare_with_eager(model, one, trace)
        assert max(found.logit_difference, found.weight_difference) < found.tolerance
        report = report_on_input(model, text, trace)
        assert report is not None
        assert report.equal
    other = compare_with_eager(model, replace(encoded[2], row=0), traces[2])  # the numbers of another text
    assert other.weight_difference > 1e-2
    if side == "right" and not model.seq2seq and model.info.family == "causal":
        return  # no text attends to what comes after it, masked or not
    # the padding made visible to all: what a lost attention mask gives
    visible = {name: torch.ones_like(t) if "mask" in name else t for name, t in encoded[2].inputs.items()}
    found = compare_with_eager(model, replace(encoded[2], inputs=visible), traces[2])
    assert found.weight_difference > 1e-3


@pytest.mark.short("gpt2-left", "bart-right")
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma2", "bart"])
def test_strip_holds_in_half_precision(tiny_folder: TinyFolder, kind: str, side: PaddingSide) -> None:
    model = with_padding(open_checkpoint(tiny_folder(kind), dtype="bfloat16"))
    traces = ran(model, side)
    encoded = encode_batch(model, Batch(tuple(TEXTS), side), TARGETS if model.seq2seq else None)
    for one, trace in zip(encoded, traces, strict=True):
        found = compare_with_eager(model, one, trace)
        assert found.weight_difference <= found.tolerance
        assert found.rounding is not None
        assert found.rounding <= 1
        assert found.logit_difference <= found.logit_tolerance


@pytest.mark.parametrize("side", SIDES)
def test_a_long_batch_holds_no_mask_and_equals_eager(story_gpt: Model, side: PaddingSide, monkeypatch: Any) -> None:
    """As beyond 1,024 tokens, where masks are evaluated where they are needed, at a hundredth of the length."""
    from attention_models.attention import edits, masks
    from attention_models.protocol import values

    for module in (values, edits, masks):
        if hasattr(module, "is_long"):
            monkeypatch.setattr(module, "is_long", lambda queries, keys: queries * keys > 16)
    traces = run(story_gpt, TEXTS, padding=side)
    assert all(isinstance(x.mask, masks.RowMask) for x in traces[0].inputs)
    monkeypatch.undo()
    for trace, plain in zip(traces, run(story_gpt, TEXTS, padding=side), strict=True):
        real = [i for i, token in enumerate(trace.tokens) if not token.padding]
        for head in range(8):
            np.testing.assert_allclose(trace.weights(3, head)[real], plain.weights(3, head)[real], atol=1e-6)
        np.testing.assert_allclose(trace.logits[real], plain.logits[real], atol=1e-4)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("item", [Scale(0.5), Mask("causal"), Mask("none"), Mask("window", window=2)])
def test_interventions_act_on_each_text_and_leave_padding_masked(
    tiny_model: TinyModel, side: PaddingSide, item: Intervention
) -> None:
    model = with_padding(tiny_model("llama"))
    for text, trace in zip(TEXTS, ran(model, side, (item,)), strict=True):
        alone = run(model, text, interventions=[item])
        real = [i for i, token in enumerate(trace.tokens) if not token.padding]
        for layer in range(3):
            # rotation knows distances alone, so that padding before a text changes nothing but the last digits
            ours = trace.weights(layer, 1)[np.ix_(real, real)]
            np.testing.assert_allclose(ours, alone.weights(layer, 1), atol=2e-5)
        np.testing.assert_allclose(trace.logits[real], alone.logits, atol=2e-4)


def test_logits_of_many_tokens_are_those_of_the_right_text(story_gpt: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = run(story_gpt, TEXTS, padding="left")
    monkeypatch.setattr("attention_models.forward.logits.KEPT_BYTES", 1)
    for now, before in zip(run(story_gpt, TEXTS, padding="left"), kept, strict=True):
        assert now.output_logits is None
        real = [i for i, token in enumerate(now.tokens) if not token.padding]
        np.testing.assert_allclose(now.logits[real], before.logits[real], atol=1e-4)


def test_a_tokenizer_without_padding_fills_up_with_its_end(tiny_folder: TinyFolder) -> None:
    model = open_checkpoint(tiny_folder("gpt2"))
    assert model.tokenizer.pad_token is None
    traces = run(model, TEXTS)
    assert {token.id for token in traces[2].tokens if token.padding} == {model.tokenizer.eos_token_id}


def test_what_is_refused(tiny_model: TinyModel, story_bert: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="Text 2: The input is empty"):
        run(story_bert, ["a cat", ""])
    with pytest.raises(InputError, match="257 texts; 256"):
        run(story_bert, ["a"] * (MOST_TEXTS + 1))
    with pytest.raises(InputError, match="right or to the left"):
        run(story_bert, ["a", "b"], padding="middle")  # type: ignore[call-overload]
    with pytest.raises(InputError, match="2 targets for 3 texts"):
        run(tiny_model("t5"), TEXTS, target=TARGETS[:2])
    monkeypatch.setattr("attention_models.forward.batches.KEPT_BYTES", 100_000)
    with pytest.raises(InputError, match=r"These 3 texts come to .* tokens, each padded to .* Give fewer texts"):
        run(story_bert, ["a cat sat " * 10] * 3)


@pytest.mark.parametrize("name", ["recurrent-en-es-luong", "vit-cifar10"])
def test_models_of_one_input_say_so(name: str) -> None:
    if name == "recurrent-en-es-luong":
        name = "recurrent-en-es-bahdanau"
    with pytest.raises(InputError, match="takes one input at a time"):
        run(open_checkpoint(name), ["a cat", "a dog"])


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("side", SIDES)
def test_the_loss_is_that_of_the_text_without_its_padding(
    story_gpt: Model, side: PaddingSide, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kept:
        monkeypatch.setattr("attention_models.forward.logits.KEPT_BYTES", 1)
    traces = run(story_gpt, TEXTS, padding=side)
    for trace, text in zip(traces, TEXTS, strict=True):
        ids = story_gpt.encode(text).inputs["input_ids"]
        with torch.no_grad():  # the labels as a training loop gives them
            logits = torch.from_numpy(trace.logits)[[i for i, token in enumerate(trace.tokens) if not token.padding]]
        expected = torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:])
        assert loss(story_gpt, trace) == pytest.approx(float(expected), abs=1e-5)
