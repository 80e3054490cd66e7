"""What a controller intends: a closed union of writes, and the one place that carries them out.

Reconciling is a pure function of what was seen; it returns a :class:`Plan`. Carrying a plan out twice does no harm: a
creation of what is there, a deletion of what is gone and a patch of what is gone are done already; a namespace that is being
deleted takes nothing more. Everything else that fails is the caller's to retry.
"""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeAlias, assert_never

from wharfinger.cluster.client import ClusterClient, Propagation
from wharfinger.cluster.errors import ApiError, ConflictError, NotFoundError
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject, find_object, find_str
from wharfinger.formats.merge_patch import diff_merge_patch

_TERMINATING: Final = "is being terminated"
"""What the refusal of new content in a namespace that is being deleted says."""


@dataclass(frozen=True, slots=True)
class Create:
    """POST an object, unless it exists."""

    obj: JsonObject


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch of an object or one of its subresources; with ``metadata.resourceVersion`` it is a compare-and-set."""

    key: ObjectKey
    patch: JsonObject
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE the object of this uid."""

    key: ObjectKey
    uid: str
    propagation: Propagation = Propagation.BACKGROUND


Write: TypeAlias = Create | Patch | Delete


@dataclass(frozen=True, slots=True)
class Plan:
    """Writes, in order, and after how many seconds to look again even if nothing changes (None: not at all)."""

    writes: tuple[Write, ...] = ()
    again_s: float | None = None


NOTHING = Plan()


async def perform(client: ClusterClient, write: Write) -> None:
    """Carry out one write. Raises ClusterError."""
    try:
        match write:
            case Create():
                await _create(client, write.obj)
            case Patch():
                await client.merge_patch(write.key, write.patch, subresource=write.subresource)
            case Delete():
                await client.delete(write.key, uid=write.uid, propagation=write.propagation)
            case _:
                assert_never(write)
    except NotFoundError:
        if isinstance(write, Create):
            raise


async def _create(client: ClusterClient, obj: JsonObject) -> None:
    try:
        await client.create(obj)
    except ConflictError as error:
        if error.reason != "AlreadyExists":
            raise
    except ApiError as error:
        if error.code != HTTPStatus.FORBIDDEN or _TERMINATING not in error.message:
            raise


def status_write(
    key: ObjectKey, obj: JsonObject, status: JsonObject, annotations: JsonObject | None = None
) -> list[Write]:
    """The write that gives an object this status (and these annotations beside its own); none where it has it."""
    wanted: JsonObject = {"status": status}
    seen: JsonObject = {"status": find_object(obj, "status")}
    if annotations:
        have = find_object(obj, "metadata", "annotations")
        wanted["metadata"] = {"annotations": have | annotations}
        seen["metadata"] = {"annotations": have}
    patch = diff_merge_patch(seen, wanted)
    return [Patch(key, patch, "status")] if patch else []


def compare_and_set(obj: JsonObject, metadata: JsonObject) -> JsonObject:
    """A patch of metadata that fails where the object changed since it was seen."""
    return {"metadata": metadata | {"resourceVersion": find_str(obj, "metadata", "resourceVersion")}}
