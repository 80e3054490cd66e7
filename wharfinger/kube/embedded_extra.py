"""Whether the libraries of the embedded control plane are installed, which the extra ``wharfinger[embedded]`` brings."""

from importlib.util import find_spec
from typing import Final

LIBRARIES: Final = ("cryptography", "re2")
"""By their import names."""


def missing_libraries() -> str:
    """Return which libraries are missing and the command that brings them, as one sentence; "" where all are there."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if not missing:
        return ""
    return f"libraries of the embedded control plane are not installed: {', '.join(missing)}; pip install 'wharfinger[embedded]'"
