"""The version policy of a resource: valid policies, and error messages for invalid ones."""

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.versions.version_policy import (
    APPROVED,
    EXACT,
    Channel,
    Mode,
    MovedTag,
    Range,
    VersionPolicy,
    read_version,
)

DIGEST = "sha256:" + "a" * 64


def test_an_exact_version_needs_no_scan() -> None:
    assert read_version({"spec": {"packageVersion": "1.2.3"}}) == ("1.2.3", EXACT)
    assert not EXACT.needs_index


def test_ranges_and_channels_are_read() -> None:
    version, policy = read_version({"spec": {"versionRange": "^1.2"}})
    assert (version, str(policy.follows), policy.needs_index) == ("", "range ^1.2", True)
    assert read_version({"spec": {"releaseChannel": "rock-solid"}})[1].follows == Channel("rock-solid")


@pytest.mark.parametrize(
    ("text", "prereleases"), [(">=1", False), (">=1.0.0-0", True), ("1.2 - 2.3", False), ("^1 || ~2.1.0-rc.1", True)]
)
def test_a_range_with_a_prerelease_includes_prereleases(text: str, prereleases: bool) -> None:
    follows = read_version({"spec": {"versionRange": text}})[1].follows
    assert isinstance(follows, Range)
    assert follows.prereleases is prereleases


def test_mode_windows_approval_and_moved_tags_are_read() -> None:
    update: JsonObject = {"mode": "windows", "windows": [{"from": "22:00"}], "movedTag": "refuse"}
    obj: JsonObject = {
        "metadata": {"annotations": {APPROVED: "1.3.0"}},
        "spec": {"versionRange": ">=1", "update": update},
    }
    policy = read_version(obj)[1]
    assert (policy.mode, policy.moved, policy.approved) == (Mode.WINDOWS, MovedTag.REFUSE, "1.3.0")
    assert len(policy.windows.each) == 1


def test_a_digest_pins_an_exact_version() -> None:
    spec: JsonObject = {"packageVersion": "1.0.0", "packageDigest": DIGEST, "update": {"movedTag": "refuse"}}
    policy = read_version({"spec": spec})[1]
    assert policy == VersionPolicy(moved=MovedTag.REFUSE, digest=DIGEST)
    assert not policy.needs_index


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "spec: expected exactly one of packageVersion, versionRange and releaseChannel, found none"),
        ({"packageVersion": "1", "versionRange": "1"}, "found packageVersion and versionRange; name the version once"),
        ({"versionRange": "about 1"}, "spec.versionRange: version constraint 'about 1': not understood"),
        ({"releaseChannel": "a b"}, "spec.releaseChannel: expected the name of a channel, which is a tag, found 'a b'"),
        ({"packageVersion": "1", "packageDigest": "md5:x"}, "spec.packageDigest: digest 'md5:x' is not of the form"),
        ({"versionRange": "1", "packageDigest": DIGEST}, "spec.packageDigest: expected spec.packageVersion beside it"),
        ({"packageVersion": "1", "update": {"mode": "now"}}, "spec.update.mode: expected one of auto, manual, windows"),
        ({"packageVersion": "1", "update": {"movedTag": "x"}}, "expected one of report, refuse, follow, found 'x'"),
        ({"versionRange": "1", "update": {"mode": "windows"}}, "spec.update.windows: expected a window"),
        ({"versionRange": 1}, "spec.versionRange"),
    ],
)
def test_invalid_policies_are_refused(spec: JsonObject, said: str) -> None:
    with pytest.raises(FormatError) as raised:
        read_version({"spec": spec})
    assert said in str(raised.value)
