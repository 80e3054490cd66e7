"""The choice of a version: the version that a resource gets now, the newer version that waits, and the reason. Pure.

====================================================  =============================================================
situation                                             choice
====================================================  =============================================================
nothing is installed                                  the newest match that can be on, or else the newest match,
                                                      in every mode
the newest match is installed                         it stays
a newer version matches, mode ``auto``                the newer version
mode ``windows``, a window is open                    the newer version
mode ``windows``, no window is open                   the installed version stays; the newer one is pending
mode ``manual``                                       the installed version stays; the newer one is pending
a newer matching version is approved                  the approved version, in every mode, if it can be on
the newer version cannot be on now, or would break    the newest version below it that can be on, or else the
its dependents                                        installed one
the installed version does not match any more         the newest match, as an update; it may be older
a channel points at an older version                  pending in every mode, until it is approved
nothing matches                                       the installed version stays; without one, there is no choice
====================================================  =============================================================

Prereleases match a range only if its constraint names a prerelease. A package is never downgraded only because its version is
not in the repository any more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import Final, assert_never

import semver

from wharfinger.formats.errors import FormatError
from wharfinger.formats.listing import listed
from wharfinger.formats.version_constraint import parse_version
from wharfinger.runtime.versions.package_index import PackageIndex
from wharfinger.runtime.versions.version_policy import Channel, Mode, Range, VersionPolicy

MAX_TRIED: Final = 20
"""The limit on the number of newer versions that are checked with ``refusal``, one after the other."""
_MOST_NAMED: Final = 10

Refusal = Callable[[str], str]
"""A function that returns the reason why a version of the package cannot be used now; "" if it can be used."""


class Why(StrEnum):
    """The reason for a choice; the string value is the ``reason`` in the status."""

    NEWEST = "Newest"
    UPDATE = "Update"
    APPROVED = "Approved"
    AWAITS_APPROVAL = "AwaitsApproval"
    AWAITS_WINDOW = "AwaitsWindow"
    NOT_POSSIBLE = "NotPossible"
    DOWNGRADE = "DowngradeAwaitsApproval"
    NO_MATCH = "NoVersionMatches"
    NO_CHANNEL = "ChannelNotFound"


@dataclass(frozen=True, slots=True)
class Choice:
    """The result of `choose`. ``version`` is "" if no version can be chosen. ``pending`` is the version that waits, and ``at``
    the time until which it waits. ``digest`` is the digest to install; "" means the digest to which the version's tag points.
    """

    version: str
    why: Why
    message: str
    pending: str = ""
    at: datetime | None = None
    digest: str = ""


def choose(policy: VersionPolicy, index: PackageIndex, installed: str, now: datetime, refusal: Refusal) -> Choice:
    """Choose the version of a resource that follows a range or a channel. ``installed`` is "" before the first installation.
    ``refusal`` returns the reason why a version cannot be used now, "" if it can be used; it is called for newer versions, the
    newest first.
    """
    match policy.follows:
        case Range():
            return _of_range(policy, policy.follows, index, installed, now, refusal)
        case Channel():
            return _of_channel(policy, policy.follows, index, installed, now, refusal)
        case None:
            raise AssertionError("the resource names an exact version, so there is nothing to choose")
        case _:
            assert_never(policy.follows)


def _of_range(
    policy: VersionPolicy, wanted: Range, index: PackageIndex, installed: str, now: datetime, refusal: Refusal
) -> Choice:
    kept = _kept(wanted, installed)
    newer = tuple(islice(_newer(wanted, index, kept), MAX_TRIED))
    if not newer:
        if kept is None:
            return Choice(installed, Why.NO_MATCH, _no_match(wanted, index, installed))
        return Choice(installed, Why.NEWEST, _newest(wanted, index, installed))
    first, why = newer[0], refusal(newer[0])
    best = first if not why else next((each for each in newer[1:] if not refusal(each)), "")
    if not best:
        message = (
            f"{first} is newer, but cannot be used now: {why}" if installed else f"{first} cannot be used now: {why}"
        )
        return Choice(installed or first, Why.NOT_POSSIBLE, message, pending=first if installed else "")
    passed = f"; {first} cannot be used now: {why}" if why else ""
    return _update(policy, best, installed, now, passed, _approved(policy, wanted, index, kept, refusal))


def _of_channel(
    policy: VersionPolicy, wanted: Channel, index: PackageIndex, installed: str, now: datetime, refusal: Refusal
) -> Choice:
    target = index.channels.get(wanted.name)
    if target is None:
        known = listed(index.channel_names, _MOST_NAMED) or "none"
        text = f"{index.package} has no {wanted} in repository {index.repository}; its channels: {known}"
        return Choice(installed, Why.NO_CHANNEL, text)
    if target.version == installed:
        return Choice(
            installed, Why.NEWEST, f"{wanted} points at {installed}, which is installed", digest=target.digest
        )
    approved = target.version if policy.approved == target.version else ""
    if installed and not approved and _is_older(target.version, installed):
        text = f"{wanted} points at {target.version}, which is older than {installed}; approve it to downgrade"
        return Choice(installed, Why.DOWNGRADE, text, pending=target.version)
    if installed and (why := refusal(target.version)):
        text = f"{wanted} points at {target.version}, which cannot be used now: {why}"
        return Choice(installed, Why.NOT_POSSIBLE, text, pending=target.version)
    made = _update(policy, target.version, installed, now, "", approved)
    return (
        made if made.version != target.version else Choice(made.version, made.why, made.message, digest=target.digest)
    )


def _update(policy: VersionPolicy, version: str, installed: str, now: datetime, passed: str, approved: str) -> Choice:
    """Choose between the installed version and ``version``, the best of the other versions. ``approved`` is the version that a
    user approved.
    """
    if not installed:
        return Choice(version, Why.UPDATE, f"{version} is the newest version of {policy.follows}{passed}")
    if approved:
        pending = version if version != approved else ""
        return Choice(approved, Why.APPROVED, f"{approved} is approved{passed}", pending=pending)
    match policy.mode:
        case Mode.AUTO:
            return Choice(version, Why.UPDATE, f"{version} is the newest version of {policy.follows}{passed}")
        case Mode.MANUAL:
            text = f"{version} is available, and waits for approval{passed}"
            return Choice(installed, Why.AWAITS_APPROVAL, text, pending=version)
        case Mode.WINDOWS:
            at = policy.windows.opening(now)
            if at is not None and at <= now:
                return Choice(version, Why.UPDATE, f"{version} is the newest version of {policy.follows}{passed}")
            when = f"the window that opens at {at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at is not None else "a window"
            text = f"{version} is available, and waits for {when}{passed}"
            return Choice(installed, Why.AWAITS_WINDOW, text, pending=version, at=at)
        case _:
            assert_never(policy.mode)


def _newer(wanted: Range, index: PackageIndex, kept: semver.Version | None) -> Iterator[str]:
    """Yield the matching versions that are newer than ``kept`` (all matching versions if that is None), the newest first."""
    for text, version in zip(index.versions, index.parsed, strict=True):
        if kept is not None and version <= kept:
            return
        if _is_match(wanted, version):
            yield text


def _is_match(wanted: Range, version: semver.Version) -> bool:
    return (wanted.prereleases or not version.prerelease) and wanted.constraint.allows(version)


def _approved(
    policy: VersionPolicy, wanted: Range, index: PackageIndex, kept: semver.Version | None, refusal: Refusal
) -> str:
    """Return the approved version, if it is a possible update; otherwise ""."""
    text = policy.approved
    if text not in index.versions:
        return ""
    version = parse_version(text)
    newer = kept is None or version > kept
    return text if newer and _is_match(wanted, version) and not refusal(text) else ""


def _kept(wanted: Range, installed: str) -> semver.Version | None:
    """Return the installed version if the range allows it; None if no version is installed, or if the range forbids it."""
    try:
        version = parse_version(installed)
    except FormatError:
        return None
    return version if wanted.constraint.allows(version) else None


def _is_older(text: str, than: str) -> bool:
    try:
        return parse_version(text) < parse_version(than)
    except FormatError:
        return False


def _newest(wanted: Range, index: PackageIndex, installed: str) -> str:
    if installed not in index.versions:
        return (
            f"{installed} is installed; the repository does not have it any more, and has no newer version in {wanted}"
        )
    if (beyond := _beyond(wanted, index)) and _is_older(installed, beyond):
        return f"{installed} is the newest version in {wanted}; {beyond} is newer, but not in the range"
    return f"{installed} is the newest version in {wanted}"


def _no_match(wanted: Range, index: PackageIndex, installed: str) -> str:
    newest = f"the newest version is {index.versions[0]}" if index.versions else "the package has no versions"
    kept = f"; {installed} stays installed" if installed else ""
    return f"no version of {index.package} in repository {index.repository} is in {wanted}: {newest}{kept}"


def _beyond(wanted: Range, index: PackageIndex) -> str:
    """Return the newest of all versions, in the range or not; "" if there is no version. Prereleases count only if the range
    allows them.
    """
    pairs = zip(index.versions, index.parsed, strict=True)
    return next((text for text, version in pairs if wanted.prereleases or not version.prerelease), "")
