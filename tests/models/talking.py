"""Tiny checkpoints that were made to converse: three kinds of template, each with the tokenizer that goes with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.models.tiny import sentences

CHATML = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a dog.<|im_end|>\n' }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

# as Llama 2's: the system prompt stands within the first turn of the user, and the words are trimmed
LLAMA_2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}"
    "{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}"
    "{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\n' + system_message + '\n<</SYS>>\n\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)

# as Gemma's: no system, the assistant is called model, the words are trimmed
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}"
    "{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)


def chatml() -> PreTrainedTokenizerFast:
    return _fast(_byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]), CHATML, "<|endoftext|>", "<|endoftext|>")


def llama_2() -> PreTrainedTokenizerFast:
    """It puts <s> before a text of its own accord."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Metaspace()])
    special = ["<unk>", "<s>", "</s>"]
    pieces = [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(
        sentences(), trainers.BpeTrainer(vocab_size=400, special_tokens=pieces, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return _fast(tokenizer, LLAMA_2, "<s>", "</s>", unk_token="<unk>")


def gemma() -> PreTrainedTokenizerFast:
    """It puts <bos> before a text of its own accord."""
    tokenizer = _byte_level(["<pad>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"])
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)]),
        ]
    )
    return _fast(tokenizer, GEMMA, "<bos>", "<eos>")


TOKENIZERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {"chatml": chatml, "llama-2": llama_2, "gemma": gemma}


def save_talking(kind: str, folder: Path, template: str | None = None) -> Path:
    """A llama of random weights that converses in the way of `kind`, or by another template."""
    tokenizer = TOKENIZERS[kind]()
    if template is not None:
        tokenizer.chat_template = template
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=160,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    module = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn_like(parameter) * 0.3)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _byte_level(special: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    return tokenizer


def _fast(tokenizer: Tokenizer, template: str, bos: str, eos: str, **more: str) -> PreTrainedTokenizerFast:
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=bos, eos_token=eos, model_max_length=160, **more
    )
    fast.chat_template = template
    return fast
