"""Foreign bytes and characters as text that can be shown.

A terminal or a pipe may have an encoding that lacks some characters. The rest of a text must still be printed there.
"""

from typing import TextIO


def encodable(text: str, encoding: str) -> str:
    r"""Return ``text`` with each character that ``encoding`` lacks replaced by an escape such as ``\u2713``."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def write_text(stream: TextIO, text: str) -> None:
    """Write ``text`` to a stream, with escapes for the characters that its encoding lacks, and flush the stream."""
    stream.write(encodable(text, stream.encoding or "utf-8"))
    stream.flush()


def quoted(data: bytes, most: int) -> str:
    """Quote the first ``most`` bytes for a message: text in quotes, anything else as ``bytes that are not text (e0 30)``."""
    shown = data[:most]
    try:
        return repr(shown.decode())
    except UnicodeDecodeError as error:
        if len(data) > most and error.end == len(shown) and error.start > 0:  # a character that was cut in two
            return repr(shown[: error.start].decode())
    return f"bytes that are not text ({shown[:8].hex(' ')})"
