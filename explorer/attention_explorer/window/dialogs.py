"""Pictures of the window as files."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QBuffer, QCoreApplication, QEvent, QIODevice
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QMessageBox, QWidget

from attention_explorer.session.intents import AddTexts, OpenCheckpoint, SetPicture, Show
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice
from attention_explorer.widgets import dialogs as save_dialog
from attention_explorer.widgets.dialogs import Kind, answer_of, ask_where_to_save, may_replace
from attention_models.files.safe_files import not_written, write_whole
from attention_models.files.text_stream import read_lines
from attention_models.files.weights_path import is_ending, path_of_text, weights_path
from attention_models.protocol.batch import Batch
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.export import ExportRequest

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
        from attention_models.files.sample_pictures import SUFFIXES

        endings = " ".join(f"*{suffix}" for suffix in sorted(SUFFIXES))
        path = save_dialog.file_to_open(self._window, "Open a picture", folder, f"Pictures ({endings})")
        if path:
            self.look_at(path)

    def open_texts(self) -> None:
        """Let the person choose a file whose lines are run together."""
        path = save_dialog.file_to_open(self._window, "Open a file of lines", "", "Text (*.txt);;All files (*)")
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
        batch = ran.inputs.prompt if isinstance(ran.inputs.prompt, Batch) else None
        count = 1 if batch is None else len(batch.texts)
        every = False if batch is None or count == 1 else self._wants_every_text(title, batch.shown, count)
        if every is None:
            return
        try:
            path = ask_where_to_save(self._window, title, "attention.npz", WEIGHTS, _weights_path)
        except ExplorerError as error:
            self.session.dispatch(Show(Notice("error", str(error))))
            return
        if path is not None:
            there = [each for each in (path_of_text(path, i) for i in range(count)) if every and each.exists()]
            if there and not may_replace(self._window, title, there[0]):
                return
            self.session.request(ExportRequest(run=ran.run, path=str(path), words=words, every_text=every))

    def _wants_every_text(self, title: str, shown: int, count: int) -> bool | None:
        """Of several texts that ran together, whether all are to be saved or the one shown; None for neither."""
        box = QMessageBox(QMessageBox.Icon.Question, title, f"{count} texts ran together.", parent=self._window)
        box.setInformativeText(
            "Each text's weights are a file of their own, name-1 and so on, which says which of its tokens are padding."
        )
        every = box.addButton(f"All {count} texts", QMessageBox.ButtonRole.AcceptRole)
        one = box.addButton(f"Text {shown + 1} alone", QMessageBox.ButtonRole.AcceptRole)
        box.setEscapeButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.setDefaultButton(every)
        answer_of(box)
        chosen = box.clickedButton()
        return True if chosen is every else False if chosen is one else None


def _weights_path(typed: Path, kind: Kind) -> Path:
    """The name that weights are saved under; one without an ending gets that of the kind that was chosen."""
    return weights_path(typed if is_ending(typed.suffix) else typed.with_name(f"{typed.name}{kind.ending}"))


FORMAT = "PNG"


def save_picture(picture: QPixmap, path: Path) -> str:
    """Write a picture whole or not at all, in the format that the name ends in, else as PNG.

    Returns a sentence for the person where it could not be written, "" where it was.
    """
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not picture.save(buffer, path.suffix.removeprefix(".").upper() or FORMAT):
        return f"No picture can be written as “{path.suffix}”. Give {path.name} a name that ends in .png."
    try:
        write_whole(path, bytes(buffer.data().data()))
    except OSError as error:
        return not_written("The picture", path, error)
    return ""
