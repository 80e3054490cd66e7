"""Release records that are too large for one Secret. Pure; every size is bounded.

Such a record is split into a head, which Helm can read, and chunks, which are Secrets beside it with the parts that were cut
out. These parts are cut, in this order, until the head fits:

1. the notes, and the chart except for its metadata; Helm can still do everything with the record;
2. the manifest;
3. the hooks;
4. the values.

The notes of the head name the parts that were cut. A cut manifest is replaced by one object with an invalid name. No server
accepts it, and the name states that Helm cannot use the record. (With an empty manifest, ``helm rollback`` would delete all
objects.) The same object is also a pre-delete hook, so that ``helm uninstall`` fails. Otherwise it would delete the record and
leave the objects in the cluster.

The index of the chunks (their digests, in order) is an annotation in the chart's metadata, inside the record, because Helm keeps
the chart's metadata when it rewrites a record, but drops annotations of the Secret. The index is valid only for the revision
that it names, because a rollback by Helm copies the chart, and with it the index, into a new revision.

Chunks are named by their content and never change; for a new status, only the head is written. The chunks are written before
the head, and the head becomes their owner afterwards. So a head exists only with all of its chunks. A crash can leave chunks
that no head names, or that their head does not own yet (:mod:`~wharfinger.cluster.records.chunk_store` corrects both).
"""

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from wharfinger.cluster.records.release import (
    MAX_DOCUMENT_BYTES,
    MAX_RECORD_BYTES,
    Release,
    ReleaseRecordError,
    check_record,
    gunzip,
    gzip,
    holder_annotations,
    pack_document,
    secret_with,
)
from wharfinger.formats.json.value import (
    JsonError,
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    decode_json,
    encode_json,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
)
from wharfinger.kube.resource import name_of

CHUNK_TYPE: Final = "wharfinger.dev/release-chunk"
CHUNK_OWNER: Final = "wharfinger"
"""The value of the label ``owner`` on a chunk. Helm lists only Secrets on which the value of this label is ``helm``."""
INDEX_ANNOTATION: Final = "wharfinger.dev/release-chunks"
"""The annotation in ``chart.metadata.annotations`` of a head. Its value is the index of the chunks."""
DIGEST_ANNOTATION: Final = "wharfinger.dev/sha256"
CHUNK_BYTES: Final = 900 * 1024
"""The largest number of bytes of data in a chunk. It is below the size limit of a Secret. The data in base64 is also below the
size limit of a request to etcd.
"""
MAX_CHUNKS: Final = MAX_DOCUMENT_BYTES // CHUNK_BYTES + 1
STAND_IN: Final = "Helm_cannot_do_this--only_Wharfinger_has_the_manifest"
"""The name of an object in a head: the object takes the place of the manifest, which is in the chunks."""

_STAND_IN: Final = (
    f"# The manifest of this revision is larger than a record of Helm's can be: it is in Secrets of type {CHUNK_TYPE}.\n"
    f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {STAND_IN}\n"
    "  annotations:\n    helm.sh/resource-policy: keep\n"
)
_STAND_IN_HOOK: Final[JsonObject] = {
    "name": STAND_IN,
    "kind": "ConfigMap",
    "path": "wharfinger/uninstall.yaml",
    "manifest": _STAND_IN,
    "events": ["pre-delete"],
    "delete_policies": ["before-hook-creation"],
}
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """The chunks of one revision: the SHA-256 of each, in hexadecimal and in order."""

    revision: int
    digests: tuple[str, ...]

    def names(self, release: str) -> tuple[str, ...]:
        """Return the names of the Secrets of these chunks, in order."""
        return tuple(
            f"wharfinger.chunk.v1.{release}.v{self.revision}.{number}.{digest[:16]}"
            for number, digest in enumerate(self.digests)
        )


@dataclass(frozen=True, slots=True)
class PackedRelease:
    """A packed record. ``head`` is the Secret that Helm reads. ``cut`` is the document in ``head``, without the parts that were
    moved to other Secrets. ``chunks`` are these other Secrets (usually none).
    """

    head: JsonObject
    cut: JsonObject
    index: ChunkIndex | None = None
    chunks: tuple[JsonObject, ...] = ()

    @property
    def chunk_names(self) -> tuple[str, ...]:
        """The names of the chunks."""
        return tuple(name_of(chunk) for chunk in self.chunks)


def pack_release(release: Release, now: datetime) -> PackedRelease:
    """Return a record as Secrets. A record that is too large for one Secret is split.

    Raises ReleaseRecordError if the record is larger than :data:`MAX_DOCUMENT_BYTES`, or if the parts that must stay in the
    first Secret are too large for it.
    """
    text = pack_document(release.document)
    if len(text) <= MAX_RECORD_BYTES:
        return PackedRelease(secret_with(release, text, now), release.document)
    size = len(encode_json(release.document))
    if size > MAX_DOCUMENT_BYTES:
        raise ReleaseRecordError(
            f"release {release.namespace}/{release.name}: its record is {size} bytes, and at most {MAX_DOCUMENT_BYTES} are "
            "kept; split the package, or take large files out of its values and templates"
        )
    for parts in _cuts(release.document):
        pieces = _pieces(gzip(encode_json(parts)))
        index = ChunkIndex(release.revision, tuple(hashlib.sha256(piece).hexdigest() for piece in pieces))
        head = _head(release.document, parts, index)
        text = pack_document(head)
        if len(text) <= MAX_RECORD_BYTES:
            chunks = tuple(
                _chunk(release, name, piece) for name, piece in zip(index.names(release.name), pieces, strict=True)
            )
            return PackedRelease(secret_with(release, text, now), head, index, chunks)
    raise ReleaseRecordError(
        f"release {release.namespace}/{release.name}: its record without manifest, hooks and values is {len(text)} bytes "
        f"packed, and a Secret holds {MAX_RECORD_BYTES}; make its Chart.yaml smaller"
    )


def repack_head(cut: JsonObject, release: Release, now: datetime) -> JsonObject:
    """Return the first Secret of a split record with a new status. ``cut`` is the document in this Secret, of which only
    ``info`` changes. The other Secrets stay as they are.

    Raises ReleaseRecordError if the Secret is too large.
    """
    text = pack_document(with_info_of(cut, release))
    if len(text) > MAX_RECORD_BYTES:
        raise ReleaseRecordError(
            f"release {release.namespace}/{release.name}: the record of revision {release.revision} with its new status is "
            f"{len(text)} bytes packed, but a Secret holds at most {MAX_RECORD_BYTES}"
        )
    return secret_with(release, text, now)


def with_info_of(cut: JsonObject, release: Release) -> JsonObject:
    """Return the head ``cut`` with the info of the release. The notes of ``cut`` are kept, because they name the parts that
    were cut.
    """
    info = {key: value for key, value in find_object(release.document, "info").items() if key != "notes"}
    old = find_object(cut, "info")
    return {**cut, "info": {**info, **({"notes": old["notes"]} if "notes" in old else {})}}


def index_of(head: Release) -> ChunkIndex | None:
    """Return the chunks that a record names; None if it names none, or only those of another revision.

    Raises ReleaseRecordError if the index cannot be read.
    """
    text = find(head.chart, "annotations", INDEX_ANNOTATION)
    if text is None:
        return None
    what = f"release {head.namespace}/{head.name}: the index of chunks in revision {head.revision}"
    try:
        if not isinstance(text, str):
            raise ShapeError("not text")
        said = decode_json(text, max_bytes=MAX_RECORD_BYTES, what="it")
        digests = find_list(said, "sha256")
        if not 0 < len(digests) <= MAX_CHUNKS:
            raise ShapeError(f"it names {len(digests)} chunks, but 1 to {MAX_CHUNKS} are allowed")
        index = ChunkIndex(
            find_int(said, "revision"),
            tuple(one for one in digests if isinstance(one, str) and _DIGEST.fullmatch(one)),
        )
    except (ShapeError, JsonError) as error:
        raise ReleaseRecordError(f"{what} cannot be read: {error}") from error
    if len(index.digests) != len(digests):
        raise ReleaseRecordError(f"{what}: expected SHA-256 digests of chunks, found other text")
    return index if index.revision == head.revision else None


def assemble(head: Release, index: ChunkIndex, chunks: Sequence[JsonObject | None]) -> Release:
    """Return the complete record.

    Raises ReleaseRecordError, which names the Secret, if a chunk is missing (None) or damaged.
    """
    what = f"release {head.namespace}/{head.name}: revision {head.revision}"
    pieces: list[bytes] = []
    for name, digest, chunk in zip(index.names(head.name), index.digests, chunks, strict=True):
        piece = _piece(chunk)
        if hashlib.sha256(piece).hexdigest() != digest:
            state = "gone" if chunk is None else "damaged"
            raise ReleaseRecordError(
                f"{what} is kept in chunks, and the Secret {head.namespace}/{name} is {state}, so the objects of the revision "
                f"are not known; restore that Secret, or delete the Secret {head.secret_name} to discard the revision"
            )
        pieces.append(piece)
    try:
        data = gunzip(b"".join(pieces), what)
        parts = as_object(decode_json(data, max_bytes=MAX_DOCUMENT_BYTES, what=what), what)
        release = replace(head, document=_whole(head.document, parts))
        check_record(release)
    except (zlib.error, ShapeError, JsonError) as error:
        raise ReleaseRecordError(f"{what} is kept in chunks that cannot be read: {error}") from error
    return release


def without_stand_in(release: Release) -> Release:
    """Return a revision without :data:`STAND_IN`, the object that replaces a cut manifest.

    A rollback by Helm may have copied this object into the revision. Such a rollback fails, so the revision has applied
    nothing.
    """
    if STAND_IN not in find_str(release.document, "manifest"):
        return release
    return replace(release, document={**release.document, "manifest": "", "hooks": _own_hooks(release.document)})


# -- the parts that are cut out and put in again


def _cuts(document: JsonObject) -> Iterator[JsonObject]:
    """Yield sets of parts that may be cut out of a record, so that it gets smaller. Each set contains the set before it."""
    parts: JsonObject = {"notes": find(document, "info", "notes"), "chart": document.get("chart")}
    yield dict(parts)
    for key in ("manifest", "hooks", "config"):
        parts[key] = document.get(key)
        yield dict(parts)


def _head(document: JsonObject, parts: JsonObject, index: ChunkIndex) -> JsonObject:
    metadata = find_object(document, "chart", "metadata")
    said = encode_json({"revision": index.revision, "sha256": [*index.digests]}).decode()
    annotations: JsonObject = {**find_object(metadata, "annotations"), INDEX_ANNOTATION: said}
    chart: JsonObject = {
        "metadata": {**metadata, "annotations": annotations},
        "lock": None,
        "templates": [],
        "values": {},
        "schema": None,
        "files": [],
    }
    info: JsonObject = {**find_object(document, "info"), "notes": _notes(parts)}
    head: JsonObject = {**document, "info": info, "chart": chart}
    if "manifest" in parts:
        hooks = [] if "hooks" in parts else find_list(document, "hooks")
        head |= {"manifest": f"---\n{_STAND_IN}", "hooks": [*hooks, dict(_STAND_IN_HOOK)]}
    return {**head, "config": {}} if "config" in parts else head


def _whole(head: JsonObject, parts: JsonObject) -> JsonObject:
    info = {key: value for key, value in find_object(head, "info").items() if key != "notes"}
    if find(parts, "notes") is not None:
        info["notes"] = find_str(parts, "notes")
    cut = {key: value for key, value in parts.items() if key in {"chart", "manifest", "hooks", "config"}}
    return {**head, "info": info, "hooks": _own_hooks(head), **cut}


def _own_hooks(head: JsonObject) -> list[JsonValue]:
    return [hook for hook in find_list(head, "hooks") if find(hook, "name") != STAND_IN]


def _notes(parts: JsonObject) -> str:
    names = {"manifest": "the manifest", "hooks": "the hooks", "config": "the values", "chart": "the original notes"}
    gone = [name for key, name in names.items() if key in parts]
    listed = " and ".join(filter(None, [", ".join(gone[:-1]), gone[-1]]))
    can = (
        "Helm can list the release, show its status and history, and upgrade it, but an upgrade with Helm does not delete "
        "objects that the new version lacks. Helm cannot uninstall the release or roll it back to this revision: use "
        "Wharfinger for that."
        if "manifest" in parts
        else "Helm can do everything with it."
    )
    return (
        f"This release record is larger than a Secret can be. Wharfinger keeps {listed} in Secrets of type {CHUNK_TYPE} "
        f"beside it. {can}\n"
    )


def _pieces(data: bytes) -> list[bytes]:
    return [data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES)]


def _chunk(release: Release, name: str, piece: bytes) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": CHUNK_TYPE,
        "immutable": True,
        "metadata": {
            "name": name,
            "namespace": release.namespace,
            "labels": {"owner": CHUNK_OWNER, "name": release.name, "version": str(release.revision)},
            "annotations": {
                **holder_annotations(release.written_by),
                DIGEST_ANNOTATION: hashlib.sha256(piece).hexdigest(),
            },
        },
        "data": {"chunk": base64.b64encode(piece).decode()},
    }


def _piece(chunk: JsonObject | None) -> bytes:
    """Return the content of a chunk; b"" if it cannot be read, which matches no digest."""
    try:
        data = find_str(chunk, "data", "chunk")
        return b"" if len(data) > 2 * MAX_RECORD_BYTES else base64.b64decode(data, validate=True)
    except (ShapeError, binascii.Error, ValueError):
        return b""
