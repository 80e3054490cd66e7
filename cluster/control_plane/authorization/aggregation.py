"""ClusterRoles that are put together from others: their rules follow whatever their selectors find.

kube-controller-manager does this some moments later; here it is part of the write that brought it about, so that nobody is
refused in between.
"""

from collections.abc import Sequence
from typing import Final

from wharfinger.cluster.control_plane.authorization.rules import rules_of
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.controllers.objects import selects
from wharfinger.cluster.control_plane.options import WriteOptions
from wharfinger.cluster.control_plane.patching import PatchType, patch
from wharfinger.cluster.control_plane.storage import Change, Collection
from wharfinger.formats.json_value import JsonObject, JsonValue, encode_json, find, find_list, find_object, find_str

ROLES: Final = Collection("rbac.authorization.k8s.io", "clusterroles")
MANAGER: Final = "clusterrole-aggregation-controller"


class Aggregation:
    """Observes all writes; acts on those of ClusterRoles."""

    def __init__(self, backend: Backend, served: Served) -> None:
        self._backend = backend
        self._served = served

    def __call__(self, change: Change) -> None:
        """One write was made."""
        if change.key.collection != ROLES:
            return
        roles = self._backend.storage.list(ROLES)
        for role in roles:
            selectors = find_list(find_object(role, "aggregationRule"), "clusterRoleSelectors")
            if selectors and find(role, "metadata", "deletionTimestamp") is None:
                self._bring_about(role, _rules(role, roles, selectors))

    def _bring_about(self, role: JsonObject, rules: list[JsonValue]) -> None:
        if rules != find_list(role, "rules"):
            name = find_str(role, "metadata", "name")
            body: JsonObject = {
                "apiVersion": self._served.api_version,
                "kind": self._served.kind.kind,
                "metadata": {"name": name},
                "rules": rules,
            }
            options = WriteOptions(MANAGER, force=True)
            patch(self._backend, self._served, "", name, "", PatchType.APPLY, encode_json(body), options)


def _rules(role: JsonObject, roles: Sequence[JsonObject], selectors: list[JsonValue]) -> list[JsonValue]:
    """The rules of all roles that a selector meets, in order of their names, each rule once."""
    found: list[JsonValue] = []
    name = find_str(role, "metadata", "name")
    for selector in selectors:
        for other in sorted(roles, key=lambda item: find_str(item, "metadata", "name")):
            if find_str(other, "metadata", "name") != name and selects(
                selector, find_object(other, "metadata", "labels")
            ):
                found += [rule for rule in rules_of(other) if rule not in found]
    return found
