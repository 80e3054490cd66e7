"""Constraints on versions: the dialect of Masterminds/semver v3, as package authors write it for Helm.

In ``>=1.2, <2 || ^3.1``, comparators joined by a comma or white space must all hold, and ``||`` separates alternatives. A version
may be partial or have wildcards (``1.2``, ``1.x``, ``*``), and a comparator with a missing part applies to the whole range:
``=1.2`` is any 1.2.z, ``>1.2`` starts at 1.3.0. ``1.2 - 2.3`` is ``>=1.2 <=2.3``; the white space around the hyphen distinguishes
it from a prerelease. The empty text allows any version.

One rule is Wharfinger's own: the *installed* version is compared without its prerelease and build metadata. For example,
1.2.0-rc1 satisfies ``>=1.2.0``, and does not satisfy ``<1.2.0``. Therefore every comparator stands for one half-open interval of
release numbers, or for everything outside such an interval. A prerelease that the *constraint* names lies just below its release.

``tests/formats/test_version_constraint.py`` compares this module with Helm's own ``semverCompare``. One difference is intended:
after an operator, a bare wildcard means the range of all versions. So ``<=*`` and ``^*`` accept every version, while ``>*``,
``<*`` and ``!=*`` accept none. Masterminds/semver reads this wildcard as 0.0.0.

Pure. Text is bounded before it is read, and every pattern matches in linear time.
"""

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import semver

from wharfinger.formats.errors import FormatError

MAX_CHARACTERS: Final = 1024
"""The largest number of characters in one constraint."""
MAX_COMPARATORS: Final = 64
"""The largest number of comparators in all alternatives of a constraint; a hyphen range counts as one."""
MAX_VERSION_CHARACTERS: Final = 256
_LARGEST: Final = 2**64 - 1
"""The largest number in a version, as in Masterminds/semver."""

Point: TypeAlias = tuple[int, int, int, int]
"""A position in the order of versions: the major, minor and patch numbers, and a fourth number. The fourth is 0 for a
prerelease, 1 for the release, and 2 for the position directly after the release.
"""

_START: Final[Point] = (0, 0, 0, 0)
_END: Final[Point] = (_LARGEST + 2, 0, 0, 0)
_PART: Final = r"(?:[0-9]+|[xX*])"
_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = (
    rf"v?(?P<major>{_PART})(?:\.(?P<minor>{_PART}))?(?:\.(?P<patch>{_PART}))?"
    rf"(?:-(?P<pre>{_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?"
)
_COMPARATOR: Final = re.compile(
    rf"(?P<operator>=>|=<|!=|>=|<=|~>|=|>|<|~|\^)?\s*{_VERSION}(?P<hyphen>\s+-\s+(?=[v0-9xX*]))?(?=[\s,]|\Z|(?<=\s))",
    re.ASCII,
)
_UPPER: Final = re.compile(rf"{_VERSION}(?=[\s,]|\Z)", re.ASCII)
_BETWEEN: Final = re.compile(r"\s*,\s*|\s+", re.ASCII)
_INSTALLED: Final = re.compile(
    rf"v?(0|[1-9][0-9]*)(?:\.(0|[1-9][0-9]*))?(?:\.(0|[1-9][0-9]*))?(-{_IDENTIFIERS})?(\+{_IDENTIFIERS})?", re.ASCII
)


class ConstraintError(FormatError):
    """A text is not a version constraint, or not a version. The message quotes the text unless it is too long."""


@dataclass(frozen=True, slots=True)
class _Interval:
    """The versions from ``low`` up to, but not including, ``high``. If ``outside`` is true, all other versions."""

    low: Point
    high: Point
    outside: bool = False

    def has(self, point: Point) -> bool:
        return (self.low <= point < self.high) is not self.outside


@dataclass(frozen=True, slots=True)
class VersionConstraint:
    """A parsed constraint. ``text`` is its original text; two constraints with the same text are equal."""

    text: str
    _alternatives: tuple[tuple[_Interval, ...], ...] = field(repr=False, compare=False)

    def allows(self, version: str | semver.Version) -> bool:
        """Return whether an installed version satisfies the constraint.

        The version's prerelease and build metadata are ignored. Raises ConstraintError for a text that is not a version.
        """
        parsed = parse_version(version) if isinstance(version, str) else version
        point = (parsed.major, parsed.minor, parsed.patch, 1)
        return any(all(interval.has(point) for interval in together) for together in self._alternatives)

    def __str__(self) -> str:
        return self.text


def parse_constraint(text: str) -> VersionConstraint:
    """Read a constraint; the empty text allows any version.

    Raises ConstraintError for more than MAX_CHARACTERS or MAX_COMPARATORS, and for a text that is not a constraint.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConstraintError(f"a version constraint of {len(text)} characters is over the limit of {MAX_CHARACTERS}")
    if not text.strip():
        return VersionConstraint(text, ((),))
    alternatives = tuple(_read_alternative(part.strip(), text) for part in text.split("||"))
    if sum(map(len, alternatives)) > MAX_COMPARATORS:
        raise ConstraintError(f"version constraint {_shown(text)}: more than {MAX_COMPARATORS} comparators")
    return VersionConstraint(text, alternatives)


def combine_constraints(first: VersionConstraint, second: VersionConstraint) -> VersionConstraint:
    """Return a constraint that allows a version if both do.

    If either has alternatives, the text of the result is only for users: it cannot be parsed again.
    """
    if not second.text.strip() or first.text == second.text:
        return first
    if not first.text.strip():
        return second
    pair = first.text.strip(), second.text.strip()
    text = "({}) and ({})" if any("||" in each for each in pair) else "{}, {}"
    alternatives = tuple((*one, *other) for one in first._alternatives for other in second._alternatives)  # noqa: SLF001
    return VersionConstraint(text.format(*pair), alternatives)


def parse_version(text: str) -> semver.Version:
    """Read a version: a leading ``v`` is dropped, missing parts are zero (``v1.2-rc1`` is 1.2.0-rc1).

    Raises ConstraintError.
    """
    found = _INSTALLED.fullmatch(text) if len(text) <= MAX_VERSION_CHARACTERS else None
    if found is None:
        raise ConstraintError(f"{_shown(text)} is not a version; write one like 1.2.3 or 1.2.3-rc.1")
    major, minor, patch, prerelease, build = found.groups(default="")
    try:
        version = semver.Version.parse(f"{major}.{minor or 0}.{patch or 0}{prerelease}{build}")
    except ValueError as error:
        raise ConstraintError(f"{_shown(text)} is not a version: a numeric prerelease part starts with 0") from error
    if max(version.major, version.minor, version.patch) > _LARGEST:
        raise ConstraintError(f"{_shown(text)} is not a version: a number in it does not fit into 64 bits")
    return version


def _read_alternative(part: str, text: str) -> tuple[_Interval, ...]:
    """Return the intervals of the comparators of one alternative, all of which must hold."""
    intervals: list[_Interval] = []
    position = 0
    while True:
        found = _COMPARATOR.match(part, position)
        if found is None:
            raise _refusal(part[position:], text)
        low = _Bound.of(found, text)
        position = found.end()
        if not found["hyphen"]:
            intervals.append(_OPERATORS[found["operator"] or "="](low))
        else:
            upper = _UPPER.match(part, position)
            if upper is None or found["operator"]:
                raise _refusal(part[position:] if upper is None else part[found.start() :], text)
            intervals.append(_Interval(low.point, _at_most(_Bound.of(upper, text)).high))
            position = upper.end()
        if position == len(part):
            return tuple(intervals)
        between = _BETWEEN.match(part, position)
        position = between.end() if between is not None else position


@dataclass(frozen=True, slots=True)
class _Bound:
    """The version in a comparator, such as ``1.2`` in ``>=1.2``. ``parts`` is the number of its parts that are given, and
    ``point`` is the lowest version that it matches.
    """

    parts: int
    point: Point

    @staticmethod
    def of(found: re.Match[str], text: str) -> "_Bound":
        given: list[int] = []
        for name in ("major", "minor", "patch"):
            part = found[name]
            if part is None or part in "xX*":
                break
            given.append(int(part))
        major, minor, patch = (*given, 0, 0, 0)[:3]
        if max(major, minor, patch) > _LARGEST:
            raise _refusal(found[0], text)
        if found["pre"] is not None:
            _check_prerelease(found["pre"], text)
        return _Bound(len(given), (major, minor, patch, 1 if found["pre"] is None else 0))

    def after(self, parts: int) -> Point:
        """Return the lowest point above all versions with the same first ``parts`` parts. For 3 parts, return the next point."""
        major, minor, patch, release = self.point
        match parts:
            case 0:
                return _END
            case 1:
                return (major + 1, 0, 0, 0)
            case 2:
                return (major, minor + 1, 0, 0)
            case _:
                return (major, minor, patch, release + 1)


def _check_prerelease(prerelease: str, text: str) -> None:
    for identifier in prerelease.split("."):
        if identifier.isdecimal() and identifier != "0" and identifier.startswith("0"):
            raise _refusal(prerelease, text)


def _equal(bound: _Bound) -> _Interval:
    return _Interval(bound.point, bound.after(3)) if bound.parts == 3 else _tilde(bound)


def _unequal(bound: _Bound) -> _Interval:
    if bound.parts == 2 and not bound.point[3]:  # `!=4.1-alpha` excludes only prereleases, so it allows every release
        return _Interval(_START, _START, outside=True)
    low = bound.point if bound.parts == 3 else (*bound.point[:3], 0)
    return _Interval(low, bound.after(bound.parts), outside=True)


def _above(bound: _Bound) -> _Interval:
    return _Interval(bound.after(bound.parts), _END)


def _below(bound: _Bound) -> _Interval:
    return _Interval(_START, bound.point)


def _at_least(bound: _Bound) -> _Interval:
    return _Interval(bound.point, _END)


def _at_most(bound: _Bound) -> _Interval:
    return _Interval(_START, bound.after(bound.parts))


def _tilde(bound: _Bound) -> _Interval:
    """Return the versions from the bound on with the same major and minor version, or with the same major version if no minor is
    given.

    ``~0.0.0`` and ``~*`` allow every version.
    """
    if bound.parts == 3 and bound.point[:3] == (0, 0, 0):
        return _at_least(bound)
    return _Interval(bound.point, bound.after(min(bound.parts, 2)))


def _caret(bound: _Bound) -> _Interval:
    """Return the range of a caret constraint: the versions from the bound on that have the same parts as the bound, up to its
    first part that is not zero.

    If all given parts are zero, all of them stay the same: ``^0.0`` is any 0.0.z.
    """
    leading_zeros = next((index for index, part in enumerate(bound.point[:3]) if part), 2)
    parts = min(leading_zeros + 1, bound.parts)
    if parts == 3:  # the range of `^0.0.z` has only 0.0.z and its prereleases
        return _Interval(bound.point, (*bound.point[:3], 2))
    return _Interval(bound.point, bound.after(parts))


_OPERATORS: Final = {
    "=": _equal,
    "!=": _unequal,
    ">": _above,
    "<": _below,
    ">=": _at_least,
    "=>": _at_least,
    "<=": _at_most,
    "=<": _at_most,
    "~": _tilde,
    "~>": _tilde,
    "^": _caret,
}


def _refusal(rest: str, text: str) -> ConstraintError:
    at = f" at {_shown(rest)}" if rest and rest != text else ""
    return ConstraintError(f"version constraint {_shown(text)}: not understood{at}; write one like >=1.2.0, <2 || ^3.1")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "...")
