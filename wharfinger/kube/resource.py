"""Names in a Kubernetes API: a kind from discovery, and one object of it."""

from dataclasses import dataclass

from wharfinger.formats.json.value import JsonObject, find_str


@dataclass(frozen=True, slots=True, order=True)
class ResourceType:
    """A served kind: ``ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)``. The core group is ""."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """Return ``v1`` or ``apps/v1``, as in an object's ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> str:
        """Return ``Deployment.apps``, or ``Pod`` for the core group."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection or of one object."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """The key of one object: its kind, namespace ("" for cluster-scoped) and name."""

    resource: ResourceType
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the key as messages show it: ``Deployment.apps prod/web``."""
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource.group_kind} {place}"

    @property
    def path(self) -> str:
        """Return the URL path of the object."""
        return self.resource.path(self.namespace, self.name)


def name_of(obj: JsonObject) -> str:
    """Return ``metadata.name``, or "" if it is missing."""
    return find_str(obj, "metadata", "name")


def namespace_of(obj: JsonObject) -> str:
    """Return ``metadata.namespace``, or "" if it is missing."""
    return find_str(obj, "metadata", "namespace")


def kind_of(obj: JsonObject) -> tuple[str, str]:
    """Return ``(apiVersion, kind)``; empty strings if they are missing."""
    return find_str(obj, "apiVersion"), find_str(obj, "kind")


def split_api_version(api_version: str) -> tuple[str, str]:
    """Split an apiVersion: ``"apps/v1"`` → ``("apps", "v1")``; ``"v1"`` → ``("", "v1")``."""
    group, _, version = api_version.rpartition("/")
    return group, version
