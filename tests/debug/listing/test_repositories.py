"""The output of `get repositories` and `get versions`."""

import pytest

from tests.debug.support.canned import CannedInspector
from tests.debug.support.listed import listed
from wharfinger.debug.listing.listing import NotListedError
from wharfinger.formats.json.value import decode_json, find


async def test_repositories_are_listed_with_their_state() -> None:
    text = await listed(CannedInspector(), "repositories", None, "table")
    first, second, third = text.splitlines()
    assert first.split() == ["NAME", "READY", "USERS", "PACKAGES", "VERSIONS", "SCANNED", "SOURCE", "MESSAGE"]
    assert second.split() == [
        *("default", "True", "2", "1", "3", "2026-01-01T12:00:00Z", "https://registry.example/packages"),
    ]
    assert third.split() == ["gone", "False", "0", "0", "0", "never", "no", "answer\\x1b[31m"]
    assert await listed(CannedInspector(), "repositories", None, "name") == "default\ngone\n"
    assert "RegistryFailed" in await listed(CannedInspector(), "repositories", "gone", "yaml")
    assert await listed(CannedInspector(sources=()), "repositories", None, "table") == ""


async def test_versions_are_listed_with_their_packages() -> None:
    text = await listed(CannedInspector(), "versions", None, "table")
    _, first, second = text.splitlines()
    assert first.split() == ["default", "web-shop", "1.2.0", "abababababab", ">=1.30", "a", "fix"]
    assert second.split() == ["default", "web-shop", "1.1.0", "stable", "cdcdcdcdcdcd", "deprecated:", "it", "leaks"]
    assert await listed(CannedInspector(), "versions", "web-shop", "name") == "1.2.0\n1.1.0\n1.0.0\n"
    document = decode_json(
        (await listed(CannedInspector(), "versions", None, "json")).encode(), max_bytes=9999, what=""
    )
    assert find(document, "packages", 0, "repository") == "default"
    assert find(document, "packages", 0, "detailed", 0, "changelog") == ["a fix", "more"]


async def test_unknown_names_are_refused_with_a_hint() -> None:
    with pytest.raises(NotListedError, match="did you mean 'default'"):
        await listed(CannedInspector(), "repositories", "defualt", "table")
    with pytest.raises(NotListedError, match="`wharfinger get versions` lists all"):
        await listed(CannedInspector(), "versions", "xyz", "table")
