"""Writes of Pods, for tests of admission plugins."""

from tests.control_plane.support.samples import NOW, builtin
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import JsonObject, find_str


def backend(*objects: tuple[str, str, JsonObject]) -> Backend:
    """Return a backend with these objects, each given as group, plural and object."""
    made = Backend(MemoryStorage(), Catalog(), lambda: NOW)
    for group, plural, obj in objects:
        metadata = (find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name"))
        made.put(Key(Collection(group, plural), *metadata), {"apiVersion": "v1", "kind": "X", **obj})
    return made


def write(
    view: Backend, obj: JsonObject, old: JsonObject | None = None, *, plural: str = "pods", below: str = ""
) -> Admission:
    """Return the admission request of a create, or of an update if there is an ``old`` object."""
    operation = Operation.CREATE if old is None else Operation.UPDATE
    kind = builtin("", "v1", plural).kind
    return Admission(view, User("u", ()), kind, operation, below, "n", "a", obj, old)
