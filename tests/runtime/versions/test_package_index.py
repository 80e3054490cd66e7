"""The index of a package: the tags that count as versions, and the index's form as a Kubernetes object."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find, find_list
from wharfinger.runtime.versions.package_index import (
    MAX_OBJECT,
    ChannelTarget,
    PackageIndex,
    VersionDetails,
    digest_of_tags,
    index_object,
    read_index,
    split_tags,
)

DETAILS = VersionDetails(
    "sha256:1",
    kind="Application",
    description="A shop",
    kubernetes=">=1.30",
    requirements={"kubernetes": ">=1.30", "modules": {"ingress": "^1"}},
    changelog=("a fix",),
    deprecated="use another one",
)


def test_full_versions_are_sorted_and_all_other_tags_are_channels() -> None:
    versions, channels = split_tags(
        [
            "1.9.0",
            "1.10.0",
            "v1.10.0",
            "2.0.0-rc.1",
            "2.0.0",
            "1.0.0_linux",
            "v1",
            "1.2",
            "stable",
            "1.2.3.4",
            "01.2.3",
            "sha256-ab.sig",
        ]
    )
    assert versions == ("2.0.0", "2.0.0-rc.1", "v1.10.0", "1.10.0", "1.9.0", "1.0.0+linux")
    assert channels == ("01.2.3", "1.2", "1.2.3.4", "stable", "v1")


def test_the_order_of_tags_does_not_change_an_index() -> None:
    assert digest_of_tags(["a", "b"]) == digest_of_tags(["b", "a"]) != digest_of_tags(["ab"])


def test_an_index_survives_a_round_trip() -> None:
    index = PackageIndex(
        "default",
        "web",
        ("2.0.0", "1.0.0"),
        "tags",
        {"stable": ChannelTarget("1.0.0", "sha256:2")},
        ("beta", "stable"),
        {"2.0.0": DETAILS, "1.0.0": VersionDetails("sha256:2")},
    )
    assert read_index("default", "web", index_object(index)) == index
    assert index.digest("2.0.0") == "sha256:1"
    assert index.digest("3.0.0") == ""


@pytest.mark.slow
def test_the_largest_index_fits_into_an_object() -> None:
    index = PackageIndex("default", "web", split_tags(f"{n}.0.0" for n in range(100_000))[0], "tags")
    status = index_object(index)
    assert len(encode_json(status)) < MAX_OBJECT + 10_000
    assert find(status, "count") == 100_000
    kept = find_list(status, "versions")
    assert kept[0] == "99999.0.0"
    assert 50_000 < len(kept) < 100_000
    assert read_index("default", "web", status).tags == ""


JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(("versions", "channels", "details", "count", "tagsDigest"))


@given(st.dictionaries(NAMES, JSON, max_size=5))
def test_any_object_is_read_or_refused_with_a_format_error(status: JsonObject) -> None:
    """The caller expects a format error, and no other exception."""
    from wharfinger.formats.errors import FormatError

    try:
        found = read_index("default", "web", status)
    except FormatError:
        return
    assert set(found.versions) <= {each for each in find_list(status, "versions") if isinstance(each, str)}
