"""Roles over texts: held against transformers' eager weights of one text at a time, summed in float64."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from attention_models import head_roles, open_checkpoint, run, which_heads
from attention_models.engine.engine import Engine
from attention_models.files.adapter_files import TENSORS
from attention_models.files.own_cache import cache_folder
from attention_models.protocol.errors import InputError
from attention_models.protocol.request import Cancelled
from attention_models.protocol.roles import PATTERNS, RELATIONS, ROLES, HeadQuestion, RolesRequest, RolesView
from attention_models.protocol.values import SiteRef
from attention_models.protocol.word_spans import Words
from attention_models.roles import finding
from attention_models.roles.copying import copying_score, value_weights
from attention_models.roles.counting import offset_of, offsets
from attention_models.roles.probe import Edge, Probe, ProbeText, our_probe
from attention_models.roles.roles_export import save_roles
from attention_models.textbook.tasks import date_pairs
from tests.models import lora, tiny
from tests.models.asking import ask, opened
from tests.models.eager import attentions
from tests.models.roles.test_which_heads import cells_by_hand

TEXTS = ("Tom and Anna went to the park.", "Anna gave the ball to Tom, and Tom gave it back.", "The dog is playing.")


def probe(*texts: str) -> Probe:
    return Probe("some texts", tuple(ProbeText(text) for text in texts))


@pytest.mark.parametrize("kind", ["gpt2", "bert", "gpt_neo"])
def test_a_mean_inputs_several_texts_is_the_mean_over_all_their_queries(tiny_model, kind):
    """Batches, padding and the order of the texts play no part."""
    model = tiny_model(kind)
    view = head_roles(model, probe(*TEXTS), cached=False)
    maps = [attentions(tiny.eager_run(model, text), model) for text in TEXTS]
    tokens = [model.tokenize(text) for text in TEXTS]
    causal = model.info.family == "causal"
    for place, ref in enumerate(view.sites):
        for head in range(maps[0][ref].shape[0]):
            for role in PATTERNS:
                if role.name == "next" and not causal:
                    continue
                sums, count = 0.0, 0
                for weights, of_text in zip(maps, tokens, strict=True):
                    w = weights[ref][head].astype(np.float64)
                    seen = (
                        w > 0
                        if kind == "gpt_neo"
                        else np.tril(np.ones(w.shape, bool))
                        if causal
                        else np.ones(w.shape, bool)
                    )
                    for i, cells in enumerate(cells_by_hand(role.name, of_text, of_text)):
                        keys = [j for j in cells if seen[i, j]]
                        if keys and seen[i].sum() > 1:
                            sums, count = sums + w[i, keys].sum(), count + 1
                score = view.scores[view.roles.index(role.name), place, head]
                assert score == pytest.approx(sums / count, abs=2e-6), (ref, head, role.name)
                assert view.counts[view.roles.index(role.name), place] == count


def test_breadth_and_distance_are_those_of_their_formulas(tiny_model):
    model = tiny_model("gpt2")
    view = head_roles(model, probe(*TEXTS), cached=False)
    maps = [attentions(tiny.eager_run(model, text), model) for text in TEXTS]
    for ref in view.sites:
        for head in range(4):
            shares, cells = [], []
            for weights in maps:
                w = weights[ref][head].astype(np.float64)
                for i in range(1, len(w)):
                    row = w[i, : i + 1]
                    shares.append(-(row * np.log2(row)).sum() / math.log2(i + 1))
                    cells += [(i - j, w[i, j]) for j in range(i + 1)]
            far, values = (np.array(column) for column in zip(*cells, strict=True))
            predicted = np.array([values[far == d].mean() for d in far])
            explained = 1 - ((values - predicted) ** 2).sum() / ((values - values.mean()) ** 2).sum()
            scores = view.of(ref, head)
            assert scores["breadth"] == pytest.approx(np.mean(shares), abs=1e-5)
            assert scores["positional"] == pytest.approx(explained, abs=1e-4)


def test_a_class_of_distance_says_its_distance():
    classes = offsets(slice(2, 4), slice(0, 6), torch.device("cpu"))
    assert [[offset_of(int(place)) for place in row] for row in classes] == [
        [2, 1, 0, -1, -2, -3],
        [3, 2, 1, 0, -1, -2],
    ]


def test_relations_are_followed_between_words_as_clark_merges_pieces(tiny_model):
    """A word of several pieces: to it the sum, from it the mean; every weight by hand."""
    model = tiny_model("bert")
    text, words = "The singing dog sat", ((0, 3), (4, 11), (12, 15), (16, 19))
    edges = (Edge("det", 0, 2), Edge("amod", 1, 2), Edge("nsubj", 2, 3))
    view = head_roles(model, Probe("one", (ProbeText(text, words=words, edges=edges),), has_edges=True), cached=False)
    tokens = model.tokenize(text)
    pieces = Words.of(tokens)
    assert len(pieces) < len(tokens)  # some word is split
    of_word = [pieces.tokens(word + 1) for word in range(4)]  # after [CLS]
    maps = attentions(tiny.eager_run(model, text), model)

    def between(w, source, target):
        return float(np.mean([w[q, list(of_word[target])].astype(np.float64).sum() for q in of_word[source]]))

    for ref in view.sites:
        for head in range(maps[ref].shape[0]):
            w, scores = maps[ref][head], view.of(ref, head)
            assert scores["amod-to-head"] == pytest.approx(between(w, 1, 2), abs=1e-6)
            assert scores["amod-to-dependent"] == pytest.approx(between(w, 2, 1), abs=1e-6)
            assert scores["nsubj-to-dependent"] == pytest.approx(between(w, 3, 2), abs=1e-6)
            assert scores["det-to-head"] == pytest.approx(between(w, 0, 2), abs=1e-6)
            assert math.isnan(scores["obj-to-head"])
    assert view.even[view.roles.index("det-to-head"), 0] == 1.0  # here it is always two words away


def test_a_causal_word_has_no_relation_to_one_that_comes_later(tiny_model):
    view = head_roles(tiny_model("gpt2"), cached=False)
    assert np.isnan(view.scores[view.roles.index("det-to-head")]).all()
    assert not np.isnan(view.scores[view.roles.index("det-to-dependent")]).any()


def test_our_sentences_are_trees_in_the_relations_that_are_measured():
    ours = our_probe()
    assert len(ours.texts) > 30
    found = {edge.relation for text in ours.texts for edge in text.edges}
    assert found == set(RELATIONS)
    for text in ours.texts:
        assert isinstance(text.prompt, str)
        for start, end in text.words:
            assert text.prompt[start:end].strip() == text.prompt[start:end] != ""
        plain = text.prompt.replace(" ", "")
        assert plain == "".join(text.prompt[start:end] for start, end in text.words)


# --------------------------------------------------------------------------- copying


def test_value_matrices_are_read_off_the_model(tiny_model, story_gpt):
    width = story_gpt.info.width
    trace = run(story_gpt, "Tom and Anna")
    read = value_weights(story_gpt, trace.sites, width)
    for layer, block in enumerate(story_gpt.module.transformer.h):
        theirs = block.attn.c_attn.weight[:, 2 * width :].double()
        torch.testing.assert_close(torch.cat(list(read[layer]), dim=1), theirs, atol=1e-6, rtol=0)
    llama = tiny_model("llama")  # fewer key heads than query heads
    trace = run(llama, "Tom and Anna")
    read = value_weights(llama, trace.sites, llama.info.width)
    for layer, block in enumerate(llama.module.model.layers):
        theirs = block.self_attn.v_proj.weight.double().mT
        torch.testing.assert_close(torch.cat(list(read[layer]), dim=1), theirs, atol=1e-6, rtol=0)


def test_copying_is_that_of_the_whole_matrix(tiny_folder):
    """The eigenvalues of (vocabulary, vocabulary) are those of the small matrix, and zeros; norms are folded."""
    model = open_checkpoint(tiny_folder("gpt2"))
    with torch.no_grad():
        for name, parameter in model.module.named_parameters():
            if ".ln_" in name and name.endswith("weight"):
                parameter.copy_(torch.linspace(0.2, 2.0, len(parameter)))
    view = head_roles(model, probe(*TEXTS), cached=False)
    module: Any = model.module
    width = model.info.width
    embedding = module.transformer.wte.weight.double()
    less_mean = torch.eye(width, dtype=torch.float64) - 1 / width
    unembedding = less_mean @ torch.diag(module.transformer.ln_f.weight.double()) @ module.lm_head.weight.double().mT
    unembedding = unembedding - unembedding.mean(dim=1, keepdim=True)
    size = width // 4
    for layer, block in enumerate(module.transformer.h):
        for head in range(4):
            part = slice(head * size, (head + 1) * size)
            w_v = block.attn.c_attn.weight[:, 2 * width :][:, part].double()
            whole = (
                embedding
                @ less_mean
                @ torch.diag(block.ln_1.weight.double())
                @ w_v
                @ block.attn.c_proj.weight[part].double()
                @ unembedding
            )
            eigenvalues = np.linalg.eigvals(whole.detach().numpy())
            expected = eigenvalues.sum().real / np.abs(eigenvalues).sum()
            score = view.of(SiteRef("decoder", layer), head)["ov-copying"]
            assert score == pytest.approx(expected, abs=2e-5)


def test_a_head_that_hands_on_what_it_reads_copies_and_one_that_takes_it_away_does_not():
    assert copying_score(torch.eye(5)) == pytest.approx(1.0)
    assert copying_score(-torch.eye(5)) == pytest.approx(-1.0)
    turned = torch.tensor([[0.0, -1.0], [1.0, 0.0]])  # eigenvalues i and -i
    assert copying_score(turned) == pytest.approx(0.0, abs=1e-12)


# --------------------------------------------------------------------------- known facts, found again


def test_story_gpt_finds_what_comes_next_with_heads_of_layer_5(story_gpt):
    """Over the texts that come along; heads 5.5 and 5.0 are those that find the name after "gave the ball to"."""
    view = head_roles(story_gpt)
    first = view.ranked("next", 2)
    assert {(site.layer, head) for site, head, _ in first} == {(5, 0), (5, 5)}
    assert first[1][2] > 2 * view.even[view.roles.index("next"), 5]


def test_the_head_that_finds_a_name_is_told_by_its_cell(story_gpt):
    """ "Anna gave the ball to" asks for the other name: which heads attend to it, over four such texts?"""
    scores = np.zeros((8, 8))
    names = (("Tom", "Anna", "ball"), ("Anna", "Tom", "flower"), ("Ben", "Lily", "cake"), ("Sam", "Mia", "book"))
    for one, other, thing in names:
        trace = run(story_gpt, f"{one} and {other} went to the park. {other} gave the {thing} to")
        words = [token.word for token in trace.tokens]
        question = HeadQuestion("cell", SiteRef("decoder", 0), query=len(words) - 1, key=words.index(one))
        scores += which_heads(story_gpt, trace, question).scores / 4
    best = [divmod(int(place), 8) for place in np.argsort(-scores, axis=None)]
    assert set(best[:2]) == {(5, 5), (5, 0)}


def all_roles(engine: Engine) -> RolesView:
    """As the panel asks for them: again, until all texts were run."""
    request = RolesRequest()
    while True:
        view = ask(engine, request)
        assert isinstance(view, RolesView)
        if view.done == 1:
            return view
        request = replace(request, have=view.done)


@pytest.mark.parametrize("name", ["dates-bahdanau", "dates-luong"])
def test_the_head_of_a_dates_model_copies(name):
    engine = opened(name)
    view = all_roles(engine)
    assert view.sites == (SiteRef("cross", 0),)
    assert view.texts == 40 <= len(date_pairs(40, 0))
    place = view.roles.index("next")
    assert view.scores[place, 0, 0] > 4 * view.even[place, 0]
    assert view.scores[place, 0, 0] > 0.6


def test_story_bert_has_a_head_for_the_token_before(story_bert):
    view = head_roles(story_bert, cached=False)
    site, head, score = view.ranked("previous")[0]
    assert (site.layer, head) == (2, 0)
    assert score > 0.95
    assert view.of(site, head)["positional"] > 0.8


# --------------------------------------------------------------------------- what each family can have


@pytest.mark.short("vit-quickdraw-stacks1-positional-det-to-head")
@pytest.mark.parametrize(
    ("name", "stacks", "has", "lacks"),
    [
        ("story-bert", {"encoder"}, "amod-to-head", "next"),
        ("vit-quickdraw", {"encoder"}, "positional", "det-to-head"),
        ("en-es", {"encoder", "decoder", "cross"}, "next", "ov-copying"),
    ],
)
def test_each_family_has_roles_and_a_sentence_for_each_that_it_lacks(name, stacks, has, lacks):
    view = all_roles(opened(name))
    assert {site.stack for site in view.sites} == stacks
    assert not np.isnan(view.scores[view.roles.index(has)]).all()
    for place, role in enumerate(view.roles):
        for stack in stacks:
            here = [i for i, site in enumerate(view.sites) if site.stack == stack]
            said = [sentence for r, s, sentence in view.why if (r, s) == (role, stack)]
            lacking = np.isnan(view.scores[place, here]).all()
            assert len(said) == int(lacking), (role, stack)
            assert all(sentence.endswith(".") for sentence in said)
    assert {s for r, s, _ in view.why if r == lacks} >= {next(iter(stacks - {"cross", "decoder"}))}


def test_a_model_without_attention_is_refused():
    with pytest.raises(InputError, match="no attention"):
        head_roles(finding_model("dates-bottleneck"))


def finding_model(name: str):
    from attention_models import open_checkpoint

    return open_checkpoint(name)


# --------------------------------------------------------------------------- files, cache, calling off


def test_what_does_not_fit_is_left_out_and_said_by_its_line(tiny_model, tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("Tom and Anna.\n\n" + "Tom " * 400 + "\nAnna gave the ball.\n")
    view = head_roles(tiny_model("gpt2"), path)
    assert view.texts == 2
    (said,) = view.left_out
    assert "Line 3 of mine.txt" in said
    assert "64" in said
    path.write_text("Tom " * 400)
    with pytest.raises(InputError, match=r"None of the texts of mine.txt fits .* Line 1 "):
        head_roles(tiny_model("gpt2"), path)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_an_adapter_of_other_contents_is_not_found_again(tiny_folder, tmp_path):
    folder = lora.save("gpt2", tiny_folder("gpt2"), tmp_path / "tuned")
    head_roles(open_checkpoint(folder), probe(*TEXTS))
    tensors = load_file(folder / TENSORS)
    save_file({name: -tensor if "lora_A" in name else tensor for name, tensor in tensors.items()}, folder / TENSORS)
    after = head_roles(open_checkpoint(folder), probe(*TEXTS))
    assert len(list((cache_folder() / "roles").glob("*.npz"))) == 2
    anew = head_roles(open_checkpoint(folder), probe(*TEXTS), cached=False)
    np.testing.assert_array_equal(after.scores, anew.scores)


def test_what_was_found_is_kept_by_content_and_found_again(tiny_model, tmp_path, monkeypatch):
    model, path = tiny_model("gpt2"), tmp_path / "mine.txt"
    path.write_text("Tom and Anna went to the park.\n")
    first = head_roles(model, path)
    assert len(list((cache_folder() / "roles").glob("*.npz"))) == 1
    with monkeypatch.context() as patched:
        patched.setattr(finding, "run_passing", lambda *_: pytest.fail("it was found before"))
        again = head_roles(model, path)
        np.testing.assert_array_equal(again.scores, first.scores)
        assert (again.roles, again.sites, again.why) == (first.roles, first.sites, first.why)
    path.write_text("Tom and Anna went to the sea.\n")
    head_roles(model, path)
    kept = list((cache_folder() / "roles").glob("*.npz"))
    assert len(kept) == 2
    for file in kept:
        file.write_bytes(b"PK\x03\x04 no archive")
    np.testing.assert_array_equal(head_roles(model, path).scores.shape, first.scores.shape)


def test_it_is_called_off_between_two_layers(tiny_model):
    calls = 0

    def soon() -> bool:
        nonlocal calls
        calls += 1
        return calls > 40

    with pytest.raises(Cancelled):
        head_roles(tiny_model("gpt2"), cached=False, should_stop=soon)
    assert calls == 41


def test_a_table_has_a_line_for_each_score(tiny_model, tmp_path):
    view = head_roles(tiny_model("marian"), cached=False)
    save_roles(view, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["stack", "layer", "head", "role", "score"]
    assert len(rows) == int((~np.isnan(view.scores)).sum())
    for row in rows[:: max(1, len(rows) // 50)]:
        place = view.sites.index(SiteRef(row["stack"], int(row["layer"])))
        score = view.scores[view.roles.index(row["role"]), place, int(row["head"])]
        assert float(row["score"]) == pytest.approx(score, abs=1e-6)
    assert {role.name for role in ROLES} >= {row["role"] for row in rows}
