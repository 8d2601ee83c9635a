"""The dialogs of files: pictures and weights, and what is said where a file cannot be used."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QWidget

from explorer.session.intents import AddTexts, OpenCheckpoint, SetPicture, Show
from explorer.session.session import Session
from explorer.session.state import Notice
from explorer.widgets import asking
from explorer.widgets.save_dialog import Kind, ask_where_to_save
from models.files.text_lines import read_lines
from models.files.weights_path import weights_path
from models.protocol.errors import ExplorerError
from models.protocol.export import ExportRequest

PICTURES = (Kind("PNG", ".png"), Kind("JPEG", ".jpg", (".jpeg",)))
WEIGHTS = (Kind("NumPy", ".npz"), Kind("safetensors", ".safetensors"))


class FileDialogs:
    """Lets a person choose files to open and to save. `window` is what the dialogs belong to."""

    def __init__(self, window: QWidget, session: Session) -> None:
        self._window = window
        self.session = session

    def open_picture(self) -> None:
        """Let the person choose what a vision model looks at."""
        chosen = self.session.state.document.picture
        folder = str(Path(chosen).parent) if Path(chosen).is_file() else str(Path.home())
        from models.files.sample_pictures import SUFFIXES

        endings = " ".join(f"*{suffix}" for suffix in sorted(SUFFIXES))
        path = asking.file_to_open(self._window, "Open a picture", folder, f"Pictures ({endings})")
        if path:
            self.look_at(path)

    def open_texts(self) -> None:
        """Let the person choose a file whose lines are run together."""
        path = asking.file_to_open(self._window, "Open a file of lines", "", "Text (*.txt);;All files (*)")
        if not path:
            return
        try:
            self.session.dispatch(AddTexts(read_lines(path)))
        except (ExplorerError, ValueError) as error:
            self.session.dispatch(Show(Notice("error", str(error))))

    def look_at(self, path: str) -> None:
        """Give a picture to the model, or say that it reads text."""
        loaded = self.session.state.results.loaded
        if loaded is not None and loaded.info.family == "vision":
            self.session.dispatch(SetPicture(path))
            return
        sentence = f"{Path(path).name} is a picture, and the open model reads text. Open a vision model to look at it."
        self.session.dispatch(
            Show(Notice("info", sentence, action_label="Open vit-cifar10", action=OpenCheckpoint("vit-cifar10")))
        )

    def save_picture(self) -> None:
        """Let the person save the window as a picture."""
        path = ask_where_to_save(self._window, "Save a picture of the window", "attention.png", PICTURES)
        if path is None:
            return
        from explorer.window.saving import save_picture

        self.session.dispatch(Show(None))  # what was said before is no part of the picture
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)  # the panels take its room first
        problem = save_picture(self._window.grab(), path)
        said = Notice("error", problem) if problem else Notice("info", f"The picture is saved: {path}.")
        self.session.dispatch(Show(said))

    def save_weights(self) -> None:
        """Let the person save the weights of every head."""
        ran = self.session.state.ran
        if ran is None:
            return
        title, words = "Save all attention weights", self.session.state.document.view.words
        try:
            path = ask_where_to_save(self._window, title, "attention.npz", WEIGHTS, _weights_path)
        except ExplorerError as error:
            self.session.dispatch(Show(Notice("error", str(error))))
            return
        if path is not None:
            self.session.request(ExportRequest(run=ran.run, path=str(path), words=words))


def _weights_path(typed: Path, kind: Kind) -> Path:
    """The name that weights are saved under; one without an ending gets that of the kind that was chosen."""
    return weights_path(typed if typed.suffix else typed.with_name(f"{typed.name}{kind.ending}"))
