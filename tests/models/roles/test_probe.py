"""Probe texts of a person's own: CoNLL-U with its edges, or lines."""

from __future__ import annotations

import pytest

from attention_models.protocol.errors import InputError
from attention_models.roles import probe as probes
from attention_models.roles.probe import Edge, read_probe

ROWS = """# text = Tom's dog sleeps.
1-2\tTom's\t_\t_\t_\t_\t_\t_\t_\t_
1\tTom\t_\t_\t_\t_\t3\tnmod:poss\t_\tSpaceAfter=No
2\t's\t_\t_\t_\t_\t1\tcase\t_\t_
3\tdog\t_\t_\t_\t_\t4\tnsubj\t_\t_
4\tsleeps\t_\t_\t_\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t_\t_\t_\t_\t4\tpunct\t_\t_
"""


def test_sentences_come_with_words_and_edges(tmp_path):
    path = tmp_path / "gold.conllu"
    path.write_text(ROWS + "\n# goes_on = yes\n1\tShe\t_\t_\t_\t_\t2\tnsubj\t_\t_\n2\tran\t_\t_\t_\t_\t0\troot\t_\t_\n")
    found = read_probe(path)
    (text,) = found.texts
    assert found.has_edges
    assert text.prompt == "Tom's dog sleeps. She ran"
    assert [text.prompt[start:end] for start, end in text.words] == ["Tom", "'s", "dog", "sleeps", ".", "She", "ran"]
    assert text.edges == (Edge("poss", 0, 2), Edge("case", 1, 0), Edge("nsubj", 2, 3), Edge("nsubj", 5, 6))


def test_lines_come_without(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("One.\n\nTwo.")
    found = read_probe(path)
    assert [(text.prompt, text.line) for text in found.texts] == [("One.", 1), ("Two.", 3)]
    assert not found.has_edges
    assert found.digest != read_mean_inputs(tmp_path, "One.\n\nThree.").digest


def read_mean_inputs(folder, content):
    (folder / "mine.txt").write_text(content)
    return read_probe(folder / "mine.txt")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no sentence"),
        (b"1\tTom\t_\n\n", "line 1 has 3 columns"),
        (ROWS.replace("\t3\tnmod", "\t_\tnmod").encode(), "line 3 names no head"),
        (ROWS.replace("\t3\tnmod", "\t9\tnmod").encode(), "no word 9"),
        (b"# \xff\n", "line 1 has other bytes"),
    ],
)
def test_bad_files_are_said_by_their_line(tmp_path, content, said):
    path = tmp_path / "gold.conllu"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_probe(path)


def test_too_many_texts_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(probes, "MOST_TEXTS", 2)
    with pytest.raises(InputError, match="more than 2 texts"):
        read_mean_inputs(tmp_path, "a\nb\nc\n")
