"""A table of numbers can be read: nothing is painted over what it says."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QHeaderView

from attention_explorer.look import theme
from attention_explorer.panels.playground.one_batch import Entry, NumbersTable
from tests.explorer.real_window import look_put_back


def painted(head: QHeaderView, where: QRect) -> np.ndarray:
    """(height, width) of 32-bit colours."""
    image = head.viewport().grab(where).toImage().convertToFormat(QImage.Format.Format_RGB32)
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.width()).copy()


def test_the_arrow_of_the_order_is_not_painted_over_the_heading(qtbot):
    with look_put_back() as app:
        theme.apply(app, theme.LIGHT)
        table = NumbersTable("Moves", ("Parameter", "Gradient", "Moves by", "Share"), sorts=True)
        qtbot.addWidget(table)
        table.resize(400, 200)
        table.show_rows([[Entry("a"), Entry("1", 1.0), Entry("2", 2.0), Entry("3", 3.0)]])
        table.sortByColumn(2, Qt.SortOrder.DescendingOrder)
        table.show()
        head = table.horizontalHeader()
        where = QRect(head.sectionViewportPosition(2), 0, head.sectionSize(2), head.height())
        both = painted(head, where)
        head.setSortIndicatorShown(False)
        words = painted(head, where)
        arrow = np.nonzero((both != words).any(axis=0))[0]
        written = np.nonzero((words != words[0, 0]).any(axis=0))[0]
        assert arrow.size
        assert written.size
        assert arrow.min() > written.max()
