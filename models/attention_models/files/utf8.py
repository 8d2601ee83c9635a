"""What is said of a file of texts that cannot be read, or is not UTF-8."""

from __future__ import annotations

from attention_models.protocol.errors import InputError


def decoded(content: bytes, name: str) -> str:
    """The text of a file called `name`, without a byte order mark. Raises InputError where it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise not_utf8(name, content.count(b"\n", 0, cause.start) + 1) from cause


def not_utf8(name: str, line: int) -> InputError:
    return InputError(f"{name} is not UTF-8 text: line {line:,} has other bytes. Save it as UTF-8.")


def unread(name: str, cause: OSError) -> InputError:
    said = (cause.strerror or type(cause).__name__).lower()
    return InputError(f"{name} cannot be read: {said}. Choose another file.")
