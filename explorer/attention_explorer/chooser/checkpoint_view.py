"""What a checkpoint is, on one page: facts, memory, what works with it, and why it cannot be opened."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.widgets.notice_bar import NoticeBar
from attention_explorer.widgets.page import scrolling, wrapped
from attention_models.files.memory import in_bytes
from attention_models.protocol.hub import HubListing
from attention_models.protocol.loading import Described
from attention_models.protocol.values import Capability, CheckpointInfo, StackInfo

FAMILIES = {
    "causal": "continues a text, each token seeing what stands before it",
    "masked": "fills in masked words, each token seeing all others",
    "encoder": "turns a text into vectors; it says no words",
    "seq2seq": "reads one text and writes another (encoder and decoder)",
    "vision": "looks at pictures",
}
CLASSIFIERS = {
    "text": "tells classes of texts apart",
    "token": "labels each token",
    "span": "answers questions by where in a text the answer starts and ends",
    "choice": "chooses between several texts",
}


class CheckpointView(QWidget):
    """Empty until `show_sentence` or `show_described`. Its facts can be selected and copied."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self.setAccessibleName("What the chosen checkpoint is")
        self.refusal = NoticeBar(dismissable=False)
        self.title = wrapped(role="heading")
        self.summary = wrapped(role="dim")
        self._facts = QWidget()
        self._rows: list[tuple[QLabel, QLabel | None]] = []
        self._is_wide = True
        self._area: QScrollArea = scrolling(self._facts)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.title)
        column.addWidget(self.summary)
        column.addWidget(self.refusal)
        column.addWidget(self._area, 1)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.refusal.set_theme(theme)

    def show_sentence(self, title: str, sentence: str, is_refusal: bool = False) -> None:
        """Say something in place of facts: what is being done, or why there are none."""
        self.title.setText(title)
        self.summary.setText("" if is_refusal else sentence)
        self.summary.setVisible(not is_refusal and bool(sentence))
        self._show_refusal(sentence if is_refusal else "")
        self._show_facts([], ())

    def show_described(self, described: Described, listing: HubListing | None = None) -> None:
        """Show all that is known; `listing` adds where on a hub it comes from."""
        info = described.info
        if info is None:
            self.show_sentence(_last_part(described.request.reference), described.refusal, is_refusal=True)
            return
        self.title.setText(info.name)
        said = " ".join(sentence for sentence in (info.summary, info.look) if sentence)
        self.summary.setText(said)
        self.summary.setVisible(bool(said))
        self._show_refusal(described.refusal)
        self._show_facts(facts(described, listing), described.capabilities)

    @property
    def text(self) -> str:
        """Everything on the page, a line a fact."""
        labels = [label.text() for label in self._facts.findChildren(QLabel)]
        return "\n".join([self.title.text(), self.summary.text(), self.refusal.text, *labels])

    def _show_refusal(self, sentence: str) -> None:
        if sentence:
            self.refusal.show_notice("error", sentence)
        else:
            self.refusal.hide()

    def _show_facts(self, rows: list[tuple[str, str]], capabilities: tuple[Capability, ...]) -> None:
        self._rows = [(wrapped(name, "dim"), _value(value)) for name, value in rows]
        if capabilities:
            heading = wrapped("What works with it", "title")
            heading.setContentsMargins(0, 10, 0, 0)
            self._rows.append((heading, None))
        for one in capabilities:
            label = wrapped(f"{'✓' if one.works else '✕'}  {one.name}", "" if one.works else "dim")
            label.setAccessibleName(f"{one.name}: {'works' if one.works else 'does not work'}")
            self._rows.append((label, wrapped(one.why, "dim")))
        self._arrange()

    def _arrange(self) -> None:
        """Names beside their values where there is room, else above them."""
        self._is_wide = self._has_room()
        page = QWidget()
        grid = QGridLayout(page)
        grid.setContentsMargins(0, 4, 8, 4)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(6 if self._is_wide else 2)
        grid.setColumnStretch(1, 1)
        top = Qt.AlignmentFlag.AlignTop
        row = 0
        for name, value in self._rows:
            beside = self._is_wide and value is not None
            name.setMinimumWidth(self._name_width() if beside else 0)
            grid.addWidget(name, row, 0, 1, 1 if beside else 2, top)
            if value is not None and not beside:
                row += 1
            if value is not None and (beside or value.text()):
                grid.addWidget(value, row, 1 if beside else 0, 1, 1 if beside else 2, top)
            row += 1
        grid.setRowStretch(row, 1)
        self._area.setWidget(page)  # deletes the page before, whose labels are on this one now
        self._facts = page

    def _name_width(self) -> int:
        return self.fontMetrics().horizontalAdvance("✓  Naming what it sees") + 12

    def _has_room(self) -> bool:
        return self.width() >= 3 * self._name_width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._has_room() != self._is_wide:
            self._arrange()


def facts(described: Described, listing: HubListing | None = None) -> list[tuple[str, str]]:
    """What is said of a checkpoint, name and value, in the order of the page."""
    info = described.info
    if info is None:
        return []
    head = info.class_head
    rows = [
        ("Kind", f"{info.architecture}: {CLASSIFIERS[head.of] if head else FAMILIES.get(info.family, info.family)}"),
        ("Parameters", _count(info.parameters)),
        ("Attention", "; ".join(_stack(stack, info) for stack in info.stacks) or "none"),
    ]
    if info.weights_only:
        rows.append(("Shown", info.weights_only))
    if info.family == "vision":
        rows.append(("Classes", f"{info.vocabulary:,}" if info.vocabulary else "none"))
    else:
        rows.append(("Longest text", f"{info.context:,} tokens" if info.context is not None else "no bound of its own"))
        rows.append(("Vocabulary", f"{info.vocabulary:,} tokens"))
    rows += [("Memory", _memory(described)), ("Files", _files(info, listing))]
    return rows


def _memory(described: Described) -> str:
    sizes = dict(described.weights)
    half = sizes.get("bfloat16", 0)
    parts = [f"{in_bytes(sizes.get('float32', 0))} in float32, {in_bytes(half)} in bfloat16 or float16"]
    if described.text_bytes:
        what = "the weights" if described.info is not None and described.info.weights_only else "q, k, v"
        parts.append(
            f"{in_bytes(described.text_bytes)} more for {described.text_tokens:,} tokens ({what}, the residual stream)"
        )
    if described.free is not None:
        parts.append(f"{in_bytes(described.free)} are free ({described.where})")
    return _kept_together("\n".join(parts))


def _files(info: CheckpointInfo, listing: HubListing | None) -> str:
    if listing is None:
        return (
            _kept_together(in_bytes(info.file_bytes)) + f" in {info.folder}" + (f", {info.gguf}" if info.gguf else "")
        )
    here = listing.size - listing.missing
    count = f"{len(listing.files)} file{'s' if len(listing.files) > 1 else ''}"
    parts = [f"{in_bytes(listing.size)} in {count}, commit {listing.commit[:10]}"]
    if here > listing.size // 100 and listing.missing:  # config.json came with looking it up
        parts.append(f"{in_bytes(here)} are here already")
    if listing.licence:
        parts.append(f"licence {listing.licence}")
    return _kept_together("; ".join(parts))


def _stack(stack: StackInfo, info: CheckpointInfo) -> str:
    name = "" if len(info.stacks) == 1 else f"{stack.stack} "
    layers = f"{stack.layers} layer{'s' if stack.layers > 1 else ''}"
    heads = f"{stack.heads} head{'s' if stack.heads > 1 else ''}"
    size = f" of {info.head_dim}" if info.head_dim and not info.weights_only else ""
    shared = f" sharing {stack.key_heads} keys and values" if 0 < stack.key_heads < stack.heads else ""
    return f"{name}{layers} × {heads}{size}{shared}"


def _kept_together(text: str) -> str:
    """Without a line that ends between a number and its unit."""
    return re.sub(r"(?<=\d) (?=[kMGT]?B\b|bytes)", "\N{NO-BREAK SPACE}", text)


def _count(number: int) -> str:
    for unit, size in (("billion", 10**9), ("million", 10**6), ("thousand", 10**3)):
        if number >= size:
            return f"{number / size:,.1f} {unit}"
    return f"{number}"


def _value(text: str) -> QLabel:
    label = wrapped(text)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
    return label


def _last_part(reference: str) -> str:
    return reference.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1] or reference
