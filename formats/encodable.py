"""Text for a terminal or a pipe whose encoding has not all characters: that is no reason to say nothing."""


def encodable(text: str, encoding: str) -> str:
    r"""``text`` with each character that ``encoding`` does not have written as an escape: ``\u2713``."""
    return text.encode(encoding, "backslashreplace").decode(encoding)
