"""Strategies of the other groups: fields of features that are off by default are dropped, lists that Go keeps as null are."""

from typing import Final

from wharfinger.cluster.control_plane.strategies.strategy import ClusterView, Strategy
from wharfinger.formats.json_value import JsonObject, find_object

_COORDINATED: Final = ("strategy", "preferredHolder")
"""Of Leases: coordinated leader election is off by default (KEP-4355)."""
_RBAC: Final = "rbac.authorization.k8s.io"


def _lease(lease: JsonObject, _view: ClusterView) -> JsonObject:
    spec = {name: value for name, value in find_object(lease, "spec").items() if name not in _COORDINATED}
    return {**lease, "spec": spec}


def _changed_lease(new: JsonObject, old: JsonObject, view: ClusterView) -> JsonObject:
    kept = any(name in find_object(old, "spec") for name in _COORDINATED)
    return new if kept else _lease(new, view)


def _role(role: JsonObject, _view: ClusterView) -> JsonObject:
    """No rules are null: the field is always there."""
    return role if role.get("rules") else {**role, "rules": None}


_ROLE: Final = Strategy(create=_role, update=lambda new, _old, view: _role(new, view))

GROUP_STRATEGIES: Final[dict[str, Strategy]] = {
    f"ClusterRole.{_RBAC}": _ROLE,
    "Lease.coordination.k8s.io": Strategy(create=_lease, update=_changed_lease),
    f"Role.{_RBAC}": _ROLE,
}
