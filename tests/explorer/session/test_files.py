"""Session files: what is saved comes back the same, and a bad file is refused with a sentence."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_explorer.look.theme import SEQUENTIAL_MAPS
from attention_explorer.session import files
from attention_explorer.session.branches import MOST_NODES, Branches
from attention_explorer.session.effects_choices import Answer, EffectsChoices
from attention_explorer.session.state import BatchText, Document, InterventionItem, Selection
from attention_explorer.session.view_options import Normalisation, ViewOptions
from attention_explorer.session.writing import Decoding
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.batch import MOST_TEXTS
from attention_models.protocol.chat import MOST_TURNS, ROLES, Turn
from attention_models.protocol.decoding import MOST_SEED, DecodeSettings, Strategy
from attention_models.protocol.interventions import Adapter, Mask, Positions, Scale
from attention_models.protocol.mask_kinds import MASK_KINDS
from attention_models.protocol.values import SiteRef
from tests.explorer import documents


def tree(actions: list[tuple[str, int, float, DecodeSettings, bool, str]]) -> Branches:
    branches = Branches()
    for what, number, log_probability, settings, forced, words in actions:
        if what == "grow":
            branches = branches.grow(number % 4, words, log_probability, number > 20, settings, forced)
        elif branches.nodes:
            id_ = branches.nodes[number % len(branches.nodes)].id
            named = branches.named(id_, words)
            branches = branches.go(id_) if what == "go" else branches.without(id_) if what == "delete" else named
    return branches


PLACES = st.integers(0, 2000)
SITES = st.none() | st.builds(SiteRef, st.sampled_from(["decoder", "encoder", "cross"]), PLACES)
HEADS = st.none() | st.integers(0, 100)
CELLS = st.lists(st.tuples(PLACES, PLACES, st.booleans()), min_size=1, max_size=8).map(tuple)
MASKS = st.one_of(
    st.builds(
        Mask,
        st.sampled_from([kind.name for kind in MASK_KINDS.values() if not kind.counts and not kind.takes_cells]),
        site=SITES,
        head=HEADS,
    ),
    st.builds(
        Mask,
        st.sampled_from([kind.name for kind in MASK_KINDS.values() if kind.counts]),
        window=st.integers(1, 4000),
        site=SITES,
        head=HEADS,
    ),
    st.builds(Mask, st.just("painted"), cells=CELLS, site=SITES, head=HEADS),
)
SCALES = st.builds(Scale, st.floats(0, 1e6), site=SITES, head=HEADS)
POSITIONS = st.builds(Positions, st.sampled_from(["off", "shift"]), st.integers(0, 5000))
DECODINGS = st.builds(
    Decoding,
    st.builds(
        DecodeSettings,
        st.sampled_from(get_args(Strategy)),
        temperature=st.just(0.0) | st.floats(1e-6, 1e6),
        top_k=st.none() | st.integers(1, 10**9),
        top_p=st.none() | st.floats(0.01, 1),
        beams=st.integers(1, 32),
        length_penalty=st.floats(-10, 10),
        seed=st.integers(0, MOST_SEED),
    ),
    st.integers(1, 1000),
    st.integers(1, 8),
    st.booleans(),
)
VIEWS = st.builds(
    ViewOptions,
    normalisation=st.sampled_from(get_args(Normalisation)),
    colour_map=st.sampled_from(SEQUENTIAL_MAPS),
    mean_column=st.booleans(),
    top=st.integers(1, 100),
    edit_scope=st.sampled_from(["head", "layer", "everywhere"]),
)
WORDS = st.text(st.characters(codec="utf-8"), max_size=30)
ANSWERS = st.none() | st.builds(Answer, WORDS, st.none() | st.integers(0, 10**6))
EFFECTS = st.builds(
    EffectsChoices,
    target=ANSWERS,
    against=ANSWERS,
    loss=st.booleans(),
    followed=ANSWERS,
    other=WORDS,
    copied=st.sampled_from(["residual", "pattern"]),
    aligned=st.sampled_from(["same", "tokens"]),
    scope=st.sampled_from(["head", "stack"]),
    epsilon=st.floats(1e-6, 0.99),
    texts=st.tuples(WORDS, WORDS),
    words=st.tuples(WORDS, WORDS),
    starts=st.tuples(st.none() | st.integers(0, 30), st.none()),
)
OTHERS = st.lists(
    st.builds(
        BatchText,
        st.text(st.characters(codec="utf-8"), max_size=50),
        st.none() | st.text(st.characters(codec="utf-8"), max_size=50),
        st.none() | st.text(st.characters(codec="utf-8"), max_size=50),
    ),
    max_size=3,
).map(tuple)
DOCUMENTS = st.builds(
    Document,
    checkpoint=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    text=st.text(st.characters(codec="utf-8"), max_size=200),
    before=OTHERS,
    after=OTHERS,
    padding=st.sampled_from(["right", "left"]),
    target=st.none() | st.text(st.characters(codec="utf-8"), max_size=50),
    chat=st.booleans(),
    turns=st.lists(
        st.builds(Turn, st.sampled_from(ROLES), st.text(st.characters(codec="utf-8"), max_size=50)),
        min_size=1,
        max_size=5,
    ).map(tuple),
    picture=st.sampled_from(["", "sample:chelsea", "/home/ñ/mi gato.png"]),
    selection=st.builds(Selection, SITES, st.integers(0, 100), PLACES, PLACES),
    view=VIEWS,
    decoding=DECODINGS,
    effects=EFFECTS,
    interventions=st.lists(
        st.builds(InterventionItem, st.one_of(SCALES, MASKS, POSITIONS), on=st.booleans()), max_size=5
    ).map(tuple),
)
SETTINGS = st.sampled_from(
    [
        DecodeSettings(),
        DecodeSettings("sample", temperature=0.7, top_k=5, seed=3),
        DecodeSettings("sample", top_p=0.9),
        DecodeSettings("sample", temperature=1e-6, top_k=10**9, no_repeat_ngram=10**9, seed=MOST_SEED, sample=10**9),
    ]
)
TREES = st.builds(
    tree,
    st.lists(
        st.tuples(
            st.sampled_from(["grow", "go", "delete", "name"]),
            st.integers(0, 30),
            st.floats(-50, 0),
            SETTINGS,
            st.booleans(),
            st.text(st.characters(codec="utf-8"), max_size=9),
        ),
        max_size=30,
    ),
)
DOCUMENT = Document(
    checkpoint="story-gpt",
    text="Tom and Anna",
    selection=Selection(SiteRef("decoder", 5), 5, 2, 1),
    interventions=(
        InterventionItem(Scale(0.5, site=SiteRef("decoder", 5), head=5)),
        InterventionItem(Mask("window", window=8), on=False),
    ),
)

WRITTEN = (
    Branches().grow(7, "␣to", -0.5).grow(8, "␣Tom", -2.0, True, DecodeSettings("sample", seed=4), True).named(2, "mine")
)


@given(DOCUMENTS, TREES)
def test_what_is_saved_comes_back_the_same(document, branches):
    document = document.with_branches(branches)
    assert files.decode(files.encode(document)) == document


def test_trees_of_other_texts_are_left_out():
    there = DOCUMENT.with_branches(WRITTEN)
    elsewhere = replace(there, text="Another text")
    assert files.decode(files.encode(elsewhere)) == replace(DOCUMENT, text="Another text")


def test_only_a_file_with_a_second_text_is_of_the_fifth_version():
    assert b"second" not in files.encode(DOCUMENT)
    for second in ("", "Anna went home."):
        paired = replace(DOCUMENT, second=second)
        assert json.loads(files.encode(paired))["version"] == 5
        assert files.decode(files.encode(paired)) == paired


def test_only_a_file_with_other_texts_is_of_the_seventh_version():
    assert b"others" not in files.encode(DOCUMENT)
    several = replace(DOCUMENT, before=(BatchText("Anna went home."),), after=(BatchText("So", "did", "Tom."),))
    for document in (several, replace(several, padding="left"), replace(DOCUMENT, padding="left")):
        content = json.loads(files.encode(document))
        assert content["version"] == 7
        assert files.decode(json.dumps(content).encode()) == document
    assert json.loads(files.encode(several))["others"]["before"] == [{"text": "Anna went home."}]


def test_no_more_texts_are_read_than_are_run_at_once():
    most = replace(DOCUMENT, before=(BatchText("a"),) * (MOST_TEXTS - 1))
    assert files.decode(files.encode(most)) == most
    with pytest.raises(ValueError, match="it has 257 texts, and 256 are run at once at most"):
        files.decode(files.encode(replace(most, after=(BatchText("b"),))))


def test_a_file_of_the_third_version_opens_with_the_first_settings_of_decoding():
    chosen = replace(DOCUMENT, decoding=Decoding(DecodeSettings("beam", beams=2), 50, 3, chosen=True))
    content = json.loads(files.encode(chosen.with_branches(WRITTEN)))
    assert files.decode(json.dumps(content).encode()) == chosen.with_branches(WRITTEN)
    del content["decoding"]
    opened = files.decode(json.dumps({**content, "version": 3}).encode())
    assert opened == DOCUMENT.with_branches(WRITTEN)
    assert opened.decoding == Decoding()


def test_a_file_of_the_second_version_opens():
    content = json.loads(files.encode(DOCUMENT.with_branches(WRITTEN)))
    del content["chat"], content["turns"], content["decoding"]
    assert files.decode(json.dumps({**content, "version": 2}).encode()) == DOCUMENT.with_branches(WRITTEN)


def test_a_file_of_the_first_version_opens():
    content = json.loads(files.encode(DOCUMENT))
    del content["branches"], content["decoding"]
    assert files.decode(json.dumps({**content, "version": 1}).encode()) == DOCUMENT


def test_the_largest_tree_fits():
    branches = Branches()
    for token in range(MOST_NODES):
        branches = branches.grow(token, f"␣word{token}", -1.2345678901234567, settings=DecodeSettings("sample"))
    document = replace(DOCUMENT, text="x" * 200_000).with_branches(branches)
    content = files.encode(document)
    assert len(content) < files.LARGEST / 2
    assert files.decode(content) == document


def test_a_branch_is_told_with_how_it_was_chosen():
    content = json.loads(files.encode(DOCUMENT.with_branches(WRITTEN)))["branches"]
    assert content["nodes"] == [
        [1, 0, 7, "␣to", -0.5, 0, False, False, ""],
        [2, 1, 8, "␣Tom", -2.0, 1, True, True, "mine"],
    ]
    assert [settings["strategy"] for settings in content["settings"]] == ["greedy", "sample"]
    assert (content["current"], content["made"]) == (2, 2)


def test_what_the_model_can_not_say_is_cut_to_what_a_file_holds():
    odd = DOCUMENT.with_branches(Branches().grow(7, "x" * 2000, 1e-9))
    node = files.decode(files.encode(odd)).branches.nodes[0]
    assert (node.label, node.log_probability) == ("x" * 1000, 0.0)


def test_a_file_can_be_read_by_people():
    content = json.loads(files.encode(DOCUMENT))
    assert content["program"] == "attention-explorer"
    assert content["version"] == 4
    assert content["interventions"][0] == {
        "kind": "scale",
        "factor": 0.5,
        "site": {"stack": "decoder", "layer": 5},
        "head": 5,
        "on": True,
    }
    assert content["interventions"][1]["mask"] == "window"


def test_the_brush_is_put_down():
    painting = replace(DOCUMENT, view=replace(DOCUMENT.view, painting="block"))
    assert files.decode(files.encode(painting)) == DOCUMENT
    content = json.loads(files.encode(DOCUMENT))
    content["view"]["painting"] = "allow"
    assert files.decode(json.dumps(content).encode()) == DOCUMENT


def test_view_options_may_be_missing_or_of_a_later_version():
    content = json.loads(files.encode(DOCUMENT))
    content["view"] = {"top": 3, "sparkles": True}
    assert files.decode(json.dumps(content).encode()).view == ViewOptions(top=3)


def broken(**changes: Any) -> bytes:
    return json.dumps({**json.loads(files.encode(DOCUMENT)), **changes}).encode()


NODE = [1, 0, 7, "␣to", -0.5, 0, False, False, ""]


def written(**changes: Any) -> bytes:
    content = json.loads(files.encode(DOCUMENT.with_branches(WRITTEN)))
    return json.dumps({**content, "branches": {**content["branches"], **changes}}).encode()


def node(id_: int, parent: int = 0, token: int = 7, label: str = "", log_probability: float | None = -0.5) -> bytes:
    return written(nodes=[[id_, parent, token, label, log_probability, 0, False, False, ""]], current=0)


def one(**record: Any) -> bytes:
    return broken(interventions=[record])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "truncated"),
        (b"\x80\x04\x95", "malformed"),
        (b"[1, 2]", "expected `object`"),
        (b'{"version": 1}', "missing required field"),
        (b"[" * 100_000, "truncated|recursion|expected `object`"),
        (broken(version=10), "it is of version 10, and this program reads versions 1 to 9"),
        (broken(version=0), "it is of version 0, and this program reads versions 1 to 9"),
        (broken(chat=True), "it is of a conversation, and has no turn of it"),
        (broken(turns=[{"role": "tool", "text": ""}]), r"Invalid enum value 'tool' - at `\$\.turns"),
        (broken(turns=[{"role": "user", "text": ""}] * (MOST_TURNS + 1)), "array"),
        (written(nodes=3), r"expected `array`, got `int` - at `\$\.branches\.nodes`"),
        (written(nodes=[[1, 0, 7]]), "length 9"),
        (written(current=5), "there is no token 5 of its branches to look at"),
        (written(made=1), "its branches have ids up to 2, and say that only 1 were made"),
        (written(made=-1), r">= 0 - at `\$\.branches\.made`"),
        (written(settings=[]), "token 0 of its branches names settings 0, of which there are 0"),
        (written(settings=[{"strategy": "beam"}] * 2), "beam search"),
        (written(settings=[{"strategy": "hope"}] * 2), "invalid enum value 'hope'"),
        (written(settings=[{"temperature": -1}] * 2), "A temperature of -1.0 makes no probabilities"),
        (written(settings=[{"seed": -1}] * 2), "A seed of -1 is not offered"),
        (written(settings=[{"top_k": 10**18}] * 2), "top-k of 1000000000000000000 is not offered"),
        (node(0, 0), r"> 0|>= 1"),
        (node(1, 5), "token 0 of its branches follows on token id 5, which does not come before it"),
        (node(1, 1), "token 0 of its branches follows on token id 1"),
        (node(1, token=-1), ">= 0"),
        (node(1, label="x" * 1001), "length <= 1000"),
        (node(1, log_probability=0.5), "<= 0"),
        (node(1, log_probability=None), "expected `float`"),
        (written(nodes=[NODE, NODE]), "token 1 of its branches has the id 1, which is not above those before it"),
        (written(nodes=[NODE, [2, *NODE[1:]]]), "token 1 of its branches is there twice"),
        (written(nodes=[[i + 1, i, *NODE[2:]] for i in range(MOST_NODES + 1)]), "length <= 5000"),
        (broken(version="1"), r"expected `int`, got `str` - at `\$\.version`"),
        (broken(decoding={"steps": 0}), r"0 steps are not offered: 1 to 1,000\. - at `\$\.decoding`"),
        (broken(decoding={"samples": 9}), "9 samples are not offered: 1 to 8"),
        (broken(decoding={"settings": {"temperature": -1}}), "A temperature of -1.0 makes no probabilities"),
        (broken(decoding={"settings": {"strategy": "hope"}}), "invalid enum value 'hope'"),
        (broken(effects={"epsilon": 2.0}), "an answer cannot move by 2, only by more than 0 and less than 1"),
        (broken(effects={"aligned": "sideways"}), "invalid enum value 'sideways'"),
        (broken(effects={"other": "a" * 5000}), "a text of Effects has 5,000 characters, and 4,096 are taken"),
        (broken(effects={"target": {"label": "a", "id": -1}}), "no answer has the number -1"),
        (broken(decoding={"steps": "many"}), "expected `int`, got `str`"),
        (broken(program="other"), r"invalid enum value 'other' - at `\$\.program`"),
        (broken(text=3), r"expected `str`, got `int` - at `\$\.text`"),
        (broken(target=3), r"expected `str \| null`, got `int` - at `\$\.target`"),
        (broken(checkpoint=""), r"length >= 1 - at `\$\.checkpoint`"),
        (broken(surprise=1), "unknown field `surprise`"),
        (broken(selection={"query": -1}), r">= 0 - at `\$\.selection\.query`"),
        (broken(selection={"head": True}), "expected `int`"),
        (broken(selection={"query": 1e300}), "expected `int`"),
        (broken(selection={"site": {"stack": "side", "layer": 0}}), "invalid enum value 'side'"),
        (broken(view={"normalisation": "diagonal"}), "invalid enum value 'diagonal'"),
        (broken(view={"colour_map": "jet"}), "there is no colour map “jet”"),
        (broken(view={"top": 0}), "0 candidates cannot be listed, only 1 to 100"),
        (one(kind="rm"), "invalid value 'rm'"),
        (one(kind="scale", factor=-1), "A scale factor of -1.0 would make the worst fit"),
        (one(kind="scale", factor="1"), "expected `float`, got `str`"),
        (one(kind="mask", mask="diagonal"), "There is no mask “diagonal”: choose one of trained, "),
        (one(kind="mask", mask="window", window=0), "A “window” mask needs a number from 1"),
        (one(kind="mask", mask="painted"), "a painted mask needs cells"),
        (one(kind="mask", mask="painted", cells=[[1, 2]]), "length 3"),
        (one(kind="mask", mask="painted", cells=[[1 << 40, 2, True]]), "expected `int` <"),
        (one(kind="positions", mode="shift", by=-1), ">= 0"),
        (broken(interventions=[{"kind": "positions", "mode": "off"}] * 1001), "length <= 1000"),
        (b" " * (files.LARGEST + 1), "it has more than 4,194,304 bytes"),
    ],
)
def test_a_bad_file_says_what_is_wrong(content, sentence):
    with pytest.raises(ValueError, match=f"(?i){sentence}"):
        files.decode(content)


def test_saved_and_loaded_from_a_folder(tmp_path):
    path = tmp_path / "a session.json"
    documents.save(DOCUMENT, path)
    assert documents.load(path) == DOCUMENT
    assert [other.name for other in tmp_path.iterdir() if other.is_file()] == ["a session.json"]


def test_what_can_not_be_written_or_read_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"The session could not be written to .*: there is no such folder\."):
        documents.save(DOCUMENT, tmp_path / "nowhere" / "a.json")
    with pytest.raises(ValueError, match=r"The session .* could not be read \(.*\)\."):
        documents.load(tmp_path / "missing.json")
    bad = tmp_path / "bad.json"
    bad.write_bytes(broken(version=10))
    with pytest.raises(ValueError, match=r"^bad\.json is no session that can be opened: it is of version 10, .*\.$"):
        documents.load(bad)


def test_a_file_stays_as_it_was_when_the_new_one_is_refused(tmp_path):
    path = tmp_path / "a.json"
    documents.save(DOCUMENT, path)
    for text, sentence in (
        ("x" * files.LARGEST, "a session file holds 4,194,304 at most. Shorten"),
        ("\ud83d", "half a character"),
    ):
        with pytest.raises(ValueError, match=sentence):
            documents.save(replace(DOCUMENT, text=text), path)
    assert documents.load(path) == DOCUMENT


def test_reading_stops_at_the_largest_size(tmp_path: Path):
    path = tmp_path / "big.json"
    path.write_bytes(b" " * (files.LARGEST + 1000))
    with pytest.raises(ValueError, match=r"big\.json is no session .* more than 4,194,304 bytes\."):
        documents.load(path)


def test_a_byte_order_mark_is_no_part_of_the_file():
    assert files.decode(b"\xef\xbb\xbf" + files.encode(Document(text="Hi"))) == Document(text="Hi")


def test_json_is_spelled_as_it_is_in_sentences(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"broken\.json is no session.*: [^j]") as error:
        documents.load(path)
    assert "jSON" not in str(error.value)


def test_an_adapter_that_was_taken_out_is_held_and_of_the_sixth_version():
    for on in (True, False):
        without = replace(DOCUMENT, interventions=(InterventionItem(Adapter(on=False), on),))
        assert json.loads(files.encode(without))["version"] == 6
        assert files.decode(files.encode(without)) == without


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_or_a_device_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for path, kind in ((tmp_path / "pipe.json", "pipe"), (Path("/dev/zero"), "device")):
        with pytest.raises(ValueError, match=rf"could not be read \(it is a {kind}, not a file\)\."):
            documents.load(path)


def test_a_part_that_is_off_is_held_and_of_the_eighth_version():
    skips = (
        Ablation("mlp", SiteRef("decoder", 5)),
        Ablation("norm2", SiteRef("encoder", 0)),
        Ablation("cross", SiteRef("", 1)),
    )
    for on, skip in product((True, False), skips):
        document = replace(DOCUMENT, interventions=(InterventionItem(skip, on),))
        assert json.loads(files.encode(document))["version"] == 8
        assert files.decode(files.encode(document)) == document


@pytest.mark.parametrize(
    "skip",
    [
        Ablation("head", SiteRef("cross", 2), 3),
        Ablation("neuron", SiteRef("decoder", 2), 17, "mean"),
        Ablation("layer", SiteRef("", 1)),
        Ablation("mlp", SiteRef("decoder", 2), None, "position", 0),
    ],
)
def test_a_head_a_neuron_or_what_is_held_is_of_the_ninth_version(skip):
    document = replace(DOCUMENT, interventions=(InterventionItem(skip),))
    assert json.loads(files.encode(document))["version"] == 9
    assert files.decode(files.encode(document)) == document


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        ({"part": "heart", "stack": "decoder", "layer": 1}, "A block has no part “heart”"),
        ({"part": "mlp", "stack": "cross", "layer": 1}, "“cross” is no stack of blocks"),
        ({"part": "mlp", "stack": "decoder", "layer": -1}, ">= 0"),
        ({"part": "head", "stack": "decoder", "layer": 1}, "Say which head"),
        ({"part": "mlp", "stack": "decoder", "layer": 1, "fill": "half"}, "half"),
    ],
)
def test_a_part_that_there_is_not_is_refused(record, sentence):
    with pytest.raises(ValueError, match=sentence):
        files.decode(broken(interventions=[{"kind": "skip", **record}]))
