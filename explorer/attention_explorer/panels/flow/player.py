"""Goes from step to step by itself: moves into one, halts, and moves on. Knows no picture."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal

_FRAME = 16  # ms
_TRAVEL = 420  # ms from step to step


class Player(QObject):
    """`count` steps. `at` is -1 until the first; `travel` is how much of the way into the step is gone, 0 to 1."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.count = 0
        self.at = -1
        self.travel = 1.0
        self.playing = False
        self.halt_ms = 2600
        self.jumps = False  # nothing moves between steps
        self._clock = QElapsedTimer()
        self._frames = QTimer(self)
        self._frames.setInterval(_FRAME)
        self._frames.timeout.connect(self._move)
        self._halt = QTimer(self)
        self._halt.setSingleShot(True)
        self._halt.timeout.connect(self._next)

    def set_count(self, count: int) -> None:
        """Other steps. One that is shown stays where there still is such a one."""
        if count != self.count:
            self.count = count
            if self.at >= count:
                self.stop()

    def play(self) -> None:
        """Go on from here; from the first step after the last."""
        if self.count and not self.playing:
            self.playing = True
            self._enter(0 if self.at + 1 >= self.count else self.at + 1)

    def pause(self) -> None:
        self.playing = False
        self._halt.stop()
        self._arrive()

    def step(self, by: int) -> None:
        """One step on or back, and no further."""
        target = self.at + by
        if 0 <= target < self.count:
            self.playing = False
            self._halt.stop()
            self._enter(target)

    def stop(self) -> None:
        """Back to before the first step."""
        self.playing, self.at, self.travel = False, -1, 1.0
        self._halt.stop()
        self._frames.stop()
        self.changed.emit()

    def _next(self) -> None:
        if self.at + 1 < self.count:
            self._enter(self.at + 1)
        else:
            self.pause()

    def _enter(self, step: int) -> None:
        self.at = step
        if self.jumps:
            self._arrive()
            return
        self.travel = 0.0
        self._clock.start()
        self._frames.start()
        self.changed.emit()

    def _move(self) -> None:
        share = min(1.0, self._clock.elapsed() / _TRAVEL)
        if share >= 1:
            self._arrive()
            return
        self.travel = share * share * (3 - 2 * share)  # starts and ends gently
        self.changed.emit()

    def _arrive(self) -> None:
        self._frames.stop()
        self.travel = 1.0
        if self.playing:
            self._halt.start(self.halt_ms)
        self.changed.emit()
