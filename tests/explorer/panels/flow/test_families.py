"""Blocks of other families as they are drawn: what reads what is seen, and nothing covers anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from attention_explorer.panels.flow.block_layout import on_stream
from attention_explorer.panels.flow.block_picture import BlockPicture
from attention_explorer.panels.flow.box_text import Around
from attention_explorer.panels.flow.flow_sentences import box_sentence
from attention_models import open_checkpoint
from attention_models.flow.block import answer
from attention_models.protocol.flow import STREAM, SumBox
from tests.models import tiny
from tests.models.flow.blocks import context_of, request
from tests.models.flow.families import FAMILIES

AROUND = Around("word", "it")
KEYS = ["key"] * 64


@pytest.mark.short("qwen3", "bart", "gpt_oss")
@pytest.mark.parametrize("kind", ["gpt_neox", "qwen3", "gemma2", "bart", "t5", "gpt_oss", "modernbert"])
def test_every_box_stands_free_and_has_an_arrow_from_each_that_it_reads(qtbot, tmp_path: Path, kind: str):
    context = context_of(open_checkpoint(tiny.save(kind, tmp_path / kind)))
    for stack in FAMILIES[kind]:
        view = answer(request(stack, 1, 2), context)
        picture = BlockPicture()
        qtbot.addWidget(picture)
        picture.resize(620, 300)
        picture.set_block(view, AROUND, ("x", "up"), {"attention": KEYS, "cross": KEYS}, {})
        picture.resize(620, picture.minimumHeight())
        layout, lane = picture.layout_now(), on_stream(view.boxes)
        rects = [layout.rect(i) for i in range(len(view.boxes))]
        for i, (box, rect) in enumerate(zip(view.boxes, rects, strict=True)):
            assert rect.isValid(), i
            assert not any(rect.intersects(other) for other in rects[:i]), i
            sentence = box_sentence(view, i, AROUND, KEYS, 0)
            assert not any(word in sentence for word in ("nan", "None", "not computed")), sentence
            if isinstance(box, SumBox) or i in lane:
                continue
            into = [arrow for arrow in layout.arrows if arrow.reader == i]
            for read in box.reads:
                starts = [arrow.points[0] for arrow in into]
                if read == STREAM or read in lane:
                    assert any(start.x() < rect.left() for start in starts), (i, read)
                else:
                    edge = rects[read]
                    touches = [abs(s.y() - edge.top()) < 1 and edge.left() <= s.x() <= edge.right() for s in starts]
                    assert any(touches), (i, read)
        picture.grab()
