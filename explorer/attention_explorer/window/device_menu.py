"""The button that says where the model runs, and its menu: devices with their free memory, and number formats."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from attention_explorer.session.intents import Place
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_models.protocol.loading import DevicesRequest, DevicesView
from attention_models.protocol.values import UNIT_ROUNDOFFS, CheckpointInfo, DeviceInfo, Placement

_FORMATS = {
    "float32": "as precise as this program compares",
    "bfloat16": "half the memory, coarse numbers",
    "float16": "half the memory, no very large numbers",
}


class DeviceMenu(QToolButton):
    """Asks which devices there are when the menu opens, since free memory changes; it fills in when that is known."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setAccessibleName("Device and number format")
        self.setToolTip("Where the model runs, and in which number format (Ctrl+Shift+D)")
        self.setShortcut("Ctrl+Shift+D")
        self.choices = QMenu(self)
        self.choices.setToolTipsVisible(True)
        self.setMenu(self.choices)
        self.choices.aboutToShow.connect(lambda: session.request(DevicesRequest()))
        session.changed.connect(self.show_state)
        self._fill(session.state)

    def show_state(self, old: State, new: State) -> None:
        loaded = new.results.loaded
        if loaded is not None and loaded is not old.results.loaded:
            self.setText(f"{loaded.device} {loaded.dtype}")
        if new.results.of(DevicesView) is not old.results.of(DevicesView) or loaded is not old.results.loaded:
            self._fill(new)
        self.setVisible(loaded is not None)

    def _fill(self, state: State) -> None:
        self.choices.clear()
        loaded, view = state.results.loaded, state.results.of(DevicesView)
        self.setVisible(loaded is not None)
        if loaded is None:
            return
        now = loaded.placement
        known = view.devices if view is not None else (DeviceInfo(now.device, loaded.device, None, None),)
        self._section("Run on", "device", [(d.name, _device_text(d), "") for d in known], now)
        formats = [
            (name, f"{name}: {_FORMATS[name]}", f"Rounding moves a number by up to {share:.0e} of its size")
            for name, share in UNIT_ROUNDOFFS.items()
        ]
        self.choices.addSeparator()
        self._section("Number format", "dtype", formats, now)
        why_fixed = _why_fixed(loaded.info)
        if why_fixed:
            for action in self.choices.actions():
                action.setEnabled(False)
            self.choices.addSeparator()
            self.choices.addAction(why_fixed).setEnabled(False)

    def _section(self, title: str, field: str, entries: list[tuple[str, str, str]], now: Placement) -> None:
        """A choice of `field` of the placement: (value, text, tooltip) each."""
        self.choices.addAction(title).setEnabled(False)  # the style draws no text in a section's line
        group = QActionGroup(self.choices)
        for value, text, tip in entries:
            action = group.addAction(text)
            action.setCheckable(True)
            action.setChecked(value == getattr(now, field))
            action.setToolTip(tip or text)
            wanted = replace(now, **{field: value})
            action.triggered.connect(lambda _on=False, wanted=wanted: self.session.dispatch(Place(wanted)))
            self.choices.addAction(action)


def _why_fixed(info: CheckpointInfo) -> str:
    """Why it cannot be put elsewhere; "" where it can."""
    if info.textbook:
        return "Textbook models stay on the CPU in float32"
    return "A model from a Python program stays where that put it" if info.borrowed else ""


def _device_text(device: DeviceInfo) -> str:
    if device.free is None:
        return device.label
    of = f" of {device.total / 1e9:.0f}" if device.total else ""
    return f"{device.label}: {device.free / 1e9:.1f}{of} GB free"
