"""What a model of texts is given to read: a text, a pair of texts, a conversation, or several of them. No torch."""

from __future__ import annotations

from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Chat, Pair, Turn

Prompt = str | Chat | Pair | Batch


def shown_of(prompt: Prompt) -> str | Chat | Pair:
    """`prompt`; of a batch the text that is shown, as if it were alone."""
    return prompt.prompt if isinstance(prompt, Batch) else prompt


def plain_text(prompt: Prompt) -> str:
    return prompt if isinstance(prompt, str) else prompt.plain


def with_more(prompt: Prompt, more: str) -> Prompt:
    """`prompt` after a model wrote `more`; of a batch, after the text that is shown."""
    if isinstance(prompt, Batch):
        return prompt.with_prompt(_with_more(prompt.prompt, more))
    return _with_more(prompt, more)


def _with_more(prompt: str | Chat | Pair, more: str) -> str | Chat | Pair:
    if isinstance(prompt, Pair):
        return Pair(prompt.first, prompt.second + more)
    return prompt.said(more) if isinstance(prompt, Chat) else prompt + more


def with_other_end(prompt: Prompt, old: str, new: str) -> Prompt:
    """`prompt`, to which a model added `old`, with `new` in its place."""
    if isinstance(prompt, Batch):
        return prompt.with_prompt(_with_other_end(prompt.prompt, old, new))
    return _with_other_end(prompt, old, new)


def _with_other_end(prompt: str | Chat | Pair, old: str, new: str) -> str | Chat | Pair:
    if isinstance(prompt, Pair):
        return Pair(prompt.first, prompt.second.removesuffix(old) + new)
    if not isinstance(prompt, Chat):
        return prompt.removesuffix(old) + new
    if not old:
        return prompt.said(new)
    *before, last = prompt.turns
    return Chat((*before, Turn(last.role, last.text.removesuffix(old) + new)))
