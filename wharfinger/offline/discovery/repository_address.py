"""The addresses of git repositories, in one form for all protocols, and the repository of a tree."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_SECTION: Final = re.compile(r"\s*\[\s*(?P<name>[\w.-]+)(?:\s+\"[^\"]*\")?\s*\]\s*(?:[#;].*)?\Z")
_URL: Final = re.compile(r"\s*url\s*=\s*(?P<url>\S+)\s*\Z", re.IGNORECASE)
_BRANCH: Final = "ref: refs/heads/"
_ADDRESS: Final = re.compile(r"(?:[a-z+]+://)?(?:[^@/]+@)?(?P<host>[^/:]+)(?::\d+)?[/:](?P<path>.+?)(?:\.git)?/?\Z")


@dataclass(frozen=True, slots=True)
class Repository:
    """The addresses of a repository's remotes, in the form of `plain_address`, and the branch that is checked out ("" if there is
    none).
    """

    addresses: frozenset[str] = frozenset()
    branch: str = ""


def repository_of(root: Path) -> Repository:
    """Return the addresses and the branch of the git repository at ``root``; empty if there is no repository. Blocking.

    ``root`` may also be a worktree of the repository, in which ``.git`` is a file.
    """
    try:
        own, common = _git_folders(root / ".git")
        text = (common / "config").read_text(errors="replace")
        head = (own / "HEAD").read_text(errors="replace") if (own / "HEAD").is_file() else ""
    except OSError:
        return Repository()
    found: set[str] = set()
    section = ""
    for line in text.splitlines():
        if match := _SECTION.match(line):
            section = match["name"].lower()
        elif section == "remote" and (match := _URL.match(line)):
            found.add(plain_address(match["url"]))
    branch = head.strip().removeprefix(_BRANCH) if head.startswith(_BRANCH) else ""
    return Repository(frozenset(found - {""}), branch)


def _git_folders(git: Path) -> tuple[Path, Path]:
    """Return git's folder for the worktree, and the folder with the configuration of the repository. The two differ in a linked
    worktree. Raises OSError.
    """
    if git.is_dir():
        return git, git
    folder = git.parent / git.read_text(errors="replace").removeprefix("gitdir:").strip()
    common = folder / "commondir"
    return folder, folder / common.read_text(errors="replace").strip() if common.is_file() else folder


def plain_address(url: str) -> str:
    """Return ``host/path`` of a repository's address, the same for ssh and https; "" if it has another form."""
    match = _ADDRESS.match(url.strip())
    return f"{match['host'].lower()}/{match['path']}" if match else ""
