"""A file that another program may write while it is open here."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal

_PATIENCE = 150
"""ms: editors write a file in several steps, or write another one and give it the name."""

Stamp = tuple[int, int, int] | None


class WatchedFile(QObject):
    """Says when the content of one file may be another."""

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.path: Path | None = None
        self._stamp: Stamp = None
        self._watcher = QFileSystemWatcher(self)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_PATIENCE)
        self._timer.timeout.connect(self._look)
        self._watcher.fileChanged.connect(lambda _: self._timer.start())
        self._watcher.directoryChanged.connect(lambda _: self._timer.start())

    def watch(self, path: Path | None) -> None:
        """Watch this file, as it is now; None for none."""
        self._timer.stop()
        watched = [*self._watcher.files(), *self._watcher.directories()]
        if watched:
            self._watcher.removePaths(watched)
        self.path, self._stamp = path, None if path is None else _stamp(path)
        if path is not None:
            # with its folder: a file that is replaced by another of its name is no longer watched
            self._watcher.addPaths([str(path), str(path.absolute().parent)])

    def _look(self) -> None:
        if self.path is None:
            return
        stamp = _stamp(self.path)
        if stamp is not None and str(self.path) not in self._watcher.files():
            self._watcher.addPath(str(self.path))
        if stamp is not None and stamp != self._stamp:
            self._stamp = stamp
            self.changed.emit()


def _stamp(path: Path) -> Stamp:
    """What is another where the file was written; None where it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
