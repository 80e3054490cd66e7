"""The request for which a policy is evaluated, and the form in which expressions see this request and its objects."""

from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.access.users import user_info
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.conversions import shown
from wharfinger.control_plane.catalog.custom_versions import converted_custom
from wharfinger.control_plane.catalog.scales import scale_of
from wharfinger.control_plane.kinds.kind import Kind, KindVersion
from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.formats.json.value import JsonObject

SCALE: Final = "scale"


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind in one of its versions."""

    kind: Kind
    version: KindVersion

    @property
    def group_version_kind(self) -> JsonObject:
        """The group, version and kind, as ``request`` shows them."""
        return {"group": self.kind.group, "version": self.version.name, "kind": self.kind.kind}

    @property
    def group_version_resource(self) -> JsonObject:
        """The group, version and resource, as ``request`` shows them."""
        return {"group": self.kind.group, "version": self.version.name, "resource": self.kind.plural}


_SCALE: Final = Resource(
    Kind("autoscaling", "Scale", "scales", "scale", "ScaleList", True, (), "v1"),  # noqa: FBT003
    KindVersion("v1", (), builtin_list_types("autoscaling", "v1", "Scale")),
)
_OPTIONS: Final = {
    Operation.CREATE: "CreateOptions",
    Operation.UPDATE: "UpdateOptions",
    Operation.DELETE: "DeleteOptions",
}


def form_of(admission: Admission) -> Resource | None:
    """Return the kind of the object if it is not the kind of the resource, for example a Scale or an Eviction; else None."""
    if admission.subresource == SCALE:
        return _SCALE
    return None if admission.form is None else Resource(admission.form.kind, admission.form.version)


def resource_of(admission: Admission) -> Resource | None:
    """Return the written resource at the requested version; None if that version is no longer served."""
    version = admission.kind.version(admission.version or admission.kind.storage_version)
    return None if version is None else Resource(admission.kind, version)


def namespace_of(admission: Admission) -> str:
    """Return the namespace of a request; for a Namespace, its own name."""
    return admission.name if admission.kind.group_kind == "Namespace" else admission.namespace


def at_resource(resource: Resource, obj: JsonObject | None) -> JsonObject | None:
    """Return a stored object in the version of ``resource``, which is the version that expressions see; None if ``obj`` is
    None.
    """
    if obj is None:
        return None
    served = Served(resource.kind, resource.version)
    found = converted_custom(resource.kind, obj, served.api_version) if resource.kind.converter else shown(served, obj)
    return {**found, "kind": resource.kind.kind}


def seen(admission: Admission, resource: Resource, obj: JsonObject | None) -> JsonObject | None:
    """Return an object of a request as expressions see it: at the version of ``resource``, or as a Scale.

    Objects of another kind than the resource (``form``), such as an Eviction, are returned unchanged.
    """
    if obj is None or admission.form is not None:
        return obj
    if admission.subresource == SCALE and resource.version.scale is not None:
        return scale_of(resource.version.scale, obj)
    return at_resource(resource, obj)


def request_document(admission: Admission, asked: Resource, matched: Resource) -> JsonObject:
    """Return the ``request`` variable of expressions; an empty name, namespace or subresource is left out.

    ``asked`` is the resource in the version that the user has requested. ``matched`` is the resource in the version that the
    policy matches.
    """
    form, options = form_of(admission), _OPTIONS.get(admission.operation)
    document: JsonObject = {
        "uid": "",
        "kind": (form or matched).group_version_kind,
        "resource": matched.group_version_resource,
        "subResource": admission.subresource,
        "requestKind": (form or asked).group_version_kind,
        "requestResource": asked.group_version_resource,
        "requestSubResource": admission.subresource,
        "name": admission.name,
        "namespace": namespace_of(admission),
        "operation": admission.operation.value,
        "userInfo": user_info(admission.user),
        "object": None,
        "oldObject": None,
        "dryRun": admission.dry_run,
        "options": options and {"kind": options, "apiVersion": "meta.k8s.io/v1", **dict(admission.asked)},
    }
    optional = ("subResource", "requestSubResource", "name", "namespace")
    return {name: value for name, value in document.items() if value != "" or name not in optional}
