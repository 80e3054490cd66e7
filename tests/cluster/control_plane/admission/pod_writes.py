"""Pods about to be written, for tests of plugins."""

from tests.cluster.control_plane.samples import NOW, builtin
from wharfinger.cluster.control_plane.admission.plugin import Admission, Operation
from wharfinger.cluster.control_plane.authentication import User
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.catalog import Catalog
from wharfinger.cluster.control_plane.memory_storage import MemoryStorage
from wharfinger.cluster.control_plane.storage import Collection, Key
from wharfinger.formats.json_value import JsonObject, find_str


def backend(*objects: tuple[str, str, JsonObject]) -> Backend:
    """One that holds objects: group, plural, object."""
    made = Backend(MemoryStorage(), Catalog(), lambda: NOW)
    for group, plural, obj in objects:
        metadata = (find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name"))
        made.put(Key(Collection(group, plural), *metadata), {"apiVersion": "v1", "kind": "X", **obj})
    return made


def write(
    view: Backend, obj: JsonObject, old: JsonObject | None = None, *, plural: str = "pods", below: str = ""
) -> Admission:
    """A create, or an update of ``old``."""
    operation = Operation.CREATE if old is None else Operation.UPDATE
    kind = builtin("", "v1", plural).kind
    return Admission(view, User("u", ()), kind, operation, below, "n", "a", obj, old)
