"""The scopes of kinds: whether the objects of a kind have a namespace."""

from collections.abc import Iterable
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.offline.store.identity import group_of, is_cluster_scoped
from wharfinger.offline.store.kinds import DATA, SCHEDULABLE

_BUILT_IN: Final = frozenset(
    {
        "",
        "apps",
        "autoscaling",
        "batch",
        "policy",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "networking.k8s.io",
        "rbac.authorization.k8s.io",
        "storage.k8s.io",
    }
)
"""API groups of Kubernetes itself. Their kinds are namespaced, except those for which `is_cluster_scoped` returns True."""


class Scopes:
    """The kinds with their scopes, namespaced or cluster-wide. It knows the kinds of Kubernetes itself, those of the
    CustomResourceDefinitions among ``objects``, and those in `kinds.py`.
    """

    def __init__(self, objects: Iterable[JsonObject]) -> None:
        self._custom: dict[tuple[str, str], bool] = {}
        for obj in objects:
            if obj.get("kind") == "CustomResourceDefinition":
                try:
                    kind = find_str(obj, "spec", "group"), find_str(obj, "spec", "names", "kind")
                    self._custom[kind] = find_str(obj, "spec", "scope") == "Namespaced"
                except FormatError:
                    continue  # a server would refuse the definition, which `wharfinger check` reports
        self.cluster_scoped = frozenset(kind for kind, namespaced in self._custom.items() if not namespaced)

    def is_namespaced(self, obj: JsonObject) -> bool | None:
        """Return whether objects of the same kind as ``obj`` have a namespace; None if that is unknown."""
        group, kind = group_of(find_str(obj, "apiVersion")), find_str(obj, "kind")
        if is_cluster_scoped(group, kind, self.cluster_scoped):
            return False
        if (group, kind) in self._custom or group in _BUILT_IN:
            return True
        return True if f"{kind}.{group}" in SCHEDULABLE | DATA else None
