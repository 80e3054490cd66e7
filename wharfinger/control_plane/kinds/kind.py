"""A served kind: names, versions, subresources, columns, and the few settings in which kinds differ.

Built-in kinds are rows of one table (:mod:`~wharfinger.control_plane.catalog.builtin_kinds`). Custom kinds are created from
their definitions (:mod:`~wharfinger.control_plane.catalog.custom_kinds`). Most code handles built-in and custom kinds in the same
way.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from wharfinger.control_plane.kinds.type_shapes import ListTypes
from wharfinger.control_plane.storage.interface import Collection
from wharfinger.formats.json.value import JsonObject, JsonValue

DEFINITION: Final = "CustomResourceDefinition.apiextensions.k8s.io"
ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


class Deletion(StrEnum):
    """The form of the body of the response to a completed delete: a Status, or the deleted object."""

    STATUS = "status"
    OBJECT = "object"


class Generation(StrEnum):
    """The rule by which ``metadata.generation`` of a kind's objects is counted."""

    NONE = "none"
    """The server does not set a generation; the client's value is kept."""
    SPEC = "spec"
    """The generation is 1 at creation, and grows by 1 with each change outside metadata and status."""
    FIRST = "first"
    """The generation is always 1."""
    LATER = "later"
    """The generation is absent at creation, and grows by 1 with each later change outside metadata and status."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a Table; ``cell`` computes its value for an object at a given time."""

    name: str
    cell: Callable[[JsonObject, datetime], JsonValue]
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The fields that ``scale`` shows: dotted paths such as ``.spec.replicas``; ``selector`` is "" if there is none."""

    replicas: str
    status_replicas: str
    selector: str


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource as discovery lists it; ``group`` and ``version`` are "" if the subresource's kind has the group and version
    of the resource.
    """

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class KindVersion:
    """One version of a kind."""

    name: str
    columns: tuple[Column, ...]
    lists: ListTypes
    schema: JsonObject = field(default_factory=dict)
    """The ``openAPIV3Schema`` of a custom kind; empty for built-in kinds."""
    embeds: bool = False
    """True if the schema has embedded objects, which are checked separately."""
    status: bool = False
    """True if ``status`` is a subresource."""
    scale: ScalePaths | None = None
    warning: str = ""
    """The warning that every request for a deprecated version gets; "" for none."""
    selectable: tuple[str, ...] = ()
    """The dotted paths that a field selector may use, in addition to name and namespace."""
    subresources: tuple[Subresource, ...] = ()
    """All subresources that discovery lists, implemented or not."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind with its versions; ``versions`` has the served ones, the preferred one first."""

    group: str
    kind: str
    plural: str
    singular: str
    list_kind: str
    namespaced: bool
    versions: tuple[KindVersion, ...]
    storage_version: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    custom: bool = False
    generation: Generation = Generation.NONE
    deletion: Deletion = Deletion.STATUS
    initial_status: JsonObject | None = None
    """The ``status`` at creation, if the server sets one."""
    create_on_update: bool = False
    """True if a PUT of an absent object creates it."""
    unconditional_update: bool = True
    """False if updates of a built-in kind must have ``metadata.resourceVersion``; updates of a custom kind must always have it.
    """
    virtual: bool = False
    """True if objects of the kind are never stored, as for reviews and Bindings."""
    storage_hash: str = ""
    """The storage version's hash in discovery; "" to compute it."""
    unserved: tuple[KindVersion, ...] = ()
    """Versions of a custom kind that are not served; objects may be stored in one of them."""
    stored: Collection | None = None
    """The collection in which the objects are stored, if this is the collection of another kind, as for the Events of
    events.k8s.io; otherwise None.
    """
    converter: str = ""
    """The webhook that converts objects of a custom kind: ``spec.conversion.webhook`` as JSON; "" for none."""

    resource: str = field(init=False, compare=False)
    """The resource with its group: ``deployments.apps``, or ``pods`` for the core group."""
    group_kind: str = field(init=False, compare=False)
    """The kind with its group: ``Deployment.apps``, or ``Pod`` for the core group."""
    collection: Collection = field(init=False, compare=False)
    """The collection in storage that has the objects of this kind."""
    stored_api_version: str = field(init=False, compare=False)
    """The apiVersion of the objects of this kind in storage."""

    def __post_init__(self) -> None:
        """Compute the fields that are derived from others. They are stored, because every request reads them many times."""
        group = self.group if self.stored is None else self.stored.group
        version = self.storage_version
        follows: dict[str, str | Collection] = {
            "resource": f"{self.plural}.{self.group}" if self.group else self.plural,
            "group_kind": f"{self.kind}.{self.group}" if self.group else self.kind,
            "collection": self.stored or Collection(self.group, self.plural),
            "stored_api_version": f"{group}/{version}" if group else version,
        }
        for name, value in follows.items():
            object.__setattr__(self, name, value)

    def version(self, name: str) -> KindVersion | None:
        """Return the served version of that name."""
        return next((version for version in self.versions if version.name == name), None)

    def api_version(self, version: str) -> str:
        """Return the apiVersion of a version: ``apps/v1``, or ``v1`` for the core group."""
        return f"{self.group}/{version}" if self.group else version
