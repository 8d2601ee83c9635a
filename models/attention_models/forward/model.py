"""An open model: its module, its tokenizer, and how a text becomes its input."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.files.memory import KEPT_BYTES, most_tokens
from attention_models.forward.adapter import MergedAdapter
from attention_models.forward.capture import blocks_of, watch_blocks
from attention_models.forward.class_logits import as_choices, logits_of, spread_over_tokens
from attention_models.forward.position_tables import read_as_if_alone
from attention_models.protocol.batch import Batch, check_one_text
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Adapter, Intervention
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.values import CheckpointInfo, SeenPicture, Token
from attention_models.text.reading import TextReader, Use
from attention_models.text.templates import Rendered, render, turn_end
from attention_models.text.tokens import label_tokens, piece_label, special_label

_BYTE = re.compile("<0x[0-9A-F]{2}>")

Given = Prompt | tuple[str, str] | Sequence[int] | Sequence[Mapping[str, object]] | Path | np.ndarray | Tensor
"""What a model takes: a text, a pair of texts, a conversation, ids as they are, or a picture."""

Target = str | list[int] | None
"""What the decoder of an encoder-decoder model has written so far, as words or as ids."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A text as the model takes it."""

    inputs: dict[str, Tensor]  # each (1, tokens); of a batch (texts, tokens)
    tokens: tuple[Token, ...]  # of the stack that predicts
    source: tuple[Token, ...] = ()  # of the encoder, in an encoder-decoder model
    picture: SeenPicture | None = None  # what a vision model looks at
    row: int = 0  # which text of a batch this is


def _as_ids(given: list[Any]) -> list[int]:
    """Whole numbers of any kind, numpy's say, as Python's own."""
    try:
        return [operator.index(id_) for id_ in given]
    except TypeError as cause:
        raise InputError(
            "A list of ids has whole numbers, and a list of turns has tables with role and content."
        ) from cause


def _is_causal(info: CheckpointInfo) -> bool:
    if not info.stacks:  # of a module of one's own they are known once it ran
        return info.family == "causal"
    return any(stack.stack == "decoder" for stack in info.stacks)


class Model:
    """A loaded checkpoint, in eval mode, ready to be run with its attention captured.

    Made by `open_checkpoint`. `module` is transformers' own model, `tokenizer` its own tokenizer, None for one that
    reads no text.
    """

    def __init__(self, info: CheckpointInfo, module: nn.Module, tokenizer: Any) -> None:
        self.info = info
        self.module = module.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.config: Any = getattr(module, "config", None)
        self.seq2seq = info.family == "seq2seq"
        self.module_names: Mapping[nn.Module, str] = {child: name for name, child in module.named_modules()}
        accepted = inspect.signature(module.forward).parameters
        self.forward_options: dict[str, Any] = {"use_cache": False} if "use_cache" in accepted else {}
        if info.weights_only:
            self.forward_options["output_attentions"] = True
        self._accepted = frozenset(accepted)
        decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
        self._byte_level = decoder is not None and b"ByteLevel" in decoder.__getstate__()
        named = {getattr(tokenizer, name, None) for name in ("unk_token_id", "mask_token_id")}
        self._labels: dict[int, str] = {}
        self._rendered: tuple[Chat, Rendered] | None = None
        self.adapter: MergedAdapter | None = None  # that is merged into the weights
        self.position_scheme: object | None = None  # recognised once: see `attention_models.forward.position_schemes`
        self.readout: object | None = None  # found once: see `attention_models.dataflow.readout`
        self.sublayers: object | None = None  # found once: see `attention_models.forward.sublayers`
        self.means: dict[bool, Any] = {}  # by whether an adapter is off: see `attention_models.forward.ablation`
        # tokens that stand for no text; a mask or an unknown word does stand for some
        self._hidden_ids = frozenset(getattr(tokenizer, "all_special_ids", ())) - named
        self._dynamic = _dynamic_rotations(module)
        self.blocks = tuple(blocks_of(module, self.seq2seq, _is_causal(info)))  # (stack, block)
        self.hooks = watch_blocks(module, self.blocks)

    def adapter_as(self, interventions: Iterable[Intervention]) -> AbstractContextManager[None]:
        """While it lasts, the adapter is on or off, as `interventions` say."""
        is_off = any(isinstance(item, Adapter) and not item.on for item in interventions)
        return nullcontext() if self.adapter is None or not is_off else self.adapter.off(self.module)

    def ready(self) -> AbstractContextManager[None]:
        """While it lasts, its modules may be called one by one, as they are within `forward`."""
        return nullcontext()

    def accepts(self, name: str) -> bool:
        """Whether the module's forward takes an argument of this name."""
        return name in self._accepted

    def takes_segments(self, segment_ids: Sequence[int]) -> bool:
        """Whether the module's forward takes them: it tells so many segments apart, or does not count them (XLNet)."""
        config, accepts = self.config, self.accepts("token_type_ids")
        if getattr(config, "model_type", "") == "encoder-decoder":  # two models put together: handed on to the first
            config, encoder = config.encoder, self.module.get_encoder()  # type: ignore[operator]
            accepts = "token_type_ids" in inspect.signature(encoder.forward).parameters
        kinds = getattr(config, "type_vocab_size", 0)
        return accepts and (not kinds or max(segment_ids, default=0) < kinds)

    def forward(self, inputs: Mapping[str, Tensor]) -> Any:
        """Run the module; the result has `logits` where the model has an output head: (batch, tokens, vocabulary).

        A classifier's are (batch, tokens, classes); what it says of a text as a whole stands at every token. A model
        that chooses reads the batch as the choices of one question.
        """
        return self.called(inputs, self.forward_options)

    def called(self, inputs: Mapping[str, Tensor], options: Mapping[str, Any]) -> Any:
        """As `forward`, with other options of the module's own."""
        head = self.info.class_head
        given = as_choices(inputs) if head is not None and head.of == "choice" else inputs
        self.forget_lengths()
        with read_as_if_alone(self, inputs):
            out = self.module(**given, **options)
        if head is not None:
            spread_over_tokens(out, head, inputs["input_ids"].shape)
        elif self.info.pair_head is not None:
            out.logits = logits_of(out)
        return out

    def forget_lengths(self) -> None:
        """Before a pass: rotations that are scaled to the length of a text are then those of this text alone."""
        _forget_lengths(self._dynamic)

    @property
    def scales_at(self) -> int | None:
        """Tokens beyond which rotations are scaled to the length of the text; None where they never are."""
        return min((int(rotary.original_max_seq_len) for rotary in self._dynamic), default=None)  # type: ignore[arg-type]

    @property
    def output_head(self) -> nn.Linear | None:
        """The projection from the residual stream to logits, weight (vocabulary, width); None where there is none."""
        get = getattr(self.module, "get_output_embeddings", None)
        head = get() if callable(get) else None
        return head if isinstance(head, nn.Linear) else None

    @property
    def device(self) -> torch.device:
        # what accelerate has put aside for the moment lies on "meta"
        places = (p.device for p in self.module.parameters() if p.device.type != "meta")
        return next(places, torch.device("cpu"))

    @property
    def dtype(self) -> torch.dtype:
        return next(self.module.parameters()).dtype

    @property
    def dtype_name(self) -> str:
        """ "float32": one of `attention_models.protocol.values.UNIT_ROUNDOFFS`."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def start_id(self) -> int:
        """What an encoder-decoder model's decoder begins with."""
        generation = getattr(self.module, "generation_config", None)
        for config in (self.config, generation):
            for name in ("decoder_start_token_id", "bos_token_id", "pad_token_id"):
                value = getattr(config, name, None)
                if isinstance(value, int):
                    return value
        raise InputError(f"{self.info.name} does not say with which token its decoder starts.")

    def encode(self, text: Given, target: str | list[int] | None = None) -> Encoded:
        """Turn a text or a conversation (or ids as they are) into the model's input. Of a batch, the text shown alone.

        Raises:
            InputError: nothing to run, more than the model's context takes, or a conversation that the template
                refuses.
        """
        if isinstance(text, tuple):
            text = Pair.of(text)
        if isinstance(text, Batch):
            text = text.prompt
        if isinstance(text, (np.ndarray, Tensor)):
            text = self._ids_of(text)
        check_one_text(text)
        if isinstance(text, Path):
            raise InputError(f"{self.info.name} reads text. Open a vision model to look at a picture.")
        if not isinstance(text, (str, list, Chat, Pair)):
            raise InputError(
                f"{self.info.name} reads text, a list of ids or a list of turns, not a {type(text).__name__}."
            )
        tokens, segment_ids = self._tokenized(text)
        self._check_known(tokens)
        ids = torch.tensor([[token.id for token in tokens]], device=self.device)  # (1, tokens)
        inputs = {"input_ids": ids}
        if self.accepts("attention_mask"):
            inputs["attention_mask"] = torch.ones_like(ids)
        if any(segment_ids) and self.takes_segments(segment_ids):  # it reads all as 0 where it is given none
            inputs["token_type_ids"] = torch.tensor([[*segment_ids]], device=self.device)
        if not self.seq2seq:
            return Encoded(inputs, tokens)
        written = self.tokenize_target(target) if target else self._start_of_target(target)
        self._check_known(written)
        start = Token(self.start_id, self.piece(self.start_id), "", 0, 0, special=True, label="⟨start⟩")
        inputs["decoder_input_ids"] = torch.tensor([[self.start_id, *(t.id for t in written)]], device=self.device)
        return Encoded(inputs, (start, *written), tokens)

    def _ids_of(self, array: np.ndarray | Tensor) -> list[int]:
        """The ids of an array (tokens,), or (1, tokens) as transformers gives it."""
        numbers = array.detach().cpu().numpy() if isinstance(array, Tensor) else array
        if numbers.dtype.kind in "iu" and (numbers.ndim == 1 or (numbers.ndim == 2 and len(numbers) == 1)):
            ids: list[int] = numbers.reshape(-1).tolist()
            return ids
        raise InputError(
            f"{self.info.name} reads text, or ids: one row of whole numbers. This array is {numbers.shape} of "
            f"{numbers.dtype}. Open a vision model to look at a picture."
        )

    def _start_of_target(self, target: str | list[int] | None) -> tuple[Token, ...]:
        """What a target begins with where nothing was typed of it yet; nothing where none is typed."""
        if target != "":
            return ()
        return self._labelled([self._token(id_, added=True) for id_ in self._reader.start_of_targets])

    def _check_known(self, tokens: Sequence[Token]) -> None:
        known = self.info.vocabulary
        strange = [token.id for token in tokens if not 0 <= token.id < known]
        if known and strange:
            advice = (
                "Give the tokenizer that it was trained with, or vocabulary="
                if self.info.borrowed
                else "Its tokenizer is another model's: fetch both again"  # ids that were given were looked at before
            )
            raise InputError(f"{self.info.name} knows {known:,} tokens, and {strange[0]:,} is none of them. {advice}.")

    def tokenize_target(self, target: str | list[int]) -> tuple[Token, ...]:
        """The tokens of what a decoder is made to say: as its tokenizer's own call begins a target, and with no end.

        Raises:
            InputError: as `tokenize`, in sentences that speak of the target.
        """
        try:
            return self._tokenized(target, "target")[0]
        except InputError as error:
            sentence = str(error).replace("This text", "The target", 1).replace("this text", "the target", 1)
            raise InputError(sentence, error.cut_to, of_target=True) from None

    def target_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of many targets at once, as `tokenize_target` finds them of one; none is refused for its length."""
        return self._reader.target_ids(texts)

    def tokenize(self, text: Prompt | list[Any], special: bool = True) -> tuple[Token, ...]:
        """The tokens of `text`, those that the model expects around it included if `special`.

        Raises:
            InputError: no text, no token left of it, more tokens than fit, or ids outside the vocabulary.
        """
        return self._tokenized(text, "input" if special else "bare")[0]

    def _tokenized(self, text: Prompt | list[Any], use: Use = "input") -> tuple[tuple[Token, ...], Sequence[int]]:
        """As `tokenize`, with the tokens' segment ids; empty where the tokenizer gives none."""
        if isinstance(text, list) and text and isinstance(text[0], Mapping):
            text = Chat.of(text)
        if isinstance(text, Batch):
            text = text.prompt
        if isinstance(text, Chat):
            return self._tokenize_chat(text), ()
        if isinstance(text, list):
            text = _as_ids(text)
            self._check_ids(text, use)
            return self._labelled([self._token(id_) for id_ in text]), ()
        if isinstance(text, Pair):
            return self._tokenize_pair(text)
        if not text or (self.seq2seq and use == "input" and not text.strip()):  # after blanks alone a text can go on
            raise InputError("The input is empty. Type a sentence for the model to read.")
        reading = self._reader.read(text, use)
        ids, spans = reading.ids, reading.spans
        if all(start == end for start, end in spans) and (not ids or reading.all_placed):
            raise InputError(
                f"{self.info.name}'s tokenizer leaves nothing of this text: it has only characters that it drops "
                "(control characters, say). Type a word."
            )
        limit = self._limit(use)
        if limit is not None and len(ids) > limit:
            raise InputError(
                f"This text is {len(ids):,} tokens long; {self.info.name} takes {limit:,}{self._why_no_more}. "
                f"Nothing was cut. Shorten it, or keep the first {limit:,} tokens.",
                cut_to=self._reader.fitting(text, spans, limit, use),
            )
        tokens = [
            self._token(id_, text[start:end], start, end, added)
            for id_, (start, end), added in zip(ids, spans, reading.added, strict=True)
        ]
        return self._labelled(tokens, reading.words), reading.segment_ids

    def _tokenize_pair(self, pair: Pair) -> tuple[tuple[Token, ...], Sequence[int]]:
        """The tokens of two texts as the tokenizer's own template joins them, each with the text that it is of."""
        name = self.info.name
        if not self.info.pairs:
            why = "it goes on with one" if self.info.family == "causal" else "its tokenizer has no template for pairs"
            raise InputError(f"{name} reads no pairs of texts: {why}. Give it one text.")
        for which, text in (("first", pair.first), ("second", pair.second)):
            if not text.strip():
                raise InputError(f"The {which} text of the pair is empty. Type a sentence for the model to read.")
        reading = self._reader.read_pair(pair)
        limit = self._limit("input")
        if limit is not None and len(reading.ids) > limit:
            raise InputError(
                f"These two texts are {len(reading.ids):,} tokens long together; {name} takes {limit:,}"
                f"{self._why_no_more}. Nothing was cut. Shorten one of them."
            )
        tokens = []
        for i, (id_, (start, end)) in enumerate(zip(reading.ids, reading.spans, strict=True)):
            segment = reading.segments[i]
            token = self._token(id_, pair.text(segment)[start:end], start, end, reading.added[i])
            tokens.append(replace(token, segment=segment))
        return self._labelled(tokens, reading.words), reading.segment_ids

    def _tokenize_chat(self, chat: Chat) -> tuple[Token, ...]:
        """The tokens of a conversation, each with the role whose words it covers.

        The template writes the tokens that the model expects around a text itself, so that none are added. What a turn
        says is read as it stands: the name of a special token in it is that token, as for transformers.
        """
        rendered = self._render(chat)
        reading = self._reader.read(rendered.text, "bare")
        ids, spans = reading.ids, reading.spans
        limit = self.info.context
        if limit is not None and len(ids) > limit:
            raise InputError(
                f"This conversation is {len(ids):,} tokens long; {self.info.name} takes {limit:,}{self._why_no_more}. "
                "Nothing was cut. Shorten a turn, or remove one."
            )
        tokens = []
        for id_, (start, end) in zip(ids, spans, strict=True):
            token = self._token(id_, rendered.text[start:end], start, end)
            special = token.special or id_ in self._marker_ids
            tokens.append(replace(token, special=special, role=rendered.role_of(start, end) or ""))
        # start and end of a turn are called as the vocabulary has them: there are several of each
        unknown = self._named("unk_token")
        return label_tokens(
            tokens, start=None, end=None, unknown=unknown, byte_level=self._byte_level, own_words=reading.words
        )

    @cached_property
    def turn_end_ids(self) -> tuple[int, ...]:
        """The token with which the assistant ends its turn, where the chat template has one."""
        if not self.info.chat:
            return ()
        after = self.tokenizer(turn_end(self.tokenizer), add_special_tokens=False)["input_ids"]
        markers = (id_ for id_ in after if id_ in self._marker_ids or self.stands_for_no_text(id_))
        return tuple(markers)[:1]

    @cached_property
    def _marker_ids(self) -> frozenset[int]:
        """Tokens that the tokenizer has for the template's use, <|im_start|> say, whether it names them or not."""
        added = getattr(self.tokenizer, "added_tokens_decoder", {})
        named = {getattr(self.tokenizer, name, None) for name in ("unk_token_id", "mask_token_id")}
        # trainers that know of no byte pieces make special tokens of them
        return frozenset(i for i, t in added.items() if t.special and not _BYTE.fullmatch(t.content)) - named

    def text_read(self, prompt: str | Chat) -> str:
        """The text that the tokens' offsets are of."""
        return self._render(prompt).text if isinstance(prompt, Chat) else prompt

    def _render(self, chat: Chat) -> Rendered:
        """What the template makes of a conversation; the last one is kept, since a process of its own makes it."""
        if self._rendered is None or self._rendered[0] != chat:
            self._rendered = (chat, render(self.tokenizer if self.info.chat else None, chat, self.info.name))
        return self._rendered[1]

    def stands_for_no_text(self, id_: int) -> bool:
        """Whether it is one of the tokenizer's special tokens, but neither its mask nor its unknown word."""
        return id_ in self._hidden_ids

    def piece_label(self, id_: int) -> str:
        """What to draw for a vocabulary entry on its own."""
        if id_ not in self._labels:  # ten are asked for at every step of decoding, mostly the same
            self._labels[id_] = self._piece_label(id_)
        return self._labels[id_]

    def _piece_label(self, id_: int) -> str:
        piece = self.piece(id_)
        if self.stands_for_no_text(id_):
            return special_label(piece, False, self._named("bos_token"), self._named("eos_token"))
        return piece_label(piece, self._byte_level)

    def piece(self, id_: int) -> str:
        """A vocabulary entry as it is spelled there; "⟨id 99⟩" where the tokenizer has none (a padded vocabulary)."""
        return self.tokenizer.convert_ids_to_tokens(id_) or f"⟨id {id_}⟩"

    @property
    def _why_no_more(self) -> str:
        if not self.info.weights_only or self.info.context != most_tokens(self.info.stacks):
            return ""
        return f", for all of its weights have to be kept ({KEPT_BYTES / 1e9:.0f} GB at most)"

    def _limit(self, use: Use) -> int | None:
        limit = self.info.context
        return limit - 1 if limit is not None and use == "target" else limit  # a target follows its start token

    def _check_ids(self, ids: list[int], use: Use) -> None:
        limit, vocabulary = self._limit(use), self.info.vocabulary
        if not ids:
            raise InputError("There are no tokens to run. Give at least one id.")
        if limit is not None and len(ids) > limit:
            raise InputError(f"These are {len(ids):,} tokens; {self.info.name} takes {limit:,}. Give fewer.")
        strange = next((id_ for id_ in ids if not 0 <= id_ < vocabulary), None)
        if strange is not None:
            raise InputError(f"{self.info.name} has no token {strange}: its ids go from 0 to {vocabulary - 1:,}.")

    @cached_property
    def _reader(self) -> TextReader:
        return TextReader(self.tokenizer, self.info.name, self.info.prefix, self.piece)

    def _token(self, id_: int, text: str = "", start: int = 0, end: int = 0, added: bool = False) -> Token:
        return Token(id_, self.piece(id_), text, start, end, special=added or self.stands_for_no_text(id_))

    def _labelled(self, tokens: list[Token], own_words: Sequence[int | None] | None = None) -> tuple[Token, ...]:
        return label_tokens(
            tokens,
            start=self._named("bos_token"),
            end=self._named("eos_token"),
            unknown=self._named("unk_token"),
            byte_level=self._byte_level,
            own_words=own_words,
        )

    def _named(self, name: str) -> str | None:
        value = getattr(self.tokenizer, name, None)
        return value if isinstance(value, str) else None


def _dynamic_rotations(module: nn.Module) -> tuple[nn.Module, ...]:
    """The modules that scale rotations to the length of a text (dynamic NTK)."""
    return tuple(m for m in module.modules() if "dynamic" in str(getattr(m, "rope_type", "")))


def _forget_lengths(dynamic: Iterable[nn.Module]) -> None:
    """Let `dynamic` begin anew: transformers keeps the scale of the longest text since the last short one."""
    for rotary in dynamic:
        originals = [name for name in (*vars(rotary), *rotary._buffers) if name.endswith("original_inv_freq")]
        for name in originals:
            prefix = name.removesuffix("original_inv_freq")
            rotary.register_buffer(f"{prefix}inv_freq", getattr(rotary, name), persistent=False)
            setattr(rotary, f"{prefix}max_seq_len_cached", rotary.original_max_seq_len)
