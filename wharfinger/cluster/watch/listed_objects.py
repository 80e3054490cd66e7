"""A reader of those objects of one kind that match a selector. It parses one object at a time, because all parsed objects
together would need too much memory.

A trio checkpoint follows each object, so that other tasks can run.
"""

from collections.abc import Callable

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import GoneError
from wharfinger.cluster.api.watch_stream import MAX_LINE_BYTES
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, decode_json
from wharfinger.kube.resource import ObjectKey, ResourceType


async def visit_all(
    client: ClusterClient,
    resource: ResourceType,
    label_selector: str,
    look: Callable[[ObjectKey, JsonObject], None],
    *,
    field_selector: str = "",
) -> set[ObjectKey]:
    """Call ``look``, which must not block, with every object; return the keys of all existing objects. If an object cannot be
    parsed, its key is returned, but the object is not passed to ``look``. If the server forgets the list before all pages are
    read, the list is requested once more in one piece, so some objects are passed twice. Raises ClusterError.
    """
    try:
        return await _look(client, resource, (label_selector, field_selector), look, paged=True)
    except GoneError:
        return await _look(client, resource, (label_selector, field_selector), look, paged=False)


async def _look(
    client: ClusterClient,
    resource: ResourceType,
    selectors: tuple[str, str],
    look: Callable[[ObjectKey, JsonObject], None],
    *,
    paged: bool,
) -> set[ObjectKey]:
    seen: set[ObjectKey] = set()
    labels, fields = selectors
    async with client.raw_list(resource, label_selector=labels, field_selector=fields, paged=paged) as pages:
        async for page in pages:
            for raw in page.items:
                seen.add(raw.key)
                if (live := _parsed(raw.text, raw.key)) is not None:
                    look(raw.key, live)
                await trio.lowlevel.checkpoint()
    return seen


def _parsed(text: bytes, key: ObjectKey) -> JsonObject | None:
    """Return the object; None if it cannot be parsed, for example because it is nested too deep."""
    try:
        return as_object(decode_json(text, max_bytes=MAX_LINE_BYTES, what=str(key)), str(key))
    except FormatError:
        return None
