"""A fake cluster for authorization rules, made of a few objects."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str

GROUP = "rbac.authorization.k8s.io"


@dataclass
class View:
    """A ``ClusterView`` of the objects in a list of pairs (plural, object)."""

    stored: list[tuple[str, JsonObject]] = field(default_factory=list)
    dry_run: bool = False

    def now(self) -> datetime:
        return datetime(2026, 11, 21, tzinfo=UTC)

    def draw(self, count: int) -> int:
        return count - 1

    def new_uid(self) -> str:
        return "u"

    def objects(self, group: str, plural: str, namespace: str = "") -> Sequence[JsonObject]:
        del group
        return [
            obj
            for name, obj in self.stored
            if name == plural and (not namespace or find(obj, "metadata", "namespace") == namespace)
        ]

    def object(self, group: str, plural: str, namespace: str, name: str) -> JsonObject | None:
        found = (obj for obj in self.objects(group, plural, namespace) if find_str(obj, "metadata", "name") == name)
        return next(found, None)


def role(name: str, *rules: JsonObject, namespace: str = "") -> tuple[str, JsonObject]:
    """Return a Role with its plural, or a ClusterRole if there is no namespace."""
    metadata: JsonObject = {"name": name, **({"namespace": namespace} if namespace else {})}
    return ("roles" if namespace else "clusterroles"), {"metadata": metadata, "rules": list(rules)}


def binding(name: str, of: str, *subjects: JsonObject, namespace: str = "", kind: str = "") -> tuple[str, JsonObject]:
    """Return a RoleBinding with its plural, or a ClusterRoleBinding if there is no namespace."""
    metadata: JsonObject = {"name": name, **({"namespace": namespace} if namespace else {})}
    listed: list[JsonValue] = list(subjects)
    reference: JsonObject = {"kind": kind or ("Role" if namespace else "ClusterRole"), "name": of, "apiGroup": GROUP}
    plural = "rolebindings" if namespace else "clusterrolebindings"
    return plural, {"metadata": metadata, "roleRef": reference, "subjects": listed}
