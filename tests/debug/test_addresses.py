"""The parsing of a query parameter that the client and the server use: the version of settings."""

import pytest

from wharfinger.debug.addresses import MAX_SETTINGS_VERSION, read_settings_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0", 0),
        ("007", 7),
        (str(MAX_SETTINGS_VERSION), MAX_SETTINGS_VERSION),
        (str(MAX_SETTINGS_VERSION + 1), None),
        ("9" * 10_000, None),
        ("", None),
        ("-1", None),
        ("1.0", None),
        ("٣", None),
    ],
)
def test_versions_of_settings_are_parsed(text: str, version: int | None) -> None:
    assert read_settings_version(text) == version
