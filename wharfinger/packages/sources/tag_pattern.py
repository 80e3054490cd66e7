"""Patterns of the git tags that mark versions: ``{version}``, ``{package}-{version}``, ``release/{version}`` and so on. Pure.

The version that a git tag gives has the form of a registry's tag: each ``+`` is replaced by ``_``, as in Helm.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wharfinger.packages.errors import AddressError
from wharfinger.packages.registry.address import is_tag

VERSION: Final = "{version}"
PACKAGE: Final = "{package}"
MAX_LENGTH: Final = 200
_TEXT: Final = re.compile(r"[A-Za-z0-9_./@+-]*\Z")


@dataclass(frozen=True, slots=True)
class TagPattern:
    """A pattern of git tags: a text with exactly one ``{version}``, and optionally ``{package}``."""

    text: str = VERSION

    def versions(self, tags: Iterable[str], package: str) -> dict[str, str]:
        """Return the versions of a package, each with its git tag."""
        before, _, after = self.text.replace(PACKAGE, package).partition(VERSION)
        found: dict[str, str] = {}
        for tag in sorted(tags):
            if len(tag) > len(before) + len(after) and tag.startswith(before) and tag.endswith(after):
                version = tag[len(before) : len(tag) - len(after)].replace("+", "_")
                if is_tag(version):
                    found.setdefault(version, tag)
        return found


def read_pattern(text: str) -> TagPattern:
    """Read a pattern; "" means ``{version}``. Raises AddressError."""
    pattern = text or VERSION
    rest = pattern.replace(PACKAGE, "").replace(VERSION, "", 1)
    if pattern.count(VERSION) != 1 or len(pattern) > MAX_LENGTH or not _TEXT.match(rest):
        raise AddressError(
            f"{text[:MAX_LENGTH]!r}: expected {VERSION} exactly once, as in v{VERSION} or {PACKAGE}-{VERSION}; the rest may be "
            f"{PACKAGE}, letters, digits and _./@+-, up to {MAX_LENGTH} characters in all"
        )
    return TagPattern(pattern)
