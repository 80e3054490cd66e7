"""Aggregated ClusterRoles: their rules are the rules of all roles that their selectors match.

In a real cluster, kube-controller-manager updates these rules some time after a selected role has changed. Here they are updated
within the write that changes the role, so that no request is refused because of outdated rules.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from wharfinger.control_plane.access.role_rules import rules_of
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.objects.label_selectors import selects
from wharfinger.control_plane.storage.interface import Change, Collection
from wharfinger.control_plane.verbs.options import WriteOptions
from wharfinger.control_plane.verbs.patching import PatchType, patch
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find, find_list, find_object, find_str

log: Final = logging.getLogger(__name__)
ROLES: Final = Collection("rbac.authorization.k8s.io", "clusterroles")
MANAGER: Final = "clusterrole-aggregation-controller"
MAX_PASSES: Final = 16
"""The limit of passes over all roles after one write; the rules of roles that aggregate each other in a cycle may change in
every pass."""


class Aggregation:
    """The aggregation of ClusterRoles: an observer of all writes that reacts to writes of ClusterRoles."""

    def __init__(self, backend: Backend, served: Served) -> None:
        self._backend = backend
        self._served = served
        self._under_way = False

    def __call__(self, change: Change) -> None:
        """After a write of a role, aggregate all roles until nothing changes, in at most MAX_PASSES passes.

        The writes of this method itself do not start another aggregation.
        """
        if change.key.collection != ROLES or self._under_way:
            return
        self._under_way = True
        try:
            for _ in range(MAX_PASSES):
                if not self._update_roles():
                    break
            else:
                log.warning(
                    "ClusterRoles that aggregate each other still change after %d passes; remove the cycle from their "
                    "aggregation rules",
                    MAX_PASSES,
                )
        finally:
            self._under_way = False

    def _update_roles(self) -> bool:
        """Set the rules of every aggregated role to those of the roles that it selects; return whether any role changed."""
        changed = False
        for name in [find_str(role, "metadata", "name") for role in self._backend.storage.list(ROLES)]:
            roles = self._backend.storage.list(ROLES)
            role = next((item for item in roles if find_str(item, "metadata", "name") == name), {})
            selectors = find_list(find_object(role, "aggregationRule"), "clusterRoleSelectors")
            if selectors and find(role, "metadata", "deletionTimestamp") is None:
                changed |= self._apply_rules(role, _rules(role, roles, selectors))
        return changed

    def _apply_rules(self, role: JsonObject, rules: list[JsonValue]) -> bool:
        changed = rules != find_list(role, "rules")
        if changed:
            name = find_str(role, "metadata", "name")
            body: JsonObject = {
                "apiVersion": self._served.api_version,
                "kind": self._served.kind.kind,
                "metadata": {"name": name},
                "rules": rules,
            }
            options = WriteOptions(MANAGER, force=True, own=True)
            patch(self._backend, self._served, "", name, "", PatchType.APPLY, encode_json(body), options)
        return changed


def _rules(role: JsonObject, roles: Sequence[JsonObject], selectors: list[JsonValue]) -> list[JsonValue]:
    """Return the rules of all other roles that match a selector, each rule once, in the order of selectors and role names."""
    found: dict[bytes, JsonValue] = {}
    name = find_str(role, "metadata", "name")
    left = {other: item for item in roles if (other := find_str(item, "metadata", "name")) != name}
    labels = {other: find_object(left[other], "metadata", "labels") for other in sorted(left)}
    for selector in {encode_json(selector): selector for selector in selectors}.values():
        if not _names_labels(selector, labels):
            continue
        for other in [other for other, its_labels in labels.items() if selects(selector, its_labels)]:
            found |= {key: rule for rule in rules_of(left[other]) if (key := encode_json(rule)) not in found}
            del labels[other]
    return list(found.values())


def _names_labels(selector: JsonValue, labels: Mapping[str, JsonObject]) -> bool:
    """Return whether the selector may match a role. It cannot match any role if no role has the first label of its
    ``matchLabels``.
    """
    wanted = next(iter(find_object(selector, "matchLabels").items()), None)
    return wanted is None or any(own.get(wanted[0]) == wanted[1] for own in labels.values())
