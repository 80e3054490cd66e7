"""The choice of a chart's version by a semantic version constraint, by Helm's rules."""

from collections.abc import Iterable

import semver

from wharfinger.formats.version_constraint import ConstraintError, parse_constraint, parse_version


def newest(versions: Iterable[str], wanted: str) -> str | None:
    """Return the newest version that a constraint allows, in the spelling of ``versions``; None if it allows no version.

    "" and ``*`` allow every version that is not a prerelease. Prereleases are allowed only if the constraint names one. A
    version whose text equals the constraint is always chosen. Raises ConstraintError for a text that is not a constraint.
    """
    written = list(versions)
    if wanted in written:
        return wanted
    constraint = parse_constraint("" if wanted.strip() in {"", "*"} else wanted)
    found: list[tuple[semver.Version, str]] = []
    for text in written:
        try:
            version = parse_version(text)
        except ConstraintError:
            continue  # a constraint cannot choose a tag that is not a version
        if version.prerelease and "-" not in wanted:
            continue
        if constraint.allows(version):
            found.append((version, text))
    return max(found)[1] if found else None
