"""The addresses of git repositories, in one form for all protocols."""

import re
from pathlib import Path
from typing import Final

_REMOTE: Final = re.compile(r"^\s*url\s*=\s*(\S+)\s*$", re.MULTILINE)
_ADDRESS: Final = re.compile(r"(?:[a-z+]+://)?(?:[^@/]+@)?(?P<host>[^/:]+)(?::\d+)?[/:](?P<path>.+?)(?:\.git)?/?\Z")


def remotes_of(root: Path) -> frozenset[str]:
    """Return the addresses of the remotes of the git repository at ``root``, as `plain_address` writes them. Blocking."""
    config = root / ".git" / "config"
    try:
        text = config.read_text(errors="replace") if config.is_file() else ""
    except OSError:
        return frozenset()
    return frozenset(plain_address(url) for url in _REMOTE.findall(text)) - {""}


def plain_address(url: str) -> str:
    """Return ``host/path`` of a repository's address, the same for ssh and https; "" if it has another form."""
    match = _ADDRESS.match(url.strip())
    return f"{match['host'].lower()}/{match['path']}" if match else ""
