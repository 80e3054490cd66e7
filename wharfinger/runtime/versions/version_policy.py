"""The policy for versions: the versions that a resource accepts, and when the package is updated to another version.

A resource names its version in one of three ways: exactly (``spec.packageVersion``), by a range (``spec.versionRange``), or by
a channel of the repository (``spec.releaseChannel``). A range or a channel is *followed*: a new version in the repository is an
update, and ``spec.update`` decides when it is installed. The first installation does not count as an update. To change an exact
version, a user changes the resource; for an exact version, the policy only says what happens if the version's tag moves to
other content (``spec.update.movedTag``, ``spec.packageDigest``).
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.formats.version_constraint import VersionConstraint, parse_constraint
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import DigestError
from wharfinger.packages.registry.address import is_tag
from wharfinger.runtime.versions.update_windows import Windows, read_windows

APPROVED: Final = "wharfinger.dev/approved-version"
"""The annotation with the version to which the package may be updated now, whatever the mode of updates is."""
_PRERELEASE: Final = re.compile(r"[0-9xX*]-[0-9A-Za-z]")
_Choice = TypeVar("_Choice", bound=StrEnum)


class Mode(StrEnum):
    """The mode of updates: when a newer version is installed."""

    AUTO = "auto"
    """A newer version is installed as soon as a scan has found it."""
    MANUAL = "manual"
    """A newer version is installed once a user has approved it."""
    WINDOWS = "windows"
    """A newer version is installed while an update window is open."""


class MovedTag(StrEnum):
    """The handling of a version's tag that does not point at the installed content any more."""

    REPORT = "report"
    """The moved tag is reported, and the new content is installed if a user requests this with an annotation."""
    REFUSE = "refuse"
    """The moved tag is reported, and the new content is never installed."""
    FOLLOW = "follow"
    """The new content is installed as soon as a scan has found it, whatever the mode of updates is."""


@dataclass(frozen=True, slots=True)
class Range:
    """All versions that a constraint allows. ``prereleases`` is True if the constraint names a prerelease; otherwise, all
    prereleases are left out.
    """

    constraint: VersionConstraint
    prereleases: bool

    def __str__(self) -> str:
        return f"range {self.constraint}"


@dataclass(frozen=True, slots=True)
class Channel:
    """The rule that the version is always the one at which a channel of the repository points."""

    name: str

    def __str__(self) -> str:
        return f"channel {self.name}"


Followed: TypeAlias = Range | Channel


@dataclass(frozen=True, slots=True)
class VersionPolicy:
    """The rules by which the version of one package is chosen and updated, as its resource defines them. ``follows`` is None
    if the resource names an exact version.
    """

    follows: Followed | None = None
    mode: Mode = Mode.AUTO
    windows: Windows = Windows()  # noqa: RUF009 - frozen
    moved: MovedTag = MovedTag.REPORT
    approved: str = ""
    digest: str = ""
    """The digest that the content must have (``spec.packageDigest``); empty if any digest is accepted."""

    @property
    def needs_index(self) -> bool:
        """Return whether the index of the package is needed, so that the repository has to be scanned for it."""
        return self.follows is not None or (self.moved is not MovedTag.REPORT and not self.digest)


EXACT: Final = VersionPolicy()


def read_version(obj: JsonObject) -> tuple[str, VersionPolicy]:
    """Return the exact version of a resource ("" if it names none), and its policy. Raises FormatError."""
    named = {name: find_str(obj, "spec", name) for name in ("packageVersion", "versionRange", "releaseChannel")}
    given = [name for name, text in named.items() if text]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise FormatError(
            f"spec: expected exactly one of packageVersion, versionRange and releaseChannel, found {found}; name the version once"
        )
    version, wanted, channel = named.values()
    update = find_object(obj, "spec", "update")
    digest = _digest(find_str(obj, "spec", "packageDigest"), exact=bool(version))
    mode = _one_of(Mode, find_str(update, "mode", default=Mode.AUTO), "spec.update.mode")
    windows = read_windows(update, "spec.update")
    if mode is Mode.WINDOWS and not windows.each:
        raise FormatError(
            "spec.update.windows: expected a window, because spec.update.mode is windows, found none; add one"
        )
    return version, VersionPolicy(
        follows=_range(wanted) if wanted else _channel(channel) if channel else None,
        mode=mode,
        windows=windows,
        moved=_one_of(MovedTag, find_str(update, "movedTag", default=MovedTag.REPORT), "spec.update.movedTag"),
        approved=find_str(find_object(obj, "metadata", "annotations"), APPROVED),
        digest=digest,
    )


def _range(text: str) -> Range:
    try:
        return Range(parse_constraint(text), bool(_PRERELEASE.search(text)))
    except FormatError as error:
        raise FormatError(f"spec.versionRange: {error}") from error


def _channel(text: str) -> Channel:
    if not is_tag(text):
        raise FormatError(
            f"spec.releaseChannel: expected the name of a channel, which is a tag, found {text!r:.80}; correct it"
        )
    return Channel(text)


def _digest(text: str, *, exact: bool) -> str:
    if not text:
        return ""
    if not exact:
        raise FormatError(
            "spec.packageDigest: expected spec.packageVersion beside it, found none; add the version, or remove the digest"
        )
    try:
        return Digest(text).text
    except DigestError as error:
        raise FormatError(f"spec.packageDigest: {error}") from error


def _one_of(choices: type[_Choice], text: str, where: str) -> _Choice:
    try:
        return choices(text)
    except ValueError as error:
        known = ", ".join(each.value for each in choices)
        raise FormatError(f"{where}: expected one of {known}, found {text!r:.80}; correct it") from error
