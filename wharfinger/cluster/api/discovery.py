"""The kinds that a server serves, from its discovery documents.

The documents have one of two forms: the aggregated form (KEP-3352), or the older *plain* form, which has a document for each
group version.

This module is pure: it turns documents into a :class:`Catalog`, and :mod:`wharfinger.cluster.api.http_client` requests the
documents. If the API server behind a group version does not answer, the group version is named in :attr:`Catalog.unavailable`,
and all other ones can still be used.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, find, find_list, find_str
from wharfinger.kube.resource import ResourceType, split_api_version

AGGREGATED_ACCEPT: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)
"""The Accept header for ``/api`` and ``/apis``. It asks for the aggregated form, and for the plain form from older servers."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """All served kinds, by apiVersion and kind, and by their other names."""

    types: dict[tuple[str, str], ResourceType] = field(default_factory=dict)
    names: dict[str, tuple[ResourceType, ...]] = field(default_factory=dict)
    """The types by kind, plural and singular, all in lower case: preferred versions first, groups in the server's order."""
    short_names: dict[str, tuple[ResourceType, ...]] = field(default_factory=dict)
    versions: frozenset[str] = frozenset()
    unavailable: tuple[str, ...] = ()
    """The group versions whose API server does not answer, so that their kinds may be missing or outdated."""
    kinds: tuple[ResourceType, ...] = ()
    """The kinds whose objects can be listed and deleted, in the server's order. Each kind occurs once, in its preferred
    version.
    """

    def find(self, api_version: str, kind: str) -> ResourceType | None:
        """Return the type, or None if it is not served."""
        return self.types.get((api_version, kind))

    def named(self, name: str, api_version: str = "") -> ResourceType | None:
        """Return the first type of this name, or None. The case of the name does not matter.

        Kinds, plurals and singulars take precedence over short names. With ``api_version``, only a type of this apiVersion is
        returned.
        """
        wanted = name.lower()
        for names in (self.names, self.short_names):
            for resource in names.get(wanted, ()):
                if api_version in {"", resource.api_version}:
                    return resource
        return None

    def api_versions(self) -> tuple[str, ...]:
        """Return all ``group/version`` and ``group/version/Kind``, sorted (Helm's ``.Capabilities.APIVersions``)."""
        kinds = {f"{api_version}/{kind}" for api_version, kind in self.types}
        return tuple(sorted(self.versions | kinds))


def is_aggregated(document: JsonObject) -> bool:
    """Return whether a server answered ``/api`` or ``/apis`` in the aggregated form."""
    return find_str(document, "kind") == "APIGroupDiscoveryList"


class _Draft:
    """A catalog under construction. Resources of preferred versions have to be added first."""

    def __init__(self) -> None:
        self.types: dict[tuple[str, str], ResourceType] = {}
        self._names: dict[str, list[ResourceType]] = {}
        self._short_names: dict[str, list[ResourceType]] = {}
        self._kinds: dict[str, ResourceType] = {}

    def add(
        self, found: ResourceType, singular: str, short_names: Iterable[JsonValue], verbs: Collection[JsonValue]
    ) -> None:
        """Add a resource, unless its kind was already added. Skip a resource without a kind, because it is only the parent of
        subresources.
        """
        if not found.kind or not found.plural or (found.api_version, found.kind) in self.types:
            return
        self.types[(found.api_version, found.kind)] = found
        for name in {found.kind.lower(), found.plural.lower(), singular.lower()} - {""}:
            self._names.setdefault(name, []).append(found)
        for name in {name.lower() for name in short_names if isinstance(name, str)}:
            self._short_names.setdefault(name, []).append(found)
        if "list" in verbs and "delete" in verbs:
            self._kinds.setdefault(found.group_kind, found)

    def catalog(self, versions: Iterable[str], unavailable: Iterable[str]) -> Catalog:
        """Return the catalog of the added resources."""
        return Catalog(
            self.types,
            {name: tuple(found) for name, found in self._names.items()},
            {name: tuple(found) for name, found in self._short_names.items()},
            frozenset(versions),
            tuple(sorted(unavailable)),
            tuple(self._kinds.values()),
        )


def aggregated_catalog(documents: Iterable[JsonObject]) -> Catalog:
    """Return the catalog that aggregated discovery documents describe. The documents list the preferred version of each group
    first. Raises ShapeError.
    """
    draft = _Draft()
    versions: set[str] = set()
    unavailable: list[str] = []
    for document in documents:
        for group in find_list(document, "items"):
            group_name = find_str(group, "metadata", "name")
            for version in find_list(group, "versions"):
                api_version = _join(group_name, find_str(version, "version"))
                versions.add(api_version)
                if find_str(version, "freshness") == "Stale":
                    unavailable.append(api_version)
                for resource in find_list(version, "resources"):
                    draft.add(
                        _from_aggregated(group_name, find_str(version, "version"), resource),
                        find_str(resource, "singularResource"),
                        find_list(resource, "shortNames"),
                        find_list(resource, "verbs"),
                    )
    return draft.catalog(versions, unavailable)


def group_versions(api: JsonObject, apis: JsonObject) -> tuple[str, ...]:
    """Return all group versions in the plain documents of ``/api`` and ``/apis``, each group's preferred version first."""
    result: list[str] = [version for version in find_list(api, "versions") if isinstance(version, str)]
    for group in find_list(apis, "groups"):
        result.append(find_str(group, "preferredVersion", "groupVersion"))
        result += [find_str(version, "groupVersion") for version in find_list(group, "versions")]
    return tuple(dict.fromkeys(version for version in result if version))


def group_version_path(api_version: str) -> str:
    """Return the path of the APIResourceList of a group version: ``/api/v1``, ``/apis/apps/v1``."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def plain_catalog(lists: dict[str, JsonObject | None]) -> Catalog:
    """Return the catalog from discovery documents in the plain form (not the aggregated one). Raises ShapeError.

    ``lists`` has the APIResourceList of each group version, or None if its API server does not answer. Preferred versions are
    first.
    """
    draft = _Draft()
    for api_version, document in lists.items():
        group, version = split_api_version(api_version)
        for resource in [] if document is None else find_list(document, "resources"):
            if "/" in find_str(resource, "name"):
                continue
            found = ResourceType(
                group=find_str(resource, "group") or group,
                version=find_str(resource, "version") or version,
                kind=find_str(resource, "kind"),
                plural=find_str(resource, "name"),
                namespaced=_flag(find(resource, "namespaced")),
            )
            verbs = find_list(resource, "verbs")
            draft.add(found, find_str(resource, "singularName"), find_list(resource, "shortNames"), verbs)
    return draft.catalog(lists, (api_version for api_version, document in lists.items() if document is None))


def _from_aggregated(group: str, version: str, resource: JsonValue) -> ResourceType:
    kind = find(resource, "responseKind")
    return ResourceType(
        group=find_str(kind, "group") or group,
        version=find_str(kind, "version") or version,
        kind=find_str(kind, "kind"),
        plural=find_str(resource, "resource"),
        namespaced=find_str(resource, "scope") == "Namespaced",
    )


def _join(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _flag(value: JsonValue) -> bool:
    if not isinstance(value, bool | None):
        raise ShapeError("namespaced: expected a boolean")
    return bool(value)
