"""The policy for a package's applied objects, and for their deletion, which is read from fields of the package's resource.

``spec.drift`` decides about fields that other managers change, ``spec.healthChecks`` defines readiness for custom kinds,
``spec.deletionPolicy`` decides which objects a removal deletes, ``spec.allowEmpty`` allows an upgrade after which the release has
no objects. None of them changes the rendered chart.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.cluster.health.rules import HealthRule, read_health_rules
from wharfinger.cluster.objects.drift_policy import DriftPolicy, read_drift_policy
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, checksum, find, find_str, type_name

DRIFT: Final = "drift"
HEALTH_CHECKS: Final = "healthChecks"
DELETION_POLICY: Final = "deletionPolicy"
ALLOW_EMPTY: Final = "allowEmpty"


class ReleasePolicyError(FormatError):
    """A field of the policy has an invalid value."""


class DeletionPolicy(StrEnum):
    """The objects that a removal deletes."""

    DELETE = "Delete"
    """Delete all objects except data (persistent volumes and claims, namespaces, CRDs) and objects with
    ``helm.sh/resource-policy: keep``.
    """
    DELETE_ALL = "DeleteAll"
    """Delete all objects including data, except objects with ``helm.sh/resource-policy: keep``."""
    ORPHAN = "Orphan"
    """Delete no object: all objects are kept, and no longer belong to a release."""


@dataclass(frozen=True, slots=True)
class ReleasePolicy:
    """The policy for the applied objects of a package. ``digest`` is a checksum of all fields except ``deletion``, for
    comparison; "" if none of these fields is set.
    """

    drift: DriftPolicy = DriftPolicy()  # noqa: RUF009 - frozen
    health: tuple[HealthRule, ...] = ()
    deletion: DeletionPolicy = DeletionPolicy.DELETE
    allow_empty: bool = False
    """True if the release may have no objects after an upgrade."""
    digest: str = ""


def read_release_policy(spec: JsonObject) -> ReleasePolicy:
    """Read the policy from a spec. Raises FormatError, which names the field."""
    deletion = read_deletion(spec)
    drift, health, empty = (find(spec, name) for name in (DRIFT, HEALTH_CHECKS, ALLOW_EMPTY))
    if not isinstance(empty, bool | None):
        raise ReleasePolicyError(f"spec.{ALLOW_EMPTY}: expected true or false, found {type_name(empty)}")
    kept: JsonObject = {DRIFT: drift, HEALTH_CHECKS: health, ALLOW_EMPTY: empty}
    return ReleasePolicy(
        drift=DriftPolicy() if drift is None else read_drift_policy(drift, f"spec.{DRIFT}"),
        health=() if health is None else read_health_rules(health, f"spec.{HEALTH_CHECKS}"),
        deletion=deletion,
        allow_empty=empty is True,
        digest=checksum(kept) if any(said is not None for said in kept.values()) else "",
    )


def read_deletion(spec: JsonObject) -> DeletionPolicy:
    """Read only the deletion policy, because a removal needs no other field, and must work even if other fields are invalid.
    Raises FormatError, which names the field.
    """
    said = find_str(spec, DELETION_POLICY, default=DeletionPolicy.DELETE)
    if said not in set(DeletionPolicy):
        known = ", ".join(policy.value for policy in DeletionPolicy)
        raise ReleasePolicyError(f"spec.{DELETION_POLICY}: {said!r:.80} is not one of {known}")
    return DeletionPolicy(said)
