"""Wharfinger's own CRDs: applied at every start, and awaited until the API server has established them."""

from importlib.resources import files
from typing import Final

from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.errors import ClusterError
from wharfinger.cluster.object_waits import wait_ready
from wharfinger.cluster.resource import ObjectKey, ResourceType, name_of
from wharfinger.formats.json_value import JsonObject, as_object
from wharfinger.formats.yaml_reader import read_yaml

CRD: Final = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


def own_crds() -> tuple[JsonObject, ...]:
    """The manifests that ship with this version, sorted by file name."""
    folder = files("wharfinger.runtime") / "crds"
    entries = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda entry: entry.name
    )
    return tuple(as_object(read_yaml(entry.read_bytes(), what=entry.name), entry.name) for entry in entries)


async def ensure_crds(client: ClusterClient, field_manager: str) -> None:
    """Apply them and wait until they are established. Raises ClusterError."""
    crds = own_crds()
    for crd in crds:
        await client.apply(crd, field_manager=field_manager, force=True)
    report = await wait_ready(client, [ObjectKey(CRD, "", name_of(crd)) for crd in crds])
    for key, state in report.failed.items():
        raise ClusterError(f"{key}: {state.message}; another CRD may have its names")
