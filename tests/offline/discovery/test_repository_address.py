"""Addresses of git repositories."""

from pathlib import Path

import pytest

from tests.offline.sources.test_git import git
from wharfinger.offline.discovery.repository_address import Repository, plain_address, repository_of


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://git.example.com/a/b.git", "git.example.com/a/b"),
        ("ssh://git@Git.example.com:22/a/b", "git.example.com/a/b"),
        ("git@git.example.com:a/b.git", "git.example.com/a/b"),
        ("nonsense", ""),
    ],
)
def test_addresses_are_reduced_to_host_and_path(url: str, address: str) -> None:
    assert plain_address(url) == address


CONFIG = """
[core]
	url = https://git.example.com/core/core
[remote "origin"]
	URL = https://git.example.com/a/b.git
[submodule "x"]
	url = https://git.example.com/x/x
[Remote "other"] ; a comment
	url = git@git.example.com:c/d
"""


def test_only_the_remotes_of_the_repository_are_read(tmp_path: Path) -> None:
    assert repository_of(tmp_path) == Repository()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(CONFIG)
    assert repository_of(tmp_path).addresses == {"git.example.com/a/b", "git.example.com/c/d"}


def test_a_worktree_has_the_remotes_of_its_repository(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q", "-b", "main")
    git(main, "remote", "add", "origin", "https://git.example.com/a/b.git")
    git(main, "commit", "-q", "--allow-empty", "-m", "one")
    git(main, "worktree", "add", "-q", str(tmp_path / "other"))
    addresses = frozenset({"git.example.com/a/b"})
    assert repository_of(main) == Repository(addresses, "main")
    assert repository_of(tmp_path / "other") == Repository(addresses, "other")
