"""Models handed over as objects: what is seen of them is what they compute, and they come back as they were."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from transformers import GPT2LMHeadModel

from attention_models import adopt, attend, decode, open_checkpoint, run
from attention_models.attention import attention
from attention_models.engine.engine import Engine
from attention_models.forward import adopted
from attention_models.protocol import values
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.cell import CellRequest, CellView
from attention_models.protocol.decoding import into_input
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.head import HeadRequest
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.positions import PositionsRequest, PositionsView, ShuffleRequest
from attention_models.protocol.prediction import PredictionRequest
from attention_models.protocol.request import Failure
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.protocol.values import Placement, SiteRef, site_tokens
from attention_models.trust import layers as trust_layers
from attention_models.trust.check import compare_with_eager
from tests.models.asking import ask, failure_of
from tests.models.own_modules import (
    CHARACTERS,
    CONTEXT,
    HEADS,
    VOCABULARY,
    WIDTH,
    Asked,
    Attention,
    Blind,
    Both,
    PaddedReader,
    Reader,
    Writer,
    causal_weights,
)

TEXT = "Tom went to the park."
SITE = SiteRef("decoder", 1)
SDPA = F.scaled_dot_product_attention
MULTI_HEAD = F.multi_head_attention_forward


def ids_of(text: str) -> torch.Tensor:
    return torch.tensor([CHARACTERS[0](text)])


@pytest.mark.parametrize("how", ["sdpa", "attend"])
def test_weights_and_logits_are_the_modules_own(how):
    module = Writer(how)
    model = adopt(module, CHARACTERS, context=CONTEXT)
    trace = run(model, TEXT)
    assert [(site.stack, site.layer, site.heads, site.causal) for site in trace.sites] == [
        ("decoder", 0, HEADS, True),
        ("decoder", 1, HEADS, True),
    ]
    assert len(trace.residual["decoder"]) == 3
    reference = Writer("own").double().eval()  # neither torch's attention nor ours
    reference.load_state_dict(module.state_dict())
    with torch.no_grad():
        logits = reference(ids_of(TEXT))[0][0].numpy()
        x = reference.wte(ids_of(TEXT)) + reference.wpe(torch.arange(len(TEXT)))
        for layer, block in enumerate(reference.blocks):
            assert isinstance(block, nn.Sequential)
            norm, attention = block[0], block[1]
            assert isinstance(attention, Attention)
            q, k, _ = (t.view(1, len(TEXT), HEADS, -1).transpose(1, 2) for t in attention.qkv(norm(x)).split(WIDTH, -1))
            for head in range(HEADS):
                ours = trace.weights(layer, head)
                np.testing.assert_allclose(ours, causal_weights(q, k)[0, head].numpy(), atol=1e-6)
            x = x + block(x)
    np.testing.assert_allclose(trace.logits, logits, atol=1e-5)


def test_torchs_encoder_is_seen_and_computes_the_same():
    module = Reader()
    model = adopt(module, CHARACTERS, family="encoder")
    trace = run(model, TEXT)
    assert [(site.stack, site.layer, site.heads, site.causal) for site in trace.sites] == [
        ("encoder", 0, HEADS, False),
        ("encoder", 1, HEADS, False),
    ]
    layer = module.encoder.layers[0]
    with torch.no_grad():
        x = module.tokens(ids_of(TEXT))
        _, weights = layer.self_attn(x, x, x, need_weights=True, average_attn_weights=False)  # by torch, not by SDPA
    for head in range(HEADS):
        np.testing.assert_allclose(trace.weights(0, head), weights[0, head].numpy(), atol=1e-6)


def test_the_module_comes_back_as_it_was():
    module = Writer().train()
    module.blocks[0].eval()
    module.head.weight.requires_grad_(False)
    modes = [child.training for child in module.modules()]
    model = adopt(module, CHARACTERS)
    assert not any(child.training for child in module.modules())
    assert [p.requires_grad for p in module.parameters()].count(False) == 1
    model.release()
    assert [child.training for child in module.modules()] == modes
    assert F.scaled_dot_product_attention is SDPA
    hooks = [len(child._forward_hooks) + len(child._forward_pre_hooks) for child in module.modules()]
    assert sum(hooks) == 0
    loss = module(ids_of(TEXT))[0].square().mean()
    loss.backward()
    assert module.wte.weight.grad is not None


def test_handed_over_twice_nothing_is_kept_twice():
    module = Writer()
    adopt(module, CHARACTERS).release()
    trace = run(adopt(module, CHARACTERS), TEXT)
    assert len(trace.residual["decoder"]) == 3
    assert len(trace.sites) == 2


def test_a_model_of_transformers_is_borrowed_too():
    shipped = open_checkpoint("story-gpt")
    module: Any = GPT2LMHeadModel.from_pretrained(shipped.info.folder, attn_implementation="sdpa", dtype=torch.float32)
    module.train()
    model = adopt(module, shipped.tokenizer, name="mine")
    assert (model.info.name, model.info.reference, model.info.family) == ("mine", "python:mine", "causal")
    ours, theirs = run(model, [1, 20, 300, 7]), run(shipped, [1, 20, 300, 7])
    np.testing.assert_array_equal(ours.logits, theirs.logits)
    np.testing.assert_array_equal(ours.weights(5, 5), theirs.weights(5, 5))
    model.release()
    assert module.config._attn_implementation == "sdpa"
    assert module.training


def test_while_it_runs_other_threads_have_torchs_attention():
    q = torch.randn(1, 2, 5, 8)
    seen: list[bool] = []

    def look() -> None:
        seen.append(torch.equal(F.scaled_dot_product_attention(q, q, q), SDPA(q, q, q)))

    class Curious(Writer):
        def forward(self, ids, targets=None):
            other = threading.Thread(target=look)
            other.start()
            other.join()
            return super().forward(ids, targets)

    trace = run(adopt(Curious(), CHARACTERS), TEXT)
    assert all(seen)
    assert len(trace.sites) == 2


def test_a_module_that_fails_leaves_torchs_attention():
    class Failing(Writer):
        fails = False

        def forward(self, ids, targets=None):
            out = super().forward(ids, targets)
            if self.fails:
                raise RuntimeError("boom")
            return out

    module = Failing()
    model = adopt(module, CHARACTERS)
    module.fails = True
    with pytest.raises(RuntimeError, match="boom"):
        run(model, TEXT)
    assert F.scaled_dot_product_attention is SDPA
    module.fails = False
    assert len(run(model, TEXT).sites) == 2


def test_writing_equals_the_argmax_of_the_module():
    module = Writer()
    *_, last = decode(adopt(module, CHARACTERS, context=CONTEXT), "Tom", steps=6)
    ids = ids_of("Tom")
    with torch.no_grad():
        for _ in range(6):
            ids = torch.cat([ids, module(ids)[0][:, -1:].argmax(-1)], dim=1)
    assert last.ids == tuple(ids[0, 3:].tolist())


def test_logits_of_the_last_token_alone_are_not_enough():
    module = Writer(last_only=True)
    with pytest.raises(CheckpointError, match=r"the logits of 1 of 4 tokens.*lambda ids: model\(ids, ids\)\[0\]"):
        adopt(module, CHARACTERS)
    model = adopt(module, CHARACTERS, forward=lambda ids: module(ids, ids)[0])
    np.testing.assert_allclose(run(model, TEXT).logits, run(adopt(Writer(), CHARACTERS), TEXT).logits, atol=1e-6)


@pytest.mark.parametrize(
    ("module", "tokenizer", "options", "sentence"),
    [
        (Blind(), CHARACTERS, {}, "no attention was seen in it.*attend\\(self, q, k, v\\)"),
        (Writer("own"), CHARACTERS, {}, "no attention was seen"),
        (nn.Linear(3, 3), CHARACTERS, {}, r"no nn.Embedding.*vocabulary="),
        (nn.Linear(3, 3), CHARACTERS, {"vocabulary": 9}, "could not be run on ids"),
        (Reader(), CHARACTERS, {"forward": lambda ids: None}, "gave NoneType.*family='encoder'"),
        (Writer(), 3, {}, "A int is no tokenizer"),
        (object(), CHARACTERS, {}, "is no torch module"),
        (Writer(), CHARACTERS, {"family": "seq2seq"}, "“seq2seq” is none of causal, masked, encoder"),
    ],
)
def test_what_can_not_be_shown_is_refused(module, tokenizer, options, sentence):
    with pytest.raises(CheckpointError, match=sentence):
        adopt(module, tokenizer, **options)


@pytest.mark.parametrize("how", ["sdpa", "attend"])
@pytest.mark.parametrize(("tokens", "dtype"), [(600, torch.float32), (20, torch.bfloat16), (20, torch.float16)])
def test_torchs_fused_attention_is_not_answered_by_itself(how, tokens, dtype):
    module = Writer(how)
    module.wpe = nn.Embedding(600, WIDTH)
    model = adopt(module.to(dtype), CHARACTERS, context=600)
    trace = run(model, (TEXT * 40)[:tokens])
    reference = Writer("own")
    reference.wpe = nn.Embedding(600, WIDTH)
    reference.load_state_dict(module.state_dict())
    reference.double().eval()
    with torch.no_grad():
        logits = reference(ids_of((TEXT * 40)[:tokens]))[0][0].numpy()
    close = {torch.float32: 1e-5, torch.bfloat16: 8e-2, torch.float16: 1e-2}[dtype]
    np.testing.assert_allclose(trace.logits, logits, atol=close)


@pytest.mark.parametrize("id_", [VOCABULARY, 10**9, -1])
def test_a_token_that_the_module_does_not_know_gets_a_sentence(id_):
    model = adopt(Writer(), (lambda text: [1, id_], str))
    with pytest.raises(InputError, match=rf"Writer knows 128 tokens, and {id_:,} is none of them. Give the tokenizer"):
        run(model, TEXT)


def test_a_tokenizer_that_lacks_a_character_gets_a_sentence():
    ids = {character: i for i, character in enumerate("abc")}
    model = adopt(Writer(), (lambda text: [ids[c] for c in text], lambda given: "".join("abc"[i] for i in given)))
    assert len(run(model, "cab").tokens) == 3
    with pytest.raises(
        InputError,
        match=r"^The tokenizer's encode failed on this text: there is no 'ñ'. Leave out what it does not know",
    ):
        run(model, "año")


def test_a_decode_that_fails_gets_a_sentence():
    model = adopt(Writer(), (lambda text: [7, 8, 9, 10], lambda ids: {}[ids[0]]))
    with pytest.raises(InputError, match=r"decode failed on the ids 7, 8, 9, …: there is no 7. Give one"):
        run(model, TEXT)


def test_interventions_act_on_it():
    model = adopt(Writer(), CHARACTERS)
    plain, edited = run(model, TEXT), run(model, TEXT, interventions=[Scale(0.0), Mask("window", window=2)])
    np.testing.assert_allclose(edited.weights(0, 0)[5, 4:6], [0.5, 0.5], atol=1e-7)
    assert np.abs(plain.logits - edited.logits).max() > 1e-3


def test_every_panel_is_answered():
    engine = Engine([adopt(Writer(), CHARACTERS, name="mine", context=CONTEXT)])
    loaded = ask(engine, LoadRequest(ticket=1, reference="python:mine", placement=Placement("cpu", "float16")))
    assert isinstance(loaded, Loaded)
    assert (loaded.info.borrowed, loaded.dtype, loaded.info.vocabulary) == (True, "float32", VOCABULARY)
    ask(engine, ForwardRequest(inputs=RunInputs(TEXT), ticket=2))
    for request in (
        HeadRequest(run=2, site=SITE, head=0),
        AtlasRequest(run=2, size=8),
        PredictionRequest(run=2, positions=(3,)),
        PositionsRequest(run=2, site=SITE, head=0, query=4, key=2),
        ShuffleRequest(run=2),
        into_input(RunInputs(TEXT)),
    ):
        answer = ask(engine, request)
        assert not isinstance(answer, Failure), answer
    positions = ask(engine, PositionsRequest(run=2, site=SITE, head=0, query=4, key=2))
    assert isinstance(positions, PositionsView)
    assert positions.scheme.kind == "learned"  # by nanoGPT's name for the table
    assert positions.position is not None
    np.testing.assert_array_equal(positions.position, Writer().wpe.weight[4].detach().numpy())
    cell = ask(engine, CellRequest(run=2, site=SITE, head=0, query=4, key=2))
    assert isinstance(cell, CellView)
    assert cell.weight == pytest.approx(float(cell.row_weights[2]))
    report = ask(engine, TrustRequest(run=2))
    assert isinstance(report, TrustReport)
    assert report.holds
    assert 0 < report.weight_difference < 1e-6
    assert "torch's own attention" in report.against


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("made", [Writer, Reader])
def test_it_is_held_against_itself_in_every_format(made, dtype):
    model = adopt(made().to(dtype), CHARACTERS, family="encoder" if made is Reader else "causal", context=CONTEXT)
    found = compare_with_eager(model, model.encode(TEXT), run(model, TEXT))
    assert found.tolerance == 1e-5
    assert 0 < found.weight_difference < 1e-6
    assert found.logit_difference <= found.logit_tolerance


def test_some_rows_of_a_long_text_are_held_against_torch(monkeypatch):
    model = adopt(Writer(), CHARACTERS, context=CONTEXT)
    trace = run(model, TEXT)
    monkeypatch.setattr(values, "LARGEST_WHOLE", 1)
    monkeypatch.setattr(trust_layers, "ROWS", 3)
    found = compare_with_eager(model, model.encode(TEXT), trace)
    assert found.rows == 3
    assert 0 < found.weight_difference < 1e-6
    right = attention.weights
    monkeypatch.setattr(attention, "weights", lambda *args, **options: right(*args, **options) * 1.001)
    assert compare_with_eager(model, model.encode(TEXT), trace).weight_difference > 1e-4


class Masked(nn.Module):
    """Hands torch's attention a mask of queries and keys alone."""

    def __init__(self, ahead: int):
        super().__init__()
        self.ahead = ahead
        self.embedding, self.head = nn.Embedding(VOCABULARY, 16), nn.Linear(16, VOCABULARY)

    def forward(self, ids):
        x = self.embedding(ids).view(1, -1, 2, 8).transpose(1, 2)
        past = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril(self.ahead)
        y = F.scaled_dot_product_attention(x, x, x, attn_mask=past)
        return self.head(y.transpose(1, 2).flatten(2))


LATER = torch.ones(len(TEXT), len(TEXT), dtype=torch.bool).triu(1)
ADDED = torch.linspace(-2, 2, len(TEXT) ** 2).view(len(TEXT), -1)
END = torch.arange(len(TEXT))[None] > len(TEXT) - 4
NEAR = torch.stack([LATER.T & (torch.randn(LATER.shape) > 0) for _ in range(HEADS)])

CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "batch first": ({"batch_first": True}, {}),
    "each head": ({"batch_first": True}, {"average_attn_weights": False}),
    "no weights": ({"batch_first": True}, {"need_weights": False}),
    "key padding": ({"batch_first": True}, {"key_padding_mask": END}),
    "padding added": ({}, {"key_padding_mask": END.float() * -3}),
    "bool mask": ({}, {"attn_mask": LATER}),
    "bool mask, no weights": ({}, {"attn_mask": LATER, "need_weights": False}),
    "mask of each head": ({"batch_first": True}, {"attn_mask": NEAR}),
    "float mask": ({}, {"attn_mask": ADDED, "average_attn_weights": False}),
    "float mask and padding": ({}, {"attn_mask": ADDED, "key_padding_mask": END.float() * -3}),
    "causal": ({"batch_first": True}, {"attn_mask": LATER, "is_causal": True}),
    "causal, no weights": ({"batch_first": True}, {"attn_mask": LATER, "is_causal": True, "need_weights": False}),
    "other widths": ({"kdim": 12, "vdim": 20}, {}),
    "bias of k and v": ({"add_bias_kv": True}, {"attn_mask": LATER}),
    "zero attention": ({"add_zero_attn": True, "batch_first": True}, {"average_attn_weights": False}),
    "without bias": ({"bias": False, "batch_first": True}, {}),
    "one text": ({}, {"unbatched": True}),
    "one text, each head": ({}, {"unbatched": True, "average_attn_weights": False}),
}


@pytest.mark.parametrize("name", CALLS)
def test_multihead_attention_however_it_is_called(name):
    made, options = CALLS[name]
    module = Asked(made, lambda ids: fitted(options, ids.shape[1]))
    exact = Asked(made, lambda ids: {**fitted(options, ids.shape[1], torch.float64), **EACH}).double().eval()
    exact.load_state_dict(module.state_dict())
    with torch.no_grad():
        module.eval()(ids_of(TEXT))
        own = module.given
        logits = exact(ids_of(TEXT))[0].numpy()
    assert exact.given is not None
    weights = exact.given.reshape(HEADS, len(TEXT), -1).numpy()
    model = adopt(module, CHARACTERS, context=CONTEXT)
    trace = run(model, TEXT)
    (site,) = trace.sites
    assert (site.heads, site.keys) == (HEADS, weights.shape[2])
    for head in range(HEADS):
        np.testing.assert_allclose(trace.weights(0, head), weights[head], atol=1e-6)
    np.testing.assert_allclose(trace.logits, logits, atol=1e-5)
    if own is None:
        assert module.given is None
    else:
        torch.testing.assert_close(module.given, own, atol=1e-6, rtol=0)
    found = compare_with_eager(model, model.encode(TEXT), trace)
    assert max(found.weight_difference, found.logit_difference) < found.tolerance
    assert torch.nn.functional.multi_head_attention_forward is MULTI_HEAD
    edited = run(model, TEXT, interventions=[Scale(0.0)])
    assert edited.weights(0, 0)[-1].std() < weights[0, -1].std()


def test_a_key_that_is_no_token_has_a_name():
    engine = Engine([adopt(Asked({"add_bias_kv": True}, lambda _: {}), CHARACTERS, name="mine", context=CONTEXT)])
    ask(engine, LoadRequest(ticket=1, reference="python:mine"))
    ran = ask(engine, ForwardRequest(inputs=RunInputs(TEXT), ticket=2))
    assert isinstance(ran, Ran)
    queries, keys = site_tokens(ran, ran.sites[0])
    assert [len(queries), len(keys)] == [len(TEXT), len(TEXT) + 1] == [ran.sites[0].queries, ran.sites[0].keys]
    site, key = ran.sites[0].ref, len(TEXT)
    assert keys[key].word == "⟨added⟩"
    view = ask(engine, PositionsRequest(run=2, site=site, head=0, query=3, key=key))
    assert isinstance(view, PositionsView)
    assert view.key_word == "⟨added⟩"


EACH = {"need_weights": True, "average_attn_weights": False, "is_causal": False}


def fitted(options: dict[str, Any], tokens: int, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """The options, with masks for so many tokens."""
    cut = {}
    for name, value in options.items():
        if isinstance(value, torch.Tensor):
            value = value[..., :tokens] if name == "key_padding_mask" else value[..., :tokens, :tokens]
            value = value if value.dtype == torch.bool else value.to(dtype)
        cut[name] = value
    return cut


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # torch says so of norm_first
@pytest.mark.parametrize("norm_first", [False, True])
def test_a_whole_transformer_has_three_stacks(norm_first):
    module = Both(norm_first)
    exact = Both(norm_first).double().eval()
    exact.load_state_dict(module.state_dict())
    taken: list[np.ndarray] = []
    own = F.multi_head_attention_forward

    def with_weights(*args: Any, **options: Any) -> Any:
        out, weights = own(*args, **{**options, **EACH})
        assert weights is not None
        taken.append(weights[0].numpy())
        return out, weights

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        patch.setattr(F, "multi_head_attention_forward", with_weights)
        logits = exact(ids_of(TEXT))[0].numpy()
        torch.backends.mha.set_fastpath_enabled(fast)
    model = adopt(module, CHARACTERS, context=CONTEXT)
    trace = run(model, TEXT)
    assert [site.ref for site in trace.sites] == [
        *(SiteRef("encoder", layer) for layer in range(2)),
        *(SiteRef(stack, layer) for layer in range(2) for stack in ("decoder", "cross")),
    ]
    for place, weights in enumerate(taken):
        for head in range(HEADS):
            np.testing.assert_allclose(trace.weights(place, head), weights[head], atol=1e-6)
    np.testing.assert_allclose(trace.logits, logits, atol=1e-5)
    assert {stack: len(stream) for stack, stream in trace.residual.items()} == {"encoder": 3, "decoder": 3}
    found = compare_with_eager(model, model.encode(TEXT), trace)
    assert max(found.weight_difference, found.logit_difference) < found.tolerance


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("norm", [False, True])
def test_the_fast_path_puts_zeros_in_the_padded_places(norm):
    """As torch's own encoder does in eval mode; weights of what is no padding are those of the slow path."""
    module = PaddedReader(norm).eval()
    ids = [*CHARACTERS[0](TEXT), 0, 0, 0]
    with torch.no_grad():
        own = module(torch.tensor([ids]))[0].numpy()
    model = adopt(module, CHARACTERS, family="masked", context=CONTEXT)
    trace = run(model, ids)
    np.testing.assert_allclose(trace.logits, own, atol=1e-5)
    np.testing.assert_allclose(trace.logits[-1], trace.logits[-2], atol=1e-6)
    found = compare_with_eager(model, model.encode(ids), trace)
    assert max(found.weight_difference, found.logit_difference) < found.tolerance


@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("cells", [1 << 22, 1])
def test_a_mask_of_queries_and_keys_alone(ahead, cells, monkeypatch):
    monkeypatch.setattr(adopted, "_CELLS", cells)  # looked at as a whole, and row by row
    module = Masked(ahead)
    model = adopt(module, CHARACTERS)
    trace = run(model, TEXT)
    assert trace.sites[0].stack == ("encoder" if ahead else "decoder")
    x = module.embedding(ids_of(TEXT)).view(-1, 2, 8).transpose(0, 1)
    scores = (x @ x.mT * 8**-0.5).masked_fill(
        ~torch.ones(len(TEXT), len(TEXT), dtype=torch.bool).tril(ahead), -torch.inf
    )
    for head in range(2):
        np.testing.assert_allclose(trace.weights(0, head), scores.softmax(-1)[head].detach().numpy(), atol=1e-6)


def test_a_wrong_weight_is_found(monkeypatch):
    engine = Engine([adopt(Writer(), CHARACTERS, name="mine")])
    ask(engine, LoadRequest(ticket=1, reference="python:mine"))
    ask(engine, ForwardRequest(inputs=RunInputs(TEXT), ticket=2))
    right = attention.weights
    monkeypatch.setattr(attention, "weights", lambda *args, **options: right(*args, **options) * 1.001)
    report = ask(engine, TrustRequest(run=2))
    assert isinstance(report, TrustReport)
    assert not report.holds


def test_a_session_that_names_an_object_of_another_program_is_told_so():
    assert "Call ax.open there again" in failure_of(Engine(), LoadRequest(reference="python:mine")).sentence


@pytest.mark.parametrize("mask", [None, "bool", "added"])
@pytest.mark.parametrize("causal", [False, True])
def test_attend_is_torchs_attention(mask, causal):
    q, k, v = torch.randn(3, 2, 4, 6, 8).unbind()
    allowed = torch.rand(6, 6) > 0.3
    allowed |= torch.eye(6, dtype=torch.bool)
    given = None if mask is None else allowed if mask == "bool" else torch.zeros(6, 6).masked_fill(~allowed, -torch.inf)
    both = allowed if mask is not None else torch.ones(6, 6, dtype=torch.bool)
    both = both & torch.ones(6, 6, dtype=torch.bool).tril() if causal else both
    ours = attend(nn.Identity(), q, k, v, causal=causal, mask=given)
    torch.testing.assert_close(ours, SDPA(q, k, v, attn_mask=both), atol=1e-6, rtol=0)


def test_it_is_said_to_lie_where_it_does_whatever_is_asked_for():
    model = adopt(Writer(), CHARACTERS, name="mine", context=CONTEXT)
    engine = Engine([model])
    loaded = ask(engine, LoadRequest(reference=model.info.reference, placement=Placement("auto", "bfloat16")))
    assert isinstance(loaded, Loaded)
    assert (loaded.device, loaded.dtype) == ("CPU", "float32")
    assert loaded.placement == Placement("cpu", "float32")
