"""Changes of the shard that owns an Application. Each change is a compare-and-set: if two daemons try it, only one succeeds."""

import logging

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ConflictError, NotFoundError
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.shards.ownership import SHARD_FIELD

log = logging.getLogger(__name__)


async def set_owner(client: ClusterClient, key: ObjectKey, obj: JsonObject, shard: str) -> bool:
    """Write ``shard`` as the owner of an Application; ``obj`` is the state of the Application for which this was decided. Return
    False, without a write, if the Application has changed since then.

    Raises ClusterError. In that case the owner may have been written nevertheless; the watch then reports the change.
    """
    version = find_str(obj, "metadata", "resourceVersion")
    patch: JsonObject = {"metadata": {"resourceVersion": version}, "status": {SHARD_FIELD: shard or None}}
    try:
        await client.merge_patch(key, patch, subresource="status")
    except (NotFoundError, ConflictError) as error:
        log.debug(
            "the shard of %s was not written, because the object has changed or was deleted meanwhile: %s", key, error
        )
        return False
    return True
