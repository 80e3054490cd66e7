"""Addresses of git repositories."""

import pytest

from wharfinger.offline.discovery.repository_address import plain_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://git.example.com/a/b.git", "git.example.com/a/b"),
        ("ssh://git@Git.example.com:22/a/b", "git.example.com/a/b"),
        ("git@git.example.com:a/b.git", "git.example.com/a/b"),
        ("nonsense", ""),
    ],
)
def test_addresses_of_one_repository_are_equal(url: str, address: str) -> None:
    assert plain_address(url) == address
