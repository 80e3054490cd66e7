"""Wharfinger's own CRDs. The main daemon, which is the one without ``--shard``, applies them when it starts, and waits until
the API server has established them. A daemon with ``--shard`` only checks that they exist and are not too old.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from importlib.resources import files
from typing import Final

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.crds.definitions import CrdError, await_established
from wharfinger.cluster.releases.options import utc_now
from wharfinger.cluster.watch.object_waits import Laggards
from wharfinger.cluster.watch.readiness import InProgress
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_object, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of

log = logging.getLogger(__name__)

CRD: Final = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


OF_POOLS: Final = frozenset({"WorkerPool", "WorkerClaim"})
"""The kinds whose CRDs are applied only with `--worker-pools`."""


def own_crds() -> tuple[JsonObject, ...]:
    """Return the manifests of all CRDs of this version, including those of the kinds OF_POOLS, sorted by file name."""
    folder = files("wharfinger.runtime") / "crds"
    entries = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda entry: entry.name
    )
    return tuple(as_object(read_yaml(entry.read_bytes(), what=entry.name), entry.name) for entry in entries)


async def ensure_crds(
    client: ClusterClient, field_manager: str, now: Callable[[], datetime] = utc_now, *, worker_pools: bool = False
) -> None:
    """Apply the CRDs, and wait until they are established; CRDs of the kinds OF_POOLS are included only with
    ``worker_pools``. Raises ClusterError.
    """
    crds = [crd for crd in own_crds() if worker_pools or find_str(crd, "spec", "names", "kind") not in OF_POOLS]
    for crd in crds:
        await client.apply(crd, field_manager=field_manager, force=True)
    try:
        await await_established(
            client, [ObjectKey(CRD, "", name_of(crd)) for crd in crds], now=now, progress=_tell_overdue
        )
    except CrdError as error:
        raise ClusterError(f"{error}; check whether another CRD uses the same names") from error


async def check_crds(client: ClusterClient) -> None:
    """Check that the CRDs of this version exist in the cluster, and have all status fields that this version writes. The CRDs
    of pools (OF_POOLS) are not checked. Raises ClusterError.
    """
    for crd in own_crds():
        if find_str(crd, "spec", "names", "kind") in OF_POOLS:
            continue
        found = await client.get(ObjectKey(CRD, "", name_of(crd)))
        missing = _status_fields(crd) - _status_fields(found)
        if missing:
            raise ClusterError(
                f"{name_of(crd)} is older than this daemon: its schema lacks the status fields "
                f"{', '.join(sorted(missing))}; upgrade the main daemon, which applies this CRD"
            )


def _status_fields(crd: JsonObject) -> set[str]:
    (version, *_) = find_list(crd, "spec", "versions")
    return set(find_object(version, "schema", "openAPIV3Schema", "properties", "status", "properties"))


def _tell_overdue(laggards: Laggards) -> None:
    for key, state in laggards.items():
        if isinstance(state, InProgress) and state.overdue:
            log.warning("%s: %s", key, state.message)
