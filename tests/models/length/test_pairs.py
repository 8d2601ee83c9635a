"""Files of sentence pairs: three kinds are read alike, and each kind of broken one is refused with a sentence."""

from __future__ import annotations

import io
import lzma
import os
import zipfile
from pathlib import Path

import pytest

from attention_models.length import pairs
from attention_models.length.pairs import read_pairs
from attention_models.protocol.errors import InputError

TEXT = "Go.\tVe.\tCC-BY 2.0\nGo.\tVete.\n\nRun!\t¡Corre!\nGo.\tVe.\tagain\nCafe\u0301\t Un café \r\n# a remark\n"
FOUND = [("Go.", "Ve."), ("Go.", "Vete."), ("Run!", "¡Corre!"), ("Café", "Un café")]


def zipped(**members: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return held.getvalue()


def written(folder: Path, content: bytes, name: str = "pairs.tsv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        lzma.compress(TEXT.encode()),
        zipped(_about__txt=b"who made it", spa__txt=TEXT.encode(), notes__md=b"x"),
    ],
    ids=["plain", "byte order mark", "xz", "zip"],
)
def test_every_kind_gives_the_same_pairs(tmp_path, content):
    assert read_pairs(written(tmp_path, content)) == FOUND


BROKEN = {
    "empty": (b"\n \n", "is empty"),
    "prose": (b"Once upon a time\nthere was\ta king\nwho\n", "is no list of pairs: 1 of 3 lines have a tab"),
    "latin-1": ("Go.\tVe.\nYes.\tSí.\n".encode("latin-1"), "is not UTF-8 text: line 2"),
    "cut-off xz": (lzma.compress(TEXT.encode() * 50)[:-20], "is (cut off|damaged)"),
    "broken xz": (b"\xfd7zXZ\x00" + bytes(60), "is damaged"),
    "cut-off zip": (zipped(spa__txt=TEXT.encode() * 50)[:-30], "is damaged"),
    "zip without a list": (zipped(picture__png=b"x"), "holds 0 lists"),
    "zip with two lists": (zipped(a__txt=b"x", b__tsv=b"x"), "holds 2 lists"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_a_sentence(tmp_path, name):
    content, said = BROKEN[name]
    with pytest.raises(InputError, match=f"pairs.tsv {said}") as error:
        read_pairs(written(tmp_path, content))
    assert str(error.value).rstrip().endswith(".")


def test_a_damaged_zip_member_is_refused(tmp_path):
    whole = bytearray(zipped(spa__txt=os.urandom(4000)))
    whole[200] ^= 0xFF
    with pytest.raises(InputError, match="damaged"):
        read_pairs(written(tmp_path, bytes(whole)))


def test_a_locked_zip_is_refused(tmp_path):
    whole = bytearray(zipped(spa__txt=TEXT.encode()))
    whole[6] |= 1  # the flag in the member's own header, and in the archive's directory
    whole[whole.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InputError, match="password"):
        read_pairs(written(tmp_path, bytes(whole)))


@pytest.mark.parametrize("pack", [bytes, lzma.compress, lambda content: zipped(spa__txt=content)])
def test_what_is_too_large_is_not_read_to_its_end(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(pairs, "MOST_BYTES", 1 << 20)
    path = written(tmp_path, pack(b"Go.\tVe.\n" * 200_000))
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read_pairs(path)


@pytest.mark.parametrize("name", ["nothing.tsv", "."])
def test_what_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="There is no file"):
        read_pairs(tmp_path / name)
