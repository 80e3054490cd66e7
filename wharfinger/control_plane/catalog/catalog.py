"""The kinds that are served now, built-in and custom ones, with the lookups that requests and discovery need."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS, GROUP_ORDER
from wharfinger.control_plane.catalog.custom_kinds import version_rank
from wharfinger.control_plane.kinds.kind import Kind, KindVersion
from wharfinger.control_plane.storage.interface import Collection


@dataclass(frozen=True, slots=True)
class Served:
    """A kind at one of its versions."""

    kind: Kind
    version: KindVersion
    api_version: str = field(init=False, compare=False)
    """The group version: ``apps/v1``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "api_version", self.kind.api_version(self.version.name))


class Catalog:
    """The served kinds by resource name.

    ``generation`` grows with every change, so that documents about the catalog (for discovery) are made again.
    """

    def __init__(self, builtin: Iterable[Kind] = BUILTIN_KINDS) -> None:
        self._builtin = {Collection(kind.group, kind.plural): kind for kind in builtin}
        self._custom: dict[Collection, Kind] = {}
        self._found: dict[tuple[str, str, str], Served] = {}
        """Cached results of ``find``; only served resources are cached."""
        self._named: dict[tuple[str, str], Kind] | None = None
        """The served kinds by group and name; None if the map must be built again."""
        self.generation = 0

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """Return the kind of a resource at a version, or None if it is not served."""
        known = self._found.get((group, version, plural))
        if known is not None:
            return known
        collection = Collection(group, plural)
        kind = self._builtin.get(collection) or self._custom.get(collection)
        found = kind.version(version) if kind is not None else None
        if kind is None or found is None:
            return None
        served = self._found[group, version, plural] = Served(kind, found)
        return served

    def find_kind(self, group: str, kind: str) -> Kind | None:
        """Return the kind with that name, or None."""
        if self._named is None:
            self._named = {(item.group, item.kind): item for item in reversed(self.kinds())}
        return self._named.get((group, kind))

    def kinds(self) -> tuple[Kind, ...]:
        """Return all served kinds, built-in ones first."""
        return (*self._builtin.values(), *(kind for _, kind in sorted(self._custom.items()) if kind.versions))

    def groups(self) -> dict[str, tuple[str, ...]]:
        """Return the groups in discovery's order, each with its versions, the preferred version first."""
        versions: dict[str, set[str]] = {}
        for kind in self.kinds():
            versions.setdefault(kind.group, set()).update(version.name for version in kind.versions)
        known = [group for group in GROUP_ORDER if group in versions]
        names = [*known, *sorted(set(versions) - set(known))]
        return {name: tuple(sorted(versions[name], key=version_rank, reverse=True)) for name in names}

    def resources(self, group: str, version: str) -> tuple[Served, ...]:
        """Return the resources of a group version, sorted by plural name."""
        served = (self.find(group, version, kind.plural) for kind in self.kinds() if kind.group == group)
        return tuple(sorted((item for item in served if item is not None), key=lambda item: item.kind.plural))

    def set_custom(self, kind: Kind) -> None:
        """Serve a custom kind, in place of its earlier state if there is one; a built-in kind is never replaced."""
        if kind.collection not in self._builtin:
            self._custom[kind.collection] = kind
            self._found.clear()
            self._named = None
            self.generation += 1

    def remove_custom(self, group: str, plural: str) -> None:
        """Stop serving a custom kind."""
        if self._custom.pop(Collection(group, plural), None) is not None:
            self._found.clear()
            self._named = None
            self.generation += 1
