"""Session files: what is saved comes back the same, and a bad file is refused with a sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.session import files
from explorer.session.state import Document, Listed, Normalisation, Selection, ViewOptions
from explorer.theme import SEQUENTIAL_MAPS
from models.interventions import WINDOW_MEANS, Mask, MaskKind, Positions, Scale
from models.values import SiteRef

PLACES = st.integers(0, 2000)
SITES = st.none() | st.builds(SiteRef, st.sampled_from(["decoder", "encoder", "cross"]), PLACES)
HEADS = st.none() | st.integers(0, 100)
CELLS = st.lists(st.tuples(PLACES, PLACES, st.booleans()), min_size=1, max_size=8).map(tuple)
MASKS = st.one_of(
    st.builds(
        Mask,
        st.sampled_from([k for k in get_args(MaskKind) if k not in (*WINDOW_MEANS, "painted")]),
        site=SITES,
        head=HEADS,
    ),
    st.builds(Mask, st.sampled_from(sorted(WINDOW_MEANS)), window=st.integers(1, 4000), site=SITES, head=HEADS),
    st.builds(Mask, st.just("painted"), cells=CELLS, site=SITES, head=HEADS),
)
SCALES = st.builds(Scale, st.floats(0, 1e6), site=SITES, head=HEADS)
POSITIONS = st.builds(Positions, st.sampled_from(["off", "shift"]), st.integers(0, 5000))
VIEWS = st.builds(
    ViewOptions,
    normalisation=st.sampled_from(get_args(Normalisation)),
    colour_map=st.sampled_from(SEQUENTIAL_MAPS),
    mean_column=st.booleans(),
    top=st.integers(1, 100),
    edit_scope=st.sampled_from(["head", "layer", "everywhere"]),
)
DOCUMENTS = st.builds(
    Document,
    checkpoint=st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    text=st.text(st.characters(codec="utf-8"), max_size=200),
    target=st.none() | st.text(st.characters(codec="utf-8"), max_size=50),
    selection=st.builds(Selection, SITES, st.integers(0, 100), PLACES, PLACES),
    view=VIEWS,
    interventions=st.lists(st.builds(Listed, st.one_of(SCALES, MASKS, POSITIONS), on=st.booleans()), max_size=5).map(
        tuple
    ),
)
DOCUMENT = Document(
    checkpoint="story-gpt",
    text="Tom and Anna",
    selection=Selection(SiteRef("decoder", 5), 5, 2, 1),
    interventions=(Listed(Scale(0.5, site=SiteRef("decoder", 5), head=5)), Listed(Mask("window", window=8), on=False)),
)


@given(DOCUMENTS)
def test_what_is_saved_comes_back_the_same(document):
    assert files.decode(files.encode(document)) == document


def test_a_file_can_be_read_by_people():
    content = json.loads(files.encode(DOCUMENT))
    assert content["program"] == "attention-explorer"
    assert content["version"] == 1
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
        (broken(version=2), "it is of version 2, and this program reads version 1"),
        (broken(version="1"), r"expected `int`, got `str` - at `\$\.version`"),
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
        (broken(view={"top": 0}), "0 candidates can not be listed, only 1 to 100"),
        (one(kind="rm"), "invalid value 'rm'"),
        (one(kind="scale", factor=-1), "A scale factor of -1.0 would make the worst fit"),
        (one(kind="scale", factor="1"), "expected `float`, got `str`"),
        (one(kind="mask", mask="diagonal"), "invalid enum value 'diagonal'"),
        (one(kind="mask", mask="window", window=0), "A “window” mask needs a number from 1"),
        (one(kind="mask", mask="painted"), "a painted mask needs cells"),
        (one(kind="mask", mask="painted", cells=[[1, 2]]), "length 3"),
        (one(kind="mask", mask="painted", cells=[[1 << 40, 2, True]]), "expected `int` <"),
        (one(kind="positions", mode="shift", by=-1), ">= 0"),
        (broken(interventions=[{"kind": "positions", "mode": "off"}] * 1001), "length <= 1000"),
        (b" " * (files.LARGEST + 1), "it has more than 1,048,576 bytes"),
    ],
)
def test_a_bad_file_says_what_is_wrong(content, sentence):
    with pytest.raises(ValueError, match=f"(?i){sentence}"):
        files.decode(content)


def test_saved_and_loaded_from_a_folder(tmp_path):
    path = tmp_path / "a session.json"
    files.save(DOCUMENT, path)
    assert files.load(path) == DOCUMENT
    assert [other.name for other in tmp_path.iterdir() if other.is_file()] == ["a session.json"]


def test_what_can_not_be_written_or_read_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"The session could not be written to .*\(No such file.*\)\. Choose another"):
        files.save(DOCUMENT, tmp_path / "nowhere" / "a.json")
    with pytest.raises(ValueError, match=r"The session .* could not be read \(.*\)\."):
        files.load(tmp_path / "missing.json")
    bad = tmp_path / "bad.json"
    bad.write_bytes(broken(version=7))
    with pytest.raises(ValueError, match=r"^bad\.json is no session that can be opened: it is of version 7, .*\.$"):
        files.load(bad)


def test_a_file_stays_as_it_was_when_the_new_one_is_refused(tmp_path):
    path = tmp_path / "a.json"
    files.save(DOCUMENT, path)
    for text, sentence in (
        ("x" * files.LARGEST, "a session file holds 1,048,576 at most"),
        ("\ud83d", "half a character"),
    ):
        with pytest.raises(ValueError, match=sentence):
            files.save(replace(DOCUMENT, text=text), path)
    assert files.load(path) == DOCUMENT


def test_reading_stops_at_the_largest_size(tmp_path: Path):
    path = tmp_path / "big.json"
    path.write_bytes(b" " * (files.LARGEST + 1000))
    with pytest.raises(ValueError, match=r"big\.json is no session .* more than 1,048,576 bytes\."):
        files.load(path)


def test_a_byte_order_mark_is_no_part_of_the_file():
    assert files.decode(b"\xef\xbb\xbf" + files.encode(Document(text="Hi"))) == Document(text="Hi")


def test_json_is_spelled_as_it_is_in_sentences(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text("{")
    with pytest.raises(ValueError, match=r"broken\.json is no session.*: [^j]") as error:
        files.load(path)
    assert "jSON" not in str(error.value)
