"""The real program, in a process of its own, with somebody at the keys who writes down what was typed and when.

Started by `kills.py`: `python typing_program.py JOURNAL SESSION`. The keys go into the input as a person's do; now and
then the session is saved, and the theme changed. Each line of the journal is the time of a key and how many were typed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtTest import QTest

from attention_explorer import app
from attention_explorer.window import window

PAUSE = 25  # ms between two keys
MOST = 400
LETTERS = "abcdefghij"


def typed(count: int) -> str:
    """The text after so many keys: a word of nine letters and a space, again and again."""
    return "".join(" " if i % 10 == 9 else LETTERS[i // 10 % 10] for i in range(count))


class Typing(window.MainWindow):
    """Types as long as the program lives."""

    journal = session_file = Path()

    def start(self) -> None:
        super().start()
        self.count = 0
        self.input.text.selectAll()
        self.keys = QTimer(self)
        self.keys.timeout.connect(self.press)
        self.keys.start(PAUSE)

    def press(self) -> None:
        if self.count >= MOST:
            return
        self.count += 1
        QTest.keyClicks(self.input.text, typed(self.count)[-1])
        with self.journal.open("a") as stream:
            stream.write(f"{time.time()} {self.count}\n")
        if self.count % 60 == 0:
            self.sessions._write(self.session_file)
        if self.count % 70 == 0:
            self.set_theme_name("dark" if self.theme_name == "light" else "light")


if __name__ == "__main__":
    Typing.journal, Typing.session_file = (Path(argument) for argument in sys.argv[1:])
    window.MainWindow = Typing  # type: ignore[misc]
    sys.exit(app.main([]))
