"""The package of an Application or a Module: its name in the runtime, its identity and its release."""

import logging
from collections.abc import Iterator, Mapping

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.identity import (
    SYSTEM_NAMESPACE,
    AppId,
    ModuleId,
    PackageId,
    has_release,
    package_id,
)
from wharfinger.runtime.resources.release_policy import DeletionPolicy, read_deletion
from wharfinger.runtime.resources.resources import (
    APPLICATION,
    MODULE,
    is_deleting,
)

log = logging.getLogger(__name__)


def package_name(key: ObjectKey) -> str:
    """Return the runtime's name for the package of an Application or a Module."""
    return AppId(key.namespace, key.name).name if key.resource == APPLICATION else key.name


def is_ignored(key: ObjectKey) -> bool:
    """Return whether a Module is ignored, because its name contains a dot and could be mistaken for the name of an
    Application's package.
    """
    return key.resource == MODULE and "." in key.name


def identity_of(key: ObjectKey, obj: JsonObject) -> PackageId:
    """Return the identity of an object's package.

    A Module that is being deleted has its release in the namespace where it was installed. Any other Module has its release in
    ``spec.namespace``, or in SYSTEM_NAMESPACE if ``spec`` names no namespace.
    """
    if key.resource == APPLICATION:
        return AppId(key.namespace, key.name)
    if is_deleting(obj) and (placed := find_str(obj, "status", "release", "namespace")):
        return ModuleId(key.name, placed)
    namespace = find(obj, "spec", "namespace")
    return ModuleId(key.name, namespace if isinstance(namespace, str) and namespace else SYSTEM_NAMESPACE)


def releases_of(objects: Mapping[ObjectKey, JsonObject]) -> Iterator[tuple[str, Owner]]:
    """Yield the releases that packages have according to their status, each with its package's name."""
    for key, obj in objects.items():
        namespace, revision = (find(obj, "status", "release", name) for name in ("namespace", "revision"))
        if isinstance(namespace, str) and namespace and revision and not is_ignored(key):
            identity = package_id(package_name(key))
            if has_release(identity):
                yield identity.name, Owner(identity.release, namespace)


def deletion_policy(identity: PackageId, obj: JsonObject) -> DeletionPolicy:
    """Return the resource's deletion policy; if it cannot be read, the policy that deletes least."""
    try:
        return read_deletion(find_object(obj, "spec"))
    except FormatError as error:
        log.warning("%s: %s; its objects are kept", identity, error)
        return DeletionPolicy.ORPHAN
