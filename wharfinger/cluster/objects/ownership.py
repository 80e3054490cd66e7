"""The owner of an object. Helm's label and annotations make the object part of one release and of no other.

Pure. A release takes over an object that already exists only if the object's annotations name the release. Helm adopts objects
by the same rule, and users can write these annotations by hand. When an object leaves its release, it is kept if it is annotated
``helm.sh/resource-policy: keep``. An object with data that cannot be recreated (PROTECTED) is deleted only on request.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.api.errors import ReleaseError
from wharfinger.formats.json.value import JsonObject, ShapeError, as_object, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey, kind_of, name_of, namespace_of

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
RELEASE_NAME: Final = "meta.helm.sh/release-name"
RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"
RESOURCE_POLICY: Final = "helm.sh/resource-policy"
RELEASE_LABEL: Final = "wharfinger.dev/release"
"""The label on every object of a release; its value is the release's name. Watches select objects by this label."""

PROTECTED: Final = frozenset(
    {
        "PersistentVolumeClaim",
        "PersistentVolume",
        "Namespace",
        "CustomResourceDefinition.apiextensions.k8s.io",
    }
)
"""The kinds (``ResourceType.group_kind``) with data that cannot be recreated."""


class ForeignObjectError(ReleaseError):
    """An object of the manifest already exists, and does not belong to the release."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The release to which an object belongs according to its annotations. A field is empty if its annotation is missing."""

    name: str
    namespace: str

    def __str__(self) -> str:
        """Return the owner as text: ``prod/web``."""
        return f"{self.namespace}/{self.name}"


def owner_of(obj: JsonObject) -> Owner:
    """Return the owner that an object's annotations name."""
    annotations = find_object(obj, "metadata", "annotations")
    return Owner(find_str(annotations, RELEASE_NAME), find_str(annotations, RELEASE_NAMESPACE))


def owned(obj: JsonObject, owner: Owner) -> JsonObject:
    """Return a copy of the object, with the labels and annotations that make it part of the release ``owner``."""
    metadata = find_object(obj, "metadata")
    labels: JsonObject = {**find_object(metadata, "labels"), MANAGED_BY: "Helm", RELEASE_LABEL: owner.name}
    annotations: JsonObject = {
        **find_object(metadata, "annotations"),
        RELEASE_NAME: owner.name,
        RELEASE_NAMESPACE: owner.namespace,
    }
    return {**obj, "metadata": {**metadata, "labels": labels, "annotations": annotations}}


def check_owner(key: ObjectKey, live: JsonObject, owner: Owner) -> None:
    """Check that the live object belongs to the owner. Raises ForeignObjectError."""
    found = owner_of(live)
    if found == owner:
        return
    if found.name or found.namespace:
        raise ForeignObjectError(
            f"{key} belongs to the release {found}, so it cannot also be part of {owner}: uninstall that release, or "
            "rename the object in one of the charts"
        )
    manager = find_str(live, "metadata", "labels", MANAGED_BY)
    by = f", managed by {manager}," if manager and manager != "Helm" else ""
    raise ForeignObjectError(
        f"{key} exists{by} and is not part of any release; delete it, or give it to {owner} with the annotations "
        f"{RELEASE_NAME}={owner.name} and {RELEASE_NAMESPACE}={owner.namespace}"
    )


def is_kept(obj: JsonObject) -> bool:
    """Return whether the object's author marked it to be kept when its release is removed."""
    return find_str(obj, "metadata", "annotations", RESOURCE_POLICY).strip().lower() == "keep"


def placed(obj: JsonObject, key: ObjectKey) -> JsonObject:
    """Return the object with the namespace of ``key`` in place of its own; without a namespace if ``key`` has none, because the
    kind is cluster-scoped. The key's namespace is the one that the object names or, if it names none, the namespace of the
    release.
    """
    metadata = {name: value for name, value in find_object(obj, "metadata").items() if name != "namespace"}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return {**obj, "metadata": metadata}


def flattened(documents: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the documents of a manifest; each List is replaced by its items. Raises ReleaseError for an invalid document."""
    try:
        return _flattened(documents)
    except ShapeError as error:
        raise ReleaseError(f"the manifest has a document that is not a Kubernetes object: {error}") from error


def _flattened(documents: Iterable[JsonObject]) -> list[JsonObject]:
    result: list[JsonObject] = []
    for document in documents:
        api_version, kind = kind_of(document)
        if kind.endswith("List") and "items" in document:
            item_kind = kind.removesuffix("List")
            for item in find_list(document, "items"):
                typed = as_object(item, f"item of {kind}")
                defaults: JsonObject = {"apiVersion": api_version, "kind": item_kind} if item_kind else {}
                result += _flattened([{**defaults, **typed}])
        elif not api_version or not kind or not name_of(document):
            raise ReleaseError(f"the manifest has an object without apiVersion, kind or name ({kind or 'no kind'})")
        else:
            namespace_of(document)
            result.append(document)
    return result
