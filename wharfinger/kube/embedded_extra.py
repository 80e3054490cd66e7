"""The check that the libraries of the extra ``wharfinger[embedded]`` are installed. The embedded control plane needs them."""

from importlib.util import find_spec
from typing import Final

LIBRARIES: Final = ("cryptography", "re2")
"""The names under which Python imports the libraries of the extra ``wharfinger[embedded]``."""


def missing_libraries() -> str:
    """Return the missing libraries and the command that installs them, as one sentence; "" if none is missing."""
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if not missing:
        return ""
    return f"libraries of the embedded control plane are not installed: {', '.join(missing)}; pip install 'wharfinger[embedded]'"
