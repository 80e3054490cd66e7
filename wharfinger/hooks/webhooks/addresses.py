"""The addresses of hooks' webhooks on the admission server: from a webhook to its path, and from a path to its webhook. Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import quote

PREFIX: Final = "/hooks/"
_PARTS: Final = 3
_CAMEL: Final = re.compile(r"([a-z0-9])([A-Z])")
_OTHER: Final = re.compile(r"[^a-z0-9/]+")


class ReviewKind(StrEnum):
    """The kind of review that an API server requests."""

    VALIDATING = "validating"
    MUTATING = "mutating"
    CONVERSION = "conversion"


@dataclass(frozen=True, slots=True)
class Address:
    """One webhook of a package. ``webhook`` is its name as `safe_name` returns it; for a conversion, the name of the CRD."""

    package: str
    kind: ReviewKind
    webhook: str

    @property
    def path(self) -> str:
        """The path on the server."""
        return f"{PREFIX}{quote(self.package, safe='')}/{self.kind}/{quote(self.webhook, safe='/')}"


def safe_name(name: str) -> str:
    """Return a webhook's name in the form of URLs (spec §3.4): ``weird spaced Name`` becomes ``weird-spaced-name``."""
    return _OTHER.sub("-", _CAMEL.sub(r"\1-\2", name).lower()).strip("-")


def read_address(path: str) -> Address | None:
    """Return the address that a decoded path (without percent encodings) names; None if it is not the path of a webhook."""
    if not path.startswith(PREFIX):
        return None
    parts = path.removeprefix(PREFIX).split("/", _PARTS - 1)
    if len(parts) != _PARTS or not all(parts) or parts[1] not in tuple(ReviewKind):
        return None
    return Address(parts[0], ReviewKind(parts[1]), parts[2])
