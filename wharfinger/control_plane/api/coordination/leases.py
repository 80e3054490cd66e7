"""The validation of Leases."""

from typing import Final

from wharfinger.control_plane.objects.amounts import optional_number, text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.wire.field_errors import NEGATIVE, each, forbidden, invalid, not_supported
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.selectors import key_problems

STRATEGIES: Final = ("OldestEmulationVersion",)


def lease_errors(lease: JsonObject) -> list[FieldError]:
    """Return the errors of the spec of a Lease (coordination.k8s.io/v1)."""
    errors: list[FieldError] = []
    duration = optional_number(lease, "spec", "leaseDurationSeconds")
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    transitions = optional_number(lease, "spec", "leaseTransitions")
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, NEGATIVE))
    strategy = text(lease, "spec", "strategy")
    if find(lease, "spec", "strategy") is not None:
        errors += _strategy_errors(strategy)
    if text(lease, "spec", "preferredHolder") and not strategy:
        errors.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


def _strategy_errors(strategy: str) -> list[FieldError]:
    field = "spec.strategy.strategy"
    if "/" not in strategy:
        return [] if strategy in STRATEGIES else [not_supported(field, strategy, STRATEGIES)]
    return each(field, strategy, key_problems(strategy))


LEASE_RULES: Final[dict[str, Rules]] = {
    "Lease.coordination.k8s.io": Rules(create=lease_errors, update=lambda new, _old: lease_errors(new)),
}
