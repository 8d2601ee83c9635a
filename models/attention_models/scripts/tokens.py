"""The tokens on screen as a script: how the tokenizer makes ids and pieces of the text, or patches of a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from attention_models.decoding.decode import written_text
from attention_models.forward.batches import pad_id, targets_of
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model, Target
from attention_models.forward.vision import VisionModel
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.errors import InputError
from attention_models.protocol.running import ForwardRequest
from attention_models.protocol.values import Token
from attention_models.scripts.loading import load_tokenizer
from attention_models.scripts.pictures import prepare
from attention_models.scripts.script_text import Script
from attention_models.text.reading import SURROGATES
from attention_models.text.templates import render
from attention_models.text.tokens import (
    byte_alphabet,
    joins_before,
    piece_bytes,
    spells_alike,
    whole_characters,
    without_invented_space,
)

_ARCS = "The arcs above the tokens are a row of a head's weights: Head and Cell have the lines of them."


def write(request: ForwardRequest, context: Context) -> Script:
    return tokens_script(context.run(request.ticket))


@torch.no_grad()
def tokens_script(run: CurrentRun) -> Script:
    """Of a text, a pair, a conversation, one of a batch, and of what the decoder is made to say; or of a picture.

    Raises:
        InputError: the tokenizer is an object of another program, or there are too many tokens.
    """
    model, trace = run.model, run.trace
    if isinstance(model, VisionModel):
        return _picture(model, run)
    script = Script(f"{model.info.name}: the tokens of the input", _ARCS if trace.sites else "")
    load_tokenizer(script, model)
    read, written = trace.source or trace.tokens, trace.tokens if trace.source else ()
    given = run.text
    batch = given if isinstance(given, Batch) else None
    _Side(script, model, read, "" if not written else "source ").of_text(given)
    if written:
        target = targets_of(batch, run.written)[batch.shown] if batch is not None else run.written
        _Side(script, model, written, "target ").of_target(target)  # type: ignore[arg-type]
    return script


class _Side:
    """Tokens that the encoder reads, or those that the decoder is given: lines that end with `ids`."""

    def __init__(self, script: Script, model: Model, tokens: Sequence[Token], called: str) -> None:
        self.script, self.model, self.called = script, model, called
        self.tokens = tokens
        self.padding = sum(token.padding for token in tokens)
        self.pads_left = bool(tokens) and tokens[0].padding
        self.own = [token for token in tokens if not token.padding]

    # ------------------------------------------------------------------ what was read

    def of_text(self, given: Any) -> None:
        batch = given if isinstance(given, Batch) else None
        prompt = batch.prompt if batch is not None else given
        self.script.section(f"the {self.called}text on screen")
        if isinstance(prompt, Pair):
            self._pair(prompt)
        elif isinstance(prompt, Chat):
            self._chat(prompt)
        elif isinstance(prompt, str):
            self._plain(prompt)
        else:
            self._as_ids("no text is read as these tokens: what the model wrote is among them")
        self._pad(batch)
        self._compare()

    def of_target(self, target: Target) -> None:
        script, start = self.script, self.own[0].id
        script.section("what the decoder is given")
        if not isinstance(target, str):
            self._as_ids("the model wrote them itself: Decode has the choice of each")
        else:
            script.text("text", target)
            self._on_screen()
            script.section("the computation")
            script.line("encoded = tokenizer(text_target=text, add_special_tokens=False, return_offsets_mapping=True)")
            before = [token.id for token in self.own[: len(self.own) - self._count(target, text_target=True)]]
            script.line(f'ids = {before} + encoded["input_ids"]', f"{start} is what the decoder starts with")
            self._spans(target, before, text_target=True)
        self._pad(None)
        self._compare()

    def _plain(self, text: str) -> None:
        script, prefix = self.script, self.model.info.prefix
        safe = SURROGATES.sub("\ufffd", text)
        script.text("text", safe, "half a character stands for what is none" if safe != text else "")
        self._on_screen()
        script.section("the computation")
        script.line("encoded = tokenizer(text, return_offsets_mapping=True)")
        script.line('ids = encoded["input_ids"]')
        before: list[int] = []
        if prefix:
            before = self._called(prefix, add_special_tokens=False)["input_ids"]
            script.line(
                f'ids = tokenizer({prefix!r}, add_special_tokens=False)["input_ids"] + ids', "it was trained with that"
            )
        self._spans(safe, before)

    def _pair(self, pair: Pair) -> None:
        script = self.script
        first, second = (SURROGATES.sub("\ufffd", text) for text in (pair.first, pair.second))
        script.text("first", first)
        script.text("second", second)
        self._on_screen()
        script.section("the computation")
        script.line("encoded = tokenizer(first, second, return_token_type_ids=True, return_offsets_mapping=True)")
        script.line('ids = encoded["input_ids"]')
        script.line("of = encoded.sequence_ids(0)", "0: first, 1: second, None: put there by the template")
        encoded = self._called(first, second, return_token_type_ids=True, return_offsets_mapping=True)
        if [tuple(span) for span in encoded["offset_mapping"]] == [(token.start, token.end) for token in self.own]:
            script.line(
                "covers = [[first, second][text][start:end] if text is not None else ''\n"
                '          for text, (start, end) in zip(of, encoded["offset_mapping"])]'
            )
        else:
            self._covers_nothing()
        if any(token.segment for token in self.own):
            script.show("tokens of segment 1", 'sum(encoded["token_type_ids"])', float(sum(encoded["token_type_ids"])))

    def _chat(self, chat: Chat) -> None:
        script, model = self.script, self.model
        rendered = render(model.tokenizer, chat, model.info.name)
        *before, last = chat.turns
        turns = [f"    {{'role': {turn.role!r}, 'content': {turn.text!r}}}," for turn in chat.turns]
        script.line("\n".join(["turns = [", *turns, "]"]))
        self._on_screen()
        script.section("the computation")
        if "strftime_now" in str(model.tokenizer.chat_template):
            script.remark("The template writes the date of the day on which this runs.")
        if last.role != "assistant" or not before:
            asks = last.role != "assistant"
            script.line(f"text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt={asks})")
        else:
            head = render(model.tokenizer, Chat(tuple(before)), model.info.name).text
            if before[-1].role == "assistant" or not rendered.text.startswith(head):
                raise InputError(
                    "This conversation ends with two turns of the assistant, which no template call gives."
                )
            script.line("text = tokenizer.apply_chat_template(turns[:-1], tokenize=False, add_generation_prompt=True)")
            script.line(f"text += {rendered.text[len(head) :]!r}", "the last turn, which the model goes on with")
        script.line("encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)")
        script.line('ids = encoded["input_ids"]')
        self._spans(rendered.text, [], add_special_tokens=False)

    def _as_ids(self, why: str) -> None:
        """Tokens that no text was made into: the other way round, the text that they make."""
        script, ids = self.script, [token.id for token in self.own]
        self._on_screen()
        script.section("the computation")
        script.line(f"ids = on_screen[{self._place}].tolist()" if self.padding else "ids = on_screen.tolist()", why)
        script.line("text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)")
        script.line("print(text)")
        script.show("letters of the text that they make", "len(text)", float(len(written_text(self.model, ids))))
        script.line("covers = [tokenizer.decode([id_]) for id_ in ids]")

    # ------------------------------------------------------------------ what it covers

    def _called(self, *texts: str, text_target: bool = False, **options: bool) -> Any:
        """The tokenizer's own call, as the script makes it."""
        if text_target:
            return self.model.tokenizer(text_target=texts[0], add_special_tokens=False, verbose=False, **options)
        return self.model.tokenizer(*texts, verbose=False, **options)

    def _count(self, text: str, text_target: bool = False) -> int:
        return len(self._called(text, text_target=text_target)["input_ids"])

    def _spans(self, text: str, before: Sequence[int], text_target: bool = False, **options: bool) -> None:
        """Lines that end with `covers`: of each token the characters that it covers, as the strip's tooltips say."""
        script, ids = self.script, [token.id for token in self.own]
        raw = self._called(text, text_target=text_target, return_offsets_mapping=True, **options)["offset_mapping"]
        spans = [(0, 0)] * len(before) + [tuple(span) for span in raw]
        wanted = [(token.start, token.end) for token in self.own]
        code = 'encoded["offset_mapping"]'
        if spans != wanted:
            script.uses("import unicodedata", "from collections.abc import Callable, Sequence")
            script.uses("from functools import cache")
            script.source_of(byte_alphabet, piece_bytes, spells_alike, without_invented_space)
            script.source_of(whole_characters, joins_before)
            script.line(
                f'spans = without_invented_space(text, encoded["input_ids"], {code}, tokenizer.convert_ids_to_tokens)'
            )
            script.remark("Marks that it composed with the letter before them, or dropped, belong to that letter:")
            code = "whole_characters(text, spans)"
            found = without_invented_space(text, ids[len(before) :], raw, self.model.piece)
            spans = [(0, 0)] * len(before) + whole_characters(text, found)
        if spans != wanted:
            self._covers_nothing()
            return
        filler = f"[''] * {len(before)} + " if before else ""
        script.line(f"covers = {filler}[text[start:end] for start, end in {code}]")

    def _covers_nothing(self) -> None:
        self.script.remark("Which characters each covers is told in more than a few lines here: it is left out.")
        self.script.line("covers = [''] * len(ids)")

    # ------------------------------------------------------------------ padding, and what is on screen

    @property
    def _place(self) -> str:
        """Where in the padded row the text's own tokens are."""
        return f"{self.padding}:" if self.pads_left else f":{len(self.own)}"

    def _on_screen(self) -> None:
        ids = torch.tensor([token.id for token in self.tokens])
        self.script.tensor("on_screen", ids, f"({len(ids)},) the ids on screen")

    def _pad(self, batch: Batch | None) -> None:
        if not self.padding:
            return
        script, pad = self.script, next(token.id for token in self.tokens if token.padding)
        filler = _pad_code(self.model, pad)
        longest = f"longest = {len(self.tokens)}"
        texts = batch.texts if batch is not None else ()
        if texts and all(isinstance(text, str) for text in texts) and not self.model.info.prefix:
            safe = [SURROGATES.sub("\ufffd", str(text)) for text in texts]
            script.line("\n".join(["texts = [", *(f"    {text!r}," for text in safe), "]"]), "all that ran together")
            longest = 'longest = max(len(tokenizer(text)["input_ids"]) for text in texts)'
        script.line(longest, "tokens of the longest text of the batch")
        script.line(f"padding = [{filler}] * (longest - len(ids))")
        script.line(f"ids = {'padding + ids' if self.pads_left else 'ids + padding'}")
        empty = "[''] * len(padding)"
        script.line(f"covers = {f'{empty} + covers' if self.pads_left else f'covers + {empty}'}")

    def _compare(self) -> None:
        script = self.script
        script.line("pieces = tokenizer.convert_ids_to_tokens(ids)", "as they are spelled in the vocabulary")
        script.show(f"{self.called}tokens", "len(ids)", float(len(self.tokens)))
        script.line(
            "for place, (id_, piece, cover, shown) in enumerate(zip(ids, pieces, covers, on_screen.tolist())):\n"
            f'    print(f"{self.called}{{place}} {{piece!r}} covers {{cover!r}}, id: {{id_}}   on screen: {{shown}}")'
        )


def _pad_code(model: Model, pad: int) -> str:
    for name in ("pad_token_id", "eos_token_id"):
        if getattr(model.tokenizer, name, None) == pad == pad_id(model):
            return f"tokenizer.{name}"
    return str(pad)


def _picture(model: VisionModel, run: CurrentRun) -> Script:
    """How a picture becomes patches, one a token."""
    trace = run.trace
    seen = trace.picture
    assert seen is not None
    script = Script(f"{model.info.name}: the patches of the picture", _ARCS if trace.sites else "")
    prepare(script, model, trace)
    high, wide = seen.pixels.shape[0] // seen.rows, seen.pixels.shape[1] // seen.columns
    script.line(
        f"patches = pixels.unfold(2, {high}, {high}).unfold(3, {wide}, {wide})",
        f"(1, {model.info.channels}, {seen.rows}, {seen.columns}, {high}, {wide})",
    )
    script.show("rows of patches", "patches.shape[2]", float(seen.rows))
    script.show("columns of patches", "patches.shape[3]", float(seen.columns))
    before = ", ".join(token.label for token in trace.tokens[: seen.first])
    code = (
        f"{seen.first} + patches.shape[2] * patches.shape[3]" if seen.first else "patches.shape[2] * patches.shape[3]"
    )
    if before:
        script.remark(f"Before them the model itself puts {before}, learned.")
    script.show("tokens", code, float(len(trace.tokens)))
    script.remark("What is drawn is what the model sees, with the normalisation taken back:")
    if getattr(model.processor, "do_normalize", False):
        script.line("mean = torch.tensor(processor.image_mean)[:, None, None]")
        script.line("deviation = torch.tensor(processor.image_std)[:, None, None]")
        script.line("seen = pixels[0].float() * deviation + mean")
    else:
        script.line("seen = pixels[0].float()")
    colours = ("red", "green", "blue") if model.info.channels == 3 else ("grey",)
    shape = f"({len(colours)}, {seen.pixels.shape[0]}, {seen.pixels.shape[1]}) {', '.join(colours)}"
    script.line("seen = (seen.clamp(0, 1) * 255).round()", shape)
    for row, column in sorted({(0, 0), (seen.rows // 2, seen.columns // 2), (seen.rows - 1, seen.columns - 1)}):
        down, across = slice(row * high, (row + 1) * high), slice(column * wide, (column + 1) * wide)
        for channel, colour in enumerate(colours):
            shown = float(seen.pixels[down, across, channel].astype(np.float64).mean())
            name = f"{colour} of patch r{row + 1} c{column + 1}, its mean"
            script.show(name, f"seen[{channel}, {down.start}:{down.stop}, {across.start}:{across.stop}].mean()", shown)
    return script
