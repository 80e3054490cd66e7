"""The PackageIndex objects: one for each followed package of a repository, with the versions that the last scan found.

An object is written only if its index has changed. All objects are read once when the daemon starts, so that a restarted
daemon can choose versions before its first scan. An index that cannot be written is kept in memory, and written after its
next change.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, NotFoundError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, checksum, find_object, find_str
from wharfinger.kube.names import is_subdomain
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.resources import GROUP, PACKAGE_INDEX, PACKAGE_REPOSITORY, VERSION
from wharfinger.runtime.versions.package_index import PackageIndex, index_object, read_index

log = logging.getLogger(__name__)

MANAGER: Final = "wharfinger-repositories"


@dataclass(slots=True)
class IndexObjects:
    """The indexes in memory, by repository and package, and the objects that store them."""

    client: ClusterClient
    indexes: dict[tuple[str, str], PackageIndex] = field(default_factory=dict)

    async def read(self) -> None:
        """Read all PackageIndex objects in the cluster. Raises ClusterError."""
        for obj in (await self.client.list(PACKAGE_INDEX)).items:
            self.adopt(obj)

    def adopt(self, obj: JsonObject | None) -> tuple[PackageIndex, ...]:
        """Keep the index that an object stores, and return the index if it has changed. The index stays known after the
        object is deleted.
        """
        if obj is None:
            return ()
        try:
            repository, package = find_str(obj, "spec", "repository"), find_str(obj, "spec", "package")
            index = read_index(repository, package, find_object(obj, "status"))
        except FormatError as error:
            log.warning("PackageIndex %s is ignored: %s", find_str(obj, "metadata", "name"), error)
            return ()
        before = self.indexes.get((repository, package))
        self.indexes[(repository, package)] = index
        return () if index == before else (index,)

    async def put(self, index: PackageIndex, owner_uid: str) -> None:
        """Keep an index in memory, and write its PackageIndex object. The repository of the index owns this object."""
        self.indexes[(index.repository, index.package)] = index
        obj: JsonObject = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": PACKAGE_INDEX.kind,
            "metadata": {
                "name": object_name(index.repository, index.package),
                "ownerReferences": [
                    {
                        "apiVersion": f"{GROUP}/{VERSION}",
                        "kind": PACKAGE_REPOSITORY.kind,
                        "name": index.repository,
                        "uid": owner_uid,
                    }
                ],
            },
            "spec": {"repository": index.repository, "package": index.package},
            "status": index_object(index),
        }
        try:
            await self.client.apply(obj, field_manager=MANAGER, force=True)
        except ClusterError as error:
            log.warning(
                "the index of %s in repository %s cannot be written: %s", index.package, index.repository, error
            )

    async def drop(self, repository: str, keep: Collection[str] = ()) -> None:
        """Forget all indexes of a repository, except those of the packages in ``keep``, and delete their objects. Raises
        ClusterError.
        """
        for each in [key for key in self.indexes if key[0] == repository and key[1] not in keep]:
            del self.indexes[each]
            try:
                await self.client.delete(ObjectKey(PACKAGE_INDEX, "", object_name(*each)))
            except NotFoundError:
                log.debug("the index of %s in repository %s was already deleted", each[1], repository)


def object_name(repository: str, package: str) -> str:
    """Return the name of the PackageIndex of a package: ``repository.package`` or, if the API server would refuse this name, a
    name with a checksum.
    """
    name = f"{repository}.{package}"
    return name if is_subdomain(name) else f"index-{checksum([repository, package])[-40:].lower()}"
