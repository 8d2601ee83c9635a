"""Every token of a vocabulary, written after and into texts, of each kind of tokenizer: read back, or said not to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors, trainers
from tokenizers import models as kinds
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from attention_models import adopt, open_checkpoint
from attention_models.decoding.spelling import Spelled, at_the_end, in_place_of
from attention_models.forward.model import Model
from attention_models.protocol.chat import Pair
from tests.models import tiny
from tests.models.text.test_plain_tokenizer import Bytes, Joined, Letters

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPECIAL = ["<unk>", "<s>", "</s>", "<pad>", "<mask>"]
TEXTS = ["Tom and Anna went", "The cat is ", "sing", "Tom.", "Tom\n", "(", "“Tom”, ", "é 🙂"]
WITH_MASK = ["Tom and {} went.", "The cat{}, and the dog.", "sing{}ing {}", "{}", "{} went", "({})", "Tom {}"]


def _whole(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", model_max_length=60
    )


def _framed(make: Callable[[], PreTrainedTokenizerFast]) -> Callable[[], PreTrainedTokenizerFast]:
    """With a mask, and <s> … </s> around the text."""

    def framed() -> PreTrainedTokenizerFast:
        inner = make().backend_tokenizer
        inner.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
        )
        tokenizer = _whole(inner)
        tokenizer.add_special_tokens({"mask_token": "<mask>", "pad_token": "<pad>", "sep_token": "</s>"})
        return tokenizer

    return framed


def unigram(prefix: str, with_bytes: bool = True) -> PreTrainedTokenizerFast:
    """SentencePiece's other kind of model; `prefix` says where ▁ is put before a text."""
    tokenizer = Tokenizer(kinds.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prefix)
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Metaspace(prepend_scheme=prefix)]
    )
    special = SPECIAL + (BYTES if with_bytes else [])
    trainer = trainers.UnigramTrainer(
        vocab_size=len(special) + 120, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(tiny.sentences(), trainer)
    return _whole(tokenizer)


def fallback() -> PreTrainedTokenizerFast:
    """Llama's first: the normaliser puts ▁ before the text and for spaces, so that pieces go beyond words."""
    tokenizer = Tokenizer(kinds.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    _train(tokenizer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return _whole(tokenizer)


def metaspace() -> PreTrainedTokenizerFast:
    """Pieces by pairs, without a ▁ before the text."""
    tokenizer = Tokenizer(kinds.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Metaspace(prepend_scheme="never")]
    )
    _train(tokenizer)
    return _whole(tokenizer)


def _train(tokenizer: Tokenizer) -> None:
    special = SPECIAL + BYTES
    trainer = trainers.BpeTrainer(vocab_size=len(special) + 120, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(tiny.sentences(), trainer)


def entries(split: Any, decoder: Any = None) -> PreTrainedTokenizerFast:
    """A character or a word is an entry of the vocabulary, or unknown."""
    tokenizer = Tokenizer(kinds.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = split
    if decoder is not None:
        tokenizer.decoder = decoder
    trainer = trainers.WordLevelTrainer(special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(tiny.sentences(), trainer)
    return _whole(tokenizer)


def characters() -> PreTrainedTokenizerFast:
    return entries(pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated"), decoders.Fuse())


def words() -> PreTrainedTokenizerFast:
    return entries(pre_tokenizers.Whitespace())


def lower_case() -> PreTrainedTokenizerFast:
    tokenizer = tiny.word_piece()
    tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    return tokenizer


def with_first_space() -> PreTrainedTokenizerFast:
    tokenizer = tiny.byte_level()
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


ENDS: dict[str, tuple[Callable[[], PreTrainedTokenizerFast], str]] = {  # and a token that can follow "Tom."
    "unigram, ▁ before each piece of text": (lambda: unigram("always"), "▁and"),
    "unigram, ▁ before the first": (lambda: unigram("first"), "▁and"),
    "unigram, no ▁ before": (lambda: unigram("never"), "▁and"),
    "unigram without bytes": (lambda: unigram("always", with_bytes=False), "▁and"),
    "bytes where no piece fits": (fallback, "a"),
    "metaspace, no ▁ before": (metaspace, "▁and"),
    "characters": (characters, " "),
    "words": (words, "and"),
    "bytes, a space before": (with_first_space, "Ġand"),
}
MASKS: dict[str, tuple[Callable[[], PreTrainedTokenizerFast], str]] = {  # and a token that can follow "Tom and "
    "unigram": (_framed(lambda: unigram("always")), "▁and"),
    "unigram, no ▁ before": (_framed(lambda: unigram("never")), "and"),
    "characters": (_framed(characters), "a"),
    "words": (_framed(words), "and"),
    "lower case": (lower_case, "and"),
}


def opened(make: Callable[[], PreTrainedTokenizerFast], masked: bool, folder: Path) -> Model:
    module = ("BertForMaskedLM", "BertConfig", tiny._BERT) if masked else ("GPT2LMHeadModel", "GPT2Config", tiny._GPT2)
    return open_checkpoint(tiny.save(tiny.Kind(*module, make), folder / "model"))


def own(model: Model, text: Any) -> list[int]:
    """What the tokenizer's own call makes of a text, or of a pair."""
    texts = (text.first, text.second) if isinstance(text, Pair) else (text,)
    ids: list[int] = model.tokenizer(*texts)["input_ids"]
    return ids


def written(model: Model, spelled: Spelled, wanted: list[int]) -> bool:
    """Whether the token was written; and what is said of that is so."""
    is_read = own(model, spelled.whole) == wanted
    assert is_read is not bool(spelled.misread), spelled
    assert "nothing" not in spelled.misread or not spelled.misread.endswith("as nothing"), spelled
    return is_read


@pytest.mark.short("words", "characters")
@pytest.mark.parametrize("kind", ENDS)
def test_after_a_text(kind: str, tmp_path: Path) -> None:
    make, follows = ENDS[kind]
    model = opened(make, False, tmp_path)
    for text in TEXTS:
        before, tokens = own(model, text), model.tokenize(text)
        done = {
            id_
            for id_ in range(len(model.tokenizer))
            if written(model, at_the_end(model, text, tokens, (id_,)), [*before, id_])
        }
        if text == "Tom.":
            assert model.tokenizer.convert_tokens_to_ids(follows) in done


@pytest.mark.full
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("pair", [False, True])
def test_in_the_place_of_a_mask(kind: str, pair: bool, tmp_path: Path) -> None:
    make, follows = MASKS[kind]
    model = opened(make, True, tmp_path)
    for pattern in WITH_MASK:
        line = pattern.replace("{}", model.tokenizer.mask_token)
        text = Pair("Tom fell.", line) if pair else line
        before, tokens = own(model, text), model.tokenize(text)
        place = before.index(model.tokenizer.mask_token_id)
        done = {
            id_
            for id_ in range(len(model.tokenizer))
            if written(
                model, in_place_of(model, text, tokens, place, id_), [*before[:place], id_, *before[place + 1 :]]
            )
        }
        if pattern == WITH_MASK[0]:
            assert model.tokenizer.convert_tokens_to_ids(follows) in done


@pytest.mark.parametrize(
    ("tokenizer", "texts", "vocabulary"),
    [(Letters(), ["a cat", "a "], 27), (Bytes(), ["the", "caf", "é \U0001f600"], 260), (Joined(), ["the cat"], 8)],
)
def test_of_tokenizers_that_are_handed_over(tokenizer: Any, texts: list[str], vocabulary: int) -> None:
    shape: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=vocabulary, intermediate_size=16, **shape)
    model = adopt(LlamaForCausalLM(config).eval(), tokenizer)
    for text in texts:
        tokens, before = model.tokenize(text), tokenizer.encode(text)
        end = 1 if before[-1] == 259 else 0  # which this encode puts there itself
        done = 0
        for id_ in range(vocabulary):
            spelled = at_the_end(model, text, tokens, (id_,))
            wanted = [*before[: len(before) - end], id_, *before[len(before) - end :]]
            try:
                is_read = tokenizer.encode(spelled.whole) == wanted
            except ValueError:  # a letter that it does not have
                is_read = False
            assert is_read is not bool(spelled.misread), spelled
            done += is_read
        assert done
