"""Foreign bytes and characters as text that can be shown.

A terminal or a pipe may have an encoding that lacks some characters; the rest of the text must still be printed.
"""


def encodable(text: str, encoding: str) -> str:
    r"""Return ``text`` with each character that ``encoding`` lacks as an escape: ``\u2713``."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def quoted(data: bytes, most: int) -> str:
    """Quote the first ``most`` bytes for a message: text in quotes, anything else as ``bytes that are no text (e0 30)``."""
    shown = data[:most]
    try:
        return repr(shown.decode())
    except UnicodeDecodeError as error:
        if len(data) > most and error.end == len(shown) and error.start > 0:  # a character that was cut in two
            return repr(shown[: error.start].decode())
    return f"bytes that are no text ({shown[:8].hex(' ')})"
