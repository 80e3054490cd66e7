"""What `get repositories` and `get versions` print."""

import pytest

from tests.debug.support.canned import CannedInspector
from wharfinger.debug.client.repository_output import NoSuchRepositoryError, repositories_text, versions_text
from wharfinger.formats.json.value import decode_json, find


async def test_repositories() -> None:
    text = await repositories_text(CannedInspector(), None, "table", None)
    first, second, third = text.splitlines()
    assert first.split() == ["NAME", "READY", "USERS", "PACKAGES", "VERSIONS", "SCANNED", "SOURCE", "MESSAGE"]
    assert second.split() == [
        *("default", "True", "2", "1", "3", "2026-01-01T12:00:00Z", "https://registry.example/packages"),
    ]
    assert third.split() == ["gone", "False", "0", "0", "0", "never", "no", "answer\\x1b[31m"]
    assert await repositories_text(CannedInspector(), None, "name", None) == "default\ngone\n"
    assert "RegistryFailed" in await repositories_text(CannedInspector(), "gone", "yaml", None)
    assert await repositories_text(CannedInspector(sources=()), None, "table", None) == ""


async def test_versions() -> None:
    text = await versions_text(CannedInspector(), None, "table", None)
    _, first, second = text.splitlines()
    assert first.split() == ["default", "web-shop", "1.2.0", "abababababab", ">=1.30", "a", "fix"]
    assert second.split() == ["default", "web-shop", "1.1.0", "stable", "cdcdcdcdcdcd", "deprecated:", "it", "leaks"]
    assert await versions_text(CannedInspector(), "web-shop", "name", None) == "1.2.0\n1.1.0\n1.0.0\n"
    document = decode_json(
        (await versions_text(CannedInspector(), None, "json", None)).encode(), max_bytes=9999, what=""
    )
    assert find(document, "packages", 0, "repository") == "default"
    assert find(document, "packages", 0, "detailed", 0, "changelog") == ["a fix", "more"]


async def test_wrong_names() -> None:
    with pytest.raises(NoSuchRepositoryError, match="did you mean 'default'"):
        await repositories_text(CannedInspector(), "defualt", "table", None)
    with pytest.raises(NoSuchRepositoryError, match="`wharfinger get versions` lists all"):
        await versions_text(CannedInspector(), "xyz", "table", None)
