"""The policy for failed upgrades of a package (``spec.upgrade``), and the annotation that requests a rollback.

With ``rollbackOnFailure``, a package whose upgrade has failed returns to its former revision. An upgrade has failed if a stage
failed permanently, if its stages failed more often than ``retries`` allows, or if the package does not become Ready within
``timeout`` after the start of the upgrade. Pure.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from wharfinger.formats.duration import DurationError, parse_duration
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, checksum, find_str
from wharfinger.packages.files.strict_fields import closed_object, flag, number, text

ROLLBACK: Final = "wharfinger.dev/rollback-to"
"""The annotation that requests a rollback. Its value is the number of a revision, or FORMER, and may end with ``@`` and any
text. Each change of the value is a request, so another text after ``@`` requests the same rollback again.
"""
FORMER: Final = "former"
"""The value that requests a return to the newest deployed revision with another version or other settings."""
TIMEOUT: Final = "10m"
RETRIES: Final = 3
MAX_RETRIES: Final = 1_000
LONGEST: Final = timedelta(days=7)
FIELD: Final = "spec.upgrade"
_FIELDS: Final = ("rollbackOnFailure", "timeout", "retries")
_REQUEST: Final = re.compile(r"(former|[1-9][0-9]{0,8})(@.{0,100})?")


@dataclass(frozen=True, slots=True)
class UpgradePolicy:
    """The policy for failed upgrades of a package. ``rollback`` is true if a failed upgrade is rolled back. ``timeout`` is the
    time from the start of an upgrade until the package has to be Ready.
    """

    rollback: bool = False
    timeout: timedelta = timedelta(minutes=10)
    retries: int = RETRIES

    @property
    def digest(self) -> str:
        """Return a checksum of the policy; "" if failed upgrades are not rolled back."""
        return checksum([self.timeout.total_seconds(), self.retries]) if self.rollback else ""


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """A user's request for a rollback. ``text`` identifies the request; ``revision`` 0 means the former revision."""

    text: str
    revision: int


def read_upgrade_policy(spec: JsonObject) -> UpgradePolicy:
    """Read ``spec.upgrade``. Raises FormatError, which names the field."""
    said = closed_object(spec.get("upgrade"), FIELD, _FIELDS)
    try:
        timeout = parse_duration(text(said, "timeout", FIELD) or TIMEOUT)
    except DurationError as error:
        raise FormatError(f"{FIELD}.timeout: {error}") from error
    if not timedelta(0) < timeout <= LONGEST:
        raise FormatError(f"{FIELD}.timeout: expected more than 0 and at most {LONGEST.days} days; correct it")
    retries = number(said, "retries", FIELD, most=MAX_RETRIES)
    rollback = flag(said, "rollbackOnFailure", FIELD)
    return UpgradePolicy(rollback, timeout, RETRIES if retries is None else retries)


def read_rollback_request(annotations: JsonObject) -> RollbackRequest | None:
    """Read the annotation ``wharfinger.dev/rollback-to``; return None if it is not set. Raises FormatError."""
    said = find_str(annotations, ROLLBACK)
    if not said:
        return None
    found = _REQUEST.fullmatch(said)
    if found is None:
        raise FormatError(
            f"metadata.annotations: {ROLLBACK}: expected the number of a revision or {FORMER}, found {said!r:.80}; correct it, "
            "or remove it"
        )
    return RollbackRequest(said, 0 if found[1] == FORMER else int(found[1]))
