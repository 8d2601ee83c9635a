"""What is read out of loaded models, against their own tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from attention_models import open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.interventions import Positions
from attention_models.protocol.positions import PositionsRequest, PositionsView
from attention_models.views.positions import describe_positions, positions_view
from tests.models import textbook_folders, tiny

TEXT = "Tom and Anna went to the park."
SCALINGS = {
    "default": {"rope_type": "default", "rope_theta": 500.0},
    "linear": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10_000.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10_000.0, "original_max_position_embeddings": 16},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
        "rope_theta": 10_000.0,
    },
}


def view_of(model: Model, trace: Trace, stack: str, query: int, key: int, head: int = 1) -> PositionsView:
    site = next(site for site in reversed(trace.sites) if site.stack == stack)
    request = PositionsRequest(run=1, site=site.ref, head=head, query=query, key=key)
    return positions_view(request, model, trace)


# --------------------------------------------------------------------------- tables


@pytest.mark.parametrize(
    ("name", "weight"),
    [("story_gpt", "transformer.wpe.weight"), ("story_bert", "bert.embeddings.position_embeddings.weight")],
)
def test_a_learned_table_is_that_of_the_state_dict(request, name, weight):
    model = request.getfixturevalue(name)
    scheme = describe_positions(model)
    expected = model.module.state_dict()[weight].numpy()
    assert scheme.kind == "learned"
    assert scheme.table is not None
    assert np.array_equal(scheme.table, expected)
    rows = expected.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    assert scheme.alike == pytest.approx(rows @ rows.T / lengths[:, None] / lengths, abs=1e-6)
    assert f"{len(expected)} vectors" in scheme.words


def test_a_table_that_begins_after_the_padding(tiny_model):
    model = tiny_model("roberta")
    scheme = describe_positions(model)
    weight = model.module.roberta.embeddings.position_embeddings.weight.numpy()
    assert scheme.table is not None
    assert np.array_equal(scheme.table, weight[2:])


def test_marians_sinusoids_are_recognised(en_es):
    scheme = describe_positions(en_es)
    assert scheme.kind == "sinusoidal"
    assert "all sines in the first half" in scheme.words
    assert "cannot be shifted" in scheme.shift_note
    assert scheme.off_note == ""


def test_a_large_table_is_compared_at_every_second_position(tmp_path):
    kind = tiny.KINDS["gpt2"]
    config = transformers.GPT2Config(vocab_size=400, **{**kind.settings, "n_positions": 700})
    module = transformers.GPT2LMHeadModel(config)
    module.save_pretrained(tmp_path)
    kind.tokenizer().save_pretrained(tmp_path)
    scheme = describe_positions(open_checkpoint(tmp_path))
    assert scheme.step == 2
    assert scheme.alike is not None
    assert scheme.alike.shape == (350, 350)


@pytest.mark.parametrize("name", ["story_gpt", "en_es"])
def test_embedding_and_position_make_what_enters_the_first_layer(request, name):
    model = request.getfixturevalue(name)
    trace = run(model, TEXT)
    stack = trace.sites[0].stack
    for query in (0, 3):
        view = view_of(model, trace, stack, query, 0)
        assert view.embedding is not None
        assert view.position is not None
        entered = trace.residual[stack][0][query].numpy()
        assert view.total is not None
        assert np.array_equal(view.total, entered)
        assert view.embedding + view.position == pytest.approx(entered, abs=1e-6)


@pytest.mark.parametrize("positions", ["sinusoidal", "appended", "concatenated"])
@pytest.mark.parametrize("scaled_embedding", [True, False])
def test_a_textbook_models_two_summands_make_what_enters(tmp_path, positions, scaled_embedding):
    switches = {"shape": "decoder", "positions": positions, "scaled_embedding": scaled_embedding}
    model = open_checkpoint(textbook_folders.write_folder(tmp_path, **switches))
    trace = run(model, textbook_folders.TEXT)
    view = view_of(model, trace, "decoder", 3, 0)
    assert view.embedding is not None
    assert view.position is not None
    entered = trace.residual["decoder"][0][3].numpy()
    assert view.embedding + view.position == pytest.approx(entered, abs=1e-6)
    assert np.abs(view.position).max() > 0.1
    assert ("concatenated" in view.sum_note) == (positions != "sinusoidal")
    if positions == "appended":
        assert not view.embedding[16:].any()
        assert not view.position[:16].any()


def test_bert_says_what_else_is_added(story_bert):
    view = view_of(story_bert, run(story_bert, TEXT), "encoder", 2, 1)
    assert view.sum_note == "Before the first layer a token-type vector is added and the sum is normalised as well."
    embeddings = story_bert.module.bert.embeddings
    with torch.no_grad():
        entered = embeddings.LayerNorm(torch.tensor(view.total) + embeddings.token_type_embeddings.weight[0])
    trace = run(story_bert, TEXT)
    assert entered.numpy() == pytest.approx(trace.residual["encoder"][0][2].numpy(), abs=1e-5)


def test_the_sum_follows_interventions(story_gpt):
    table = describe_positions(story_gpt).table
    assert table is not None
    shifted = view_of(story_gpt, run(story_gpt, TEXT, interventions=[Positions("shift", 20)]), "decoder", 3, 0)
    off = view_of(story_gpt, run(story_gpt, TEXT, interventions=[Positions("off")]), "decoder", 3, 0)
    assert shifted.position is not None
    assert np.array_equal(shifted.position, table[23])
    assert off.position is not None
    assert not off.position.any()


# --------------------------------------------------------------------------- rotations


def scaled_llama(tmp_path, scaling: str) -> Model:
    kind = tiny.KINDS["llama"]
    tokenizer = kind.tokenizer()
    settings = {**kind.settings, "max_position_embeddings": 16, "rope_parameters": SCALINGS[scaling]}
    torch.manual_seed(0)
    module = transformers.LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **settings))
    module.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return open_checkpoint(tmp_path)


@pytest.mark.parametrize("scaling", list(SCALINGS))
def test_frequencies_are_those_of_the_rotary_module(tmp_path, scaling):
    model = scaled_llama(tmp_path, scaling)
    text = tiny.text_of(model, 14)
    trace = run(model, text)
    view = view_of(model, trace, "decoder", 12, 3)
    rotary = LlamaRotaryEmbedding(model.config)
    rotary(torch.zeros(1), torch.arange(len(trace.tokens))[None])
    assert view.scheme.kind == "rope"
    assert view.scheme.frequencies == pytest.approx(rotary.inv_freq.numpy(), abs=1e-6)
    assert view.scheme.gain == pytest.approx(rotary.attention_scaling, abs=1e-6)
    assert ("Scaling" in view.scheme.words) == (scaling != "default")
    assert f"Base {SCALINGS[scaling]['rope_theta']:,.0f}." in view.scheme.words


@pytest.mark.parametrize("scaling", list(SCALINGS))
@pytest.mark.parametrize(("query", "key"), [(12, 3), (5, 5)])
def test_the_product_by_distance_passes_through_the_score(tmp_path, scaling, query, key):
    model = scaled_llama(tmp_path, scaling)
    trace = run(model, tiny.text_of(model, 14))
    view = view_of(model, trace, "decoder", query, key)
    rotation = view.rotation
    assert rotation is not None
    assert rotation.distance == query - key
    at = rotation.products[rotation.distances.tolist().index(query - key)]
    score = trace.scores(view.request.site, 1, [query])[0, key] / trace.inputs[-1].scale
    assert at == pytest.approx(score, abs=1e-4)
    assert rotation.product == pytest.approx(score, abs=1e-4)
    assert rotation.parts.sum() + rotation.untouched == pytest.approx(score, abs=1e-4)


def test_other_distances_are_what_transformers_rotates_to(tmp_path):
    """Turn q and k back, put the key at 0 and the query at each distance with transformers' own function."""
    model = scaled_llama(tmp_path, "yarn")
    trace = run(model, tiny.text_of(model, 14))
    rotation = view_of(model, trace, "decoder", 12, 3).rotation
    assert rotation is not None
    half_q, half_k = (
        hands * np.exp(-1j * angles)
        for hands, angles in (
            (rotation.query_hands, rotation.query_angles),
            (rotation.key_hands, rotation.key_angles),
        )
    )
    q, k = (torch.tensor(np.concatenate([h.real, h.imag])) for h in (half_q, half_k))
    inverse = torch.tensor(view_of(model, trace, "decoder", 12, 3).scheme.frequencies).double()
    for apart in (0, 1, 30):
        places = torch.tensor([[0.0, apart]]).double()[..., None] * inverse  # (1, 2, pairs)
        cos, sin = (torch.cat([f(places)] * 2, dim=-1) for f in (torch.cos, torch.sin))
        turned_q, turned_k = apply_rotary_pos_emb(q.expand(1, 1, 2, -1), k.expand(1, 1, 2, -1), cos, sin)
        expected = float((turned_q[0, 0, 1] * turned_k[0, 0, 0]).sum())
        assert rotation.products[apart] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("edit", [Positions("off"), Positions("shift", 9)])
def test_hands_follow_interventions(tiny_model, edit):
    model = tiny_model("llama")
    trace = run(model, TEXT, interventions=[edit])
    rotation = view_of(model, trace, "decoder", 5, 2).rotation
    assert rotation is not None
    assert rotation.distance == (0 if edit.mode == "off" else 3)
    assert rotation.query_angles[0] == pytest.approx(0.0 if edit.mode == "off" else 14.0)
    here = rotation.distances.tolist().index(rotation.distance)
    assert rotation.products[here] == pytest.approx(rotation.product, abs=1e-4)


@pytest.mark.parametrize("kind", ["gemma2", "gpt_oss"])
def test_other_families_rotate_too(tiny_model, kind):
    model = tiny_model(kind)
    view = view_of(model, run(model, TEXT), "decoder", 6, 2)
    assert view.rotation is not None
    here = view.rotation.distances.tolist().index(4)
    assert view.rotation.products[here] == pytest.approx(view.rotation.product, abs=1e-4)
    assert view.total is None
    assert "at each layer" in view.sum_note


def test_one_token_can_be_looked_at(tiny_model):
    model = tiny_model("llama")
    trace = run(model, [5])
    view = view_of(model, trace, "decoder", 0, 0)
    assert view.rotation is not None
    assert view.rotation.products[0] == pytest.approx(view.rotation.product, abs=1e-5)


def test_neighbours_that_turn_together_are_recognised(tmp_path):
    """Cohere turns dimensions 2i and 2i + 1 together, where Llama turns i and i + half."""
    tokenizer = tiny.KINDS["llama"].tokenizer()
    config = transformers.CohereConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, pad_token_id=0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.CohereForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = open_checkpoint(tmp_path)
    view = view_of(model, run(model, TEXT), "decoder", 6, 2)
    assert view.rotation is not None
    q = run(model, TEXT).inputs[-1].query[0, 1, 6].numpy()
    assert view.rotation.query_hands == pytest.approx(q[0::2] + 1j * q[1::2], abs=1e-6)


def test_a_part_of_the_dimensions_can_turn(tmp_path):
    tokenizer = tiny.KINDS["llama"].tokenizer()
    config = transformers.GPTNeoXConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, bos_token_id=0, eos_token_id=0,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.25},
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.GPTNeoXForCausalLM(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = open_checkpoint(tmp_path)
    view = view_of(model, run(model, TEXT), "decoder", 6, 2)
    assert "4 of 16 dimensions" in view.scheme.words
    rotation = view.rotation
    assert rotation is not None
    assert len(rotation.query_hands) == 2
    assert rotation.untouched != 0
    assert rotation.products[4] == pytest.approx(rotation.product, abs=1e-5)


# --------------------------------------------------------------------------- biases


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_bias_by_distance_is_t5s(tiny_model, stack):
    model = tiny_model("t5")
    trace = run(model, TEXT, target="Tom and Anna")
    site = next(site for site in reversed(trace.sites) if site.stack == stack)
    scheme = describe_positions(model, site)
    assert scheme.kind == "t5"
    assert scheme.bias is not None
    assert scheme.distances is not None
    first = getattr(model.module, stack).block[0].layer[0].SelfAttention
    with torch.no_grad():
        theirs = first.compute_bias(150, 150)[0].numpy()  # (heads, queries, keys)
    for apart in (-149, -60, -9, -1, 0, 1, 9, 60, 149) if stack == "encoder" else (-149, -60, -9, -1, 0):
        query = 149 if apart < 0 else 0
        at = scheme.distances.tolist().index(apart)
        assert scheme.bias[:, at] == pytest.approx(theirs[:, query, query + apart], abs=1e-6)
    assert "distances only" in scheme.shift_note


def test_cross_attention_of_t5_has_none(tiny_model):
    model = tiny_model("t5")
    trace = run(model, TEXT)
    view = view_of(model, trace, "cross", 0, 2)
    assert view.scheme.kind == "none"
    assert "Cross-attention" in view.scheme.words
    assert view.key_word == trace.source[2].word


def test_slopes_are_read_from_the_config(tiny_folder):
    """Bloom's attention cannot be looked into, so it does not open; its scheme is known all the same."""
    module = transformers.BloomForCausalLM.from_pretrained(tiny_folder("bloom"))
    tokenizer = tiny.KINDS["bloom"].tokenizer()
    info = open_checkpoint("story-gpt").info
    scheme = describe_positions(Model(info, module, tokenizer))
    assert scheme.kind == "alibi"
    assert scheme.bias is not None
    slopes = module.transformer.build_alibi_tensor(torch.ones(1, 161, dtype=torch.long), 4, torch.float32)[:, 0]
    assert scheme.bias == pytest.approx((slopes - slopes[:, -1:]).numpy(), abs=1e-4)
    assert scheme.off_note


def test_a_model_without_any_says_so(tiny_folder):
    class Bare(torch.nn.Module):
        config = transformers.PretrainedConfig()

    module = Bare()
    scheme = describe_positions(Model(open_checkpoint("story-gpt").info, module, tiny.byte_level()))
    assert scheme.kind == "none"
    assert "no positions that could be turned off" in scheme.off_note
    assert "no positions that could be shifted" in scheme.shift_note


def test_a_cell_that_is_not_there(story_gpt):
    trace = run(story_gpt, TEXT)
    with pytest.raises(IndexError, match="no cell"):
        view_of(story_gpt, trace, "decoder", 99, 0)


def test_results_are_read_only(story_gpt):
    view = view_of(story_gpt, run(story_gpt, TEXT), "decoder", 1, 0)
    for array in (view.total, view.scheme.table, view.scheme.alike, view.scheme.components):
        assert array is not None
        assert not array.flags.writeable
