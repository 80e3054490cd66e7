"""The check that a kubeconfig file was written by an embedded control plane, so that the next one may replace the file."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import decode_json, find

USER: Final = "wharfinger"
MAX_BYTES: Final = 64 * 1024
"""The size limit of a kubeconfig, in bytes. Control planes write only smaller files, so a larger file is never replaced."""


def check_replaceable(path: Path) -> None:
    """Raise ValueError if a file is not empty and was not written by a control plane, and OSError if it cannot be read."""
    if not path.is_file() or not path.stat().st_size:
        return
    with suppress(FormatError):
        known = decode_json(path.read_bytes(), max_bytes=MAX_BYTES, what="the kubeconfig")
        if find(known, "current-context") == USER:
            return
    raise ValueError(f"{path} was not written by a control plane; remove it, or choose another path")
