"""The tags of a repository that are versions."""

import pytest

from wharfinger.packages.errors import AddressError
from wharfinger.packages.sources.tag_pattern import TagPattern, read_pattern

TAGS = ("v1.0.0", "1.1.0+b", "web-2.0.0", "dns-3.0.0", "release/4.0.0", "a/b", "web-")


@pytest.mark.parametrize(
    ("pattern", "versions"),
    [
        (
            "",
            {
                "v1.0.0": "v1.0.0",
                "1.1.0_b": "1.1.0+b",
                "web-2.0.0": "web-2.0.0",
                "dns-3.0.0": "dns-3.0.0",
                "web-": "web-",
            },
        ),
        ("v{version}", {"1.0.0": "v1.0.0"}),
        ("{package}-{version}", {"2.0.0": "web-2.0.0"}),
        ("release/{version}", {"4.0.0": "release/4.0.0"}),
        ("x{version}", {}),
    ],
)
def test_versions_are_extracted_from_tags(pattern: str, versions: dict[str, str]) -> None:
    assert read_pattern(pattern).versions(TAGS, "web") == versions


@pytest.mark.parametrize(
    "text", ["v", "{version}{version}", "{version} x", "{other}-{version}", "{version}" + "x" * 200]
)
def test_invalid_patterns_are_refused(text: str) -> None:
    with pytest.raises(AddressError, match=r"expected \{version\} exactly once"):
        read_pattern(text)


def test_an_empty_pattern_is_the_default() -> None:
    assert read_pattern("") == TagPattern()
