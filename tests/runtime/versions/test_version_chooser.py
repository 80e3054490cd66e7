"""The choice of a version: a table of situations, and properties over random repositories."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.version_constraint import parse_constraint, parse_version
from wharfinger.runtime.versions.package_index import ChannelTarget, PackageIndex, split_tags
from wharfinger.runtime.versions.update_windows import Window, Windows
from wharfinger.runtime.versions.version_chooser import Choice, Why, choose
from wharfinger.runtime.versions.version_policy import Channel, Mode, Range, VersionPolicy, read_version

NOON = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
"""A Wednesday."""
NIGHTLY = Windows((Window(frozenset(range(7)), time(22), time(4)),), "UTC")
TAGS = ("1.0.0", "1.1.0", "1.2.0", "2.0.0", "2.1.0-rc.1", "stable")
CHANNELS = {"stable": ChannelTarget("1.2.0", "sha256:b"), "old": ChannelTarget("1.0.0", "sha256:a")}


def index(*tags: str) -> PackageIndex:
    return PackageIndex("default", "web", split_tags(tags or TAGS)[0], channels=CHANNELS, channel_names=tuple(CHANNELS))


def policy(text: str, mode: Mode = Mode.AUTO, approved: str = "", windows: Windows = NIGHTLY) -> VersionPolicy:
    """Return a policy for a range, or for a channel if the text begins with ``@``."""
    _, read = read_version({"spec": {"releaseChannel": text[1:]} if text.startswith("@") else {"versionRange": text}})
    return VersionPolicy(read.follows, mode, windows, approved=approved)


@dataclass(frozen=True)
class Case:
    """A situation of desired and installed versions, and the expected choice."""

    policy: VersionPolicy
    installed: str
    version: str
    why: Why
    pending: str = ""
    now: datetime = NOON
    refused: tuple[str, ...] = ()
    said: str = ""
    tags: tuple[str, ...] = ()


CASES = {
    "first installation": Case(policy("^1"), "", "1.2.0", Why.UPDATE),
    "first installation by hand": Case(policy("^1", Mode.MANUAL), "", "1.2.0", Why.UPDATE),
    "first installation outside of windows": Case(policy("^1", Mode.WINDOWS), "", "1.2.0", Why.UPDATE),
    "newest is installed": Case(policy("^1"), "1.2.0", "1.2.0", Why.NEWEST, said="2.0.0 is newer, but not in the range"),
    "newest of all": Case(policy(">=1"), "2.0.0", "2.0.0", Why.NEWEST, said="2.0.0 is the newest version in range >=1"),
    "auto": Case(policy("^1"), "1.1.0", "1.2.0", Why.UPDATE),
    "manual": Case(policy("^1", Mode.MANUAL), "1.1.0", "1.1.0", Why.AWAITS_APPROVAL, "1.2.0", said="waits for approval"),
    "manual, approved": Case(policy("^1", Mode.MANUAL, "1.2.0"), "1.1.0", "1.2.0", Why.APPROVED),
    "manual, an older one approved": Case(policy("^1", Mode.MANUAL, "1.1.0"), "1.0.0", "1.1.0", Why.APPROVED, "1.2.0"),
    "manual, the installed one approved": Case(
        policy("^1", Mode.MANUAL, "1.1.0"), "1.1.0", "1.1.0", Why.AWAITS_APPROVAL, "1.2.0"
    ),
    "manual, approved outside of the range": Case(
        policy("^1", Mode.MANUAL, "2.0.0"), "1.1.0", "1.1.0", Why.AWAITS_APPROVAL, "1.2.0"
    ),
    "manual, approved but not there": Case(
        policy("^1", Mode.MANUAL, "1.9.0"), "1.1.0", "1.1.0", Why.AWAITS_APPROVAL, "1.2.0"
    ),
    "windows, closed": Case(
        policy("^1", Mode.WINDOWS), "1.1.0", "1.1.0", Why.AWAITS_WINDOW, "1.2.0", said="opens at 2026-11-25 22:00 UTC"
    ),
    "windows, open": Case(
        policy("^1", Mode.WINDOWS), "1.1.0", "1.2.0", Why.UPDATE, now=NOON + timedelta(hours=11)
    ),
    "windows, open after midnight": Case(
        policy("^1", Mode.WINDOWS), "1.1.0", "1.2.0", Why.UPDATE, now=NOON + timedelta(hours=15, minutes=59)
    ),
    "windows, closed again": Case(
        policy("^1", Mode.WINDOWS), "1.1.0", "1.1.0", Why.AWAITS_WINDOW, "1.2.0", now=NOON + timedelta(hours=16)
    ),
    "windows, approved": Case(policy("^1", Mode.WINDOWS, "1.2.0"), "1.1.0", "1.2.0", Why.APPROVED),
    "newest is not possible": Case(
        policy("^1"), "1.0.0", "1.1.0", Why.UPDATE, refused=("1.2.0",), said="1.2.0 cannot be used now: no 1.2.0"
    ),
    "no newer one is possible": Case(
        policy("^1"), "1.0.0", "1.0.0", Why.NOT_POSSIBLE, "1.2.0", refused=("1.2.0", "1.1.0")
    ),
    "none is possible at first": Case(policy("1.2.0"), "", "1.2.0", Why.NOT_POSSIBLE, refused=("1.2.0",)),
    "an approval does not make it possible": Case(
        policy("^1", Mode.MANUAL, "1.2.0"), "1.1.0", "1.1.0", Why.NOT_POSSIBLE, "1.2.0", refused=("1.2.0",)
    ),
    "range no longer allows the installed one": Case(policy("^1"), "2.0.0", "1.2.0", Why.UPDATE),
    "the same, by hand": Case(policy("^1", Mode.MANUAL), "2.0.0", "2.0.0", Why.AWAITS_APPROVAL, "1.2.0"),
    "prereleases are left out": Case(policy(">=2"), "2.0.0", "2.0.0", Why.NEWEST),
    "prereleases on request": Case(policy(">=2.0.0-0"), "2.0.0", "2.1.0-rc.1", Why.UPDATE),
    "the newest version is lost": Case(
        policy("^1"), "1.3.0", "1.3.0", Why.NEWEST, said="does not have it any more"
    ),
    "nothing matches": Case(policy("^7"), "", "", Why.NO_MATCH, said="the newest version is 2.1.0-rc.1"),
    "nothing matches, installed": Case(policy("^7"), "1.0.0", "1.0.0", Why.NO_MATCH, said="1.0.0 stays installed"),
    "an empty repository": Case(policy("^1"), "", "", Why.NO_MATCH, said="the package has no versions", tags=("latest",)),
    "installed something that is no version": Case(policy("^1"), "main", "1.2.0", Why.UPDATE),
    "channel at first": Case(policy("@stable"), "", "1.2.0", Why.UPDATE),
    "channel is installed": Case(policy("@stable"), "1.2.0", "1.2.0", Why.NEWEST),
    "channel moved on": Case(policy("@stable"), "1.0.0", "1.2.0", Why.UPDATE),
    "channel by hand": Case(policy("@stable", Mode.MANUAL), "1.0.0", "1.0.0", Why.AWAITS_APPROVAL, "1.2.0"),
    "channel moved back": Case(policy("@old"), "1.2.0", "1.2.0", Why.DOWNGRADE, "1.0.0", said="older than 1.2.0"),
    "channel moved back, approved": Case(policy("@old", approved="1.0.0"), "1.2.0", "1.0.0", Why.APPROVED),
    "channel is not possible": Case(
        policy("@stable"), "1.0.0", "1.0.0", Why.NOT_POSSIBLE, "1.2.0", refused=("1.2.0",)
    ),
    "no such channel": Case(policy("@beta"), "", "", Why.NO_CHANNEL, said="its channels: stable, old"),
    "no such channel, installed": Case(policy("@beta"), "1.0.0", "1.0.0", Why.NO_CHANNEL),
}  # fmt: skip


def chosen(case: Case) -> Choice:
    return choose(
        case.policy,
        index(*case.tags),
        case.installed,
        case.now,
        lambda version: f"no {version}" if version in case.refused else "",
    )


@pytest.mark.parametrize("name", CASES)
def test_each_situation_gives_its_choice(name: str) -> None:
    case = CASES[name]
    made = chosen(case)
    assert (made.version, made.why, made.pending) == (case.version, case.why, case.pending), made.message
    assert case.said in made.message


def test_every_reason_has_a_situation() -> None:
    assert {case.why for case in CASES.values()} == set(Why)


def test_a_channel_has_a_digest_and_a_range_has_none() -> None:
    assert chosen(CASES["channel moved on"]).digest == "sha256:b"
    assert chosen(CASES["channel is installed"]).digest == "sha256:b"
    assert chosen(CASES["auto"]).digest == ""


NUMBERS = st.integers(0, 3)
VERSIONS = st.builds("{}.{}.{}".format, NUMBERS, NUMBERS, NUMBERS)
RANGES = st.sampled_from((">=0", "^1", "~1.2", "<2", "=1.1", ">=1, <3", "^0.1 || ^2"))


@given(st.frozensets(VERSIONS, max_size=12), RANGES, st.sampled_from(tuple(Mode)), VERSIONS | st.just(""), st.data())
def test_the_choice_is_possible_stable_and_no_downgrade(
    tags: frozenset[str], text: str, mode: Mode, installed: str, data: st.DataObject
) -> None:
    """If a version is installed, another version is chosen only if this other version is possible and in the range. An
    installed version that the range allows is not downgraded. A second choice, after the first one is installed, does not
    change the version.
    """
    possible = data.draw(st.frozensets(st.sampled_from(sorted(tags)))) if tags else frozenset()
    wanted = parse_constraint(text)
    asked = VersionPolicy(Range(wanted, prereleases=False), mode, NIGHTLY)

    def look(now: str) -> Choice:
        return choose(asked, index(*(tags or {"x"})), now, NOON, lambda each: "" if each in possible else "no")

    first = look(installed)
    if first.version not in ("", installed):
        assert first.version in tags
        assert wanted.allows(first.version)
        assert first.version in possible or not installed
    if installed and wanted.allows(installed):
        assert parse_version(first.version) >= parse_version(installed)
    if installed and mode is not Mode.AUTO:
        assert first.version == installed
    second = look(first.version)
    assert second.version == first.version


def test_a_channel_policy_is_printed_with_its_name() -> None:
    assert str(policy("@stable").follows) == "channel stable"
    assert policy("@stable").follows == Channel("stable")
