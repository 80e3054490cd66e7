"""The mark on objects that a package's hooks created. By it, these objects are found and deleted when the package is removed.

Pure. These objects are not part of a release: drift and health ignore them, and a hook may change them freely. A mark is a
label with the release's name, by which a list can select, and an annotation with the release's namespace, because one label may
be too short for both. An object that existed before a hook wrote it was not created by the hook, and is not marked.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.json.value import JsonObject, find_object, find_str

MADE_FOR: Final = "wharfinger.dev/made-by-hook-of"
"""The label that names the release for whose package a hook created the object."""
MADE_FOR_NAMESPACE: Final = "wharfinger.dev/made-by-hook-of-namespace"
"""The annotation that names the namespace of the release for whose package a hook created the object."""


@dataclass(frozen=True, slots=True)
class HookMark:
    """The mark of objects that hooks create for the package of the release ``owner``."""

    owner: Owner

    @property
    def selector(self) -> str:
        """Return a label selector that matches all objects which may have this mark."""
        return f"{MADE_FOR}={self.owner.name}"

    def put_on(self, obj: JsonObject) -> JsonObject:
        """Return a copy of the object with the mark."""
        metadata = find_object(obj, "metadata")
        labels: JsonObject = {**find_object(metadata, "labels"), MADE_FOR: self.owner.name}
        annotations: JsonObject = {**find_object(metadata, "annotations"), MADE_FOR_NAMESPACE: self.owner.namespace}
        return {**obj, "metadata": {**metadata, "labels": labels, "annotations": annotations}}

    def is_on(self, obj: JsonObject) -> bool:
        """Return whether the object has this mark: whether a hook created it for the package of the release ``owner``."""
        return (
            find_str(obj, "metadata", "labels", MADE_FOR) == self.owner.name
            and find_str(obj, "metadata", "annotations", MADE_FOR_NAMESPACE) == self.owner.namespace
        )
