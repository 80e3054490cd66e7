"""A Helm release record in Helm's own form: a Secret per revision, so that ``helm list``, ``history``, ``get``, ``status``,
``rollback`` and ``uninstall`` work for the releases of the daemon, too.

Facts of the format (Helm 3 and 4): the Secret is ``sh.helm.release.v1.<name>.v<revision>`` of type ``helm.sh/release.v1`` with
the labels ``owner=helm``, ``name``, ``status``, ``version`` and a time stamp; its one datum ``release`` is base64 of gzip of
JSON (and base64 once more, as all Secret data). In very old records of Helm, the JSON is not compressed.

A record that Helm wrote is kept whole: a :class:`Release` is a view of the record's document, and a change of the status changes
nothing else in the document. So the record keeps the chart's templates, and a user's ``helm rollback`` still works. A record that
does not fit into a Secret is split (:mod:`~wharfinger.cluster.records.release_chunks`). Pure; every size is bounded.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from wharfinger.cluster.api.errors import ReleaseError
from wharfinger.cluster.lease.fencing import Holder
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
from wharfinger.kube.names import is_subdomain
from wharfinger.kube.times import format_exact_time, parse_time

SECRET_TYPE: Final = "helm.sh/release.v1"  # noqa: S105 - a type, not a password
MAX_RECORD_BYTES: Final = 1024 * 1024
"""The limit of Kubernetes for the size of a Secret."""
MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024
"""The limit on the size of an unpacked record in bytes. Records are compressed, so it is much higher than MAX_RECORD_BYTES."""
MAX_NAME: Final = 53
"""Helm's limit for release names."""
HOLDER_ANNOTATION: Final = "wharfinger.dev/holder"
"""The annotation that names the writer of the revision in a Secret. Helm ignores it; a record that a user's helm wrote or
overwrote does not have it.
"""
FENCE_ANNOTATION: Final = "wharfinger.dev/fence"
"""The annotation with the fence of the writer (:class:`~wharfinger.cluster.lease.fencing.Holder`)."""
LEASE_ANNOTATION: Final = "wharfinger.dev/lease"
"""The annotation that names the writer's Lease: ``namespace/name/uid``."""
BASE_FILE: Final = "wharfinger.dev/base"
"""The name of an additional file among the chart's files in a record. It contains the *base*: the source from which the
manifest was made. Helm keeps this file when it rewrites a record or rolls back to a record, and never reads it.
"""
STAMP_LABEL: Final = "wharfinger.dev/applied"
"""The label with the stamp of a revision: the number of the revision, a dot, and the caller's text. If a
user makes a revision with Helm, Helm copies the label into it. The copy is ignored, because its number is that of another
revision.
"""
INPUTS_FILE: Final = "wharfinger.dev/wish"
"""The name of a file that a record contains among the files of the chart. It holds the inputs of the revision."""
COMPRESSION: Final = 6
"""The gzip level. Helm's level 9 takes twice the time (600 KB of manifests: 12.8 ms instead of 6.3), and saves 1% of the size."""

_FENCE: Final = re.compile(r"[0-9]{1,10}")
_OWN_LABELS: Final = frozenset({"name", "owner", "status", "version", "modifiedAt", "createdAt"})


class ReleaseStatus(StrEnum):
    """The status of a revision: `info.status` of its record."""

    UNKNOWN = "unknown"
    DEPLOYED = "deployed"
    UNINSTALLED = "uninstalled"
    SUPERSEDED = "superseded"
    FAILED = "failed"
    UNINSTALLING = "uninstalling"
    PENDING_INSTALL = "pending-install"
    PENDING_UPGRADE = "pending-upgrade"
    PENDING_ROLLBACK = "pending-rollback"

    @property
    def pending(self) -> bool:
        """Return whether the operation on this revision is under way, or was interrupted."""
        return self in {self.PENDING_INSTALL, self.PENDING_UPGRADE, self.PENDING_ROLLBACK, self.UNINSTALLING}


class ReleaseRecordError(ReleaseError):
    """A record that cannot be read, or cannot be written because it is too large."""


@dataclass(frozen=True, slots=True)
class Release:
    """One revision. ``document`` is Helm's JSON, and is never changed in place. ``labels`` are the labels of the Secret that
    Helm does not set itself.

    ``holder``, ``fence`` and ``lease`` identify the writer of the revision (:class:`~wharfinger.cluster.lease.fencing.Holder`).
    If ``whole`` is False, only the summary of the revision was read: access to its manifest, hooks, values or files raises
    ReleaseRecordError.
    """

    document: JsonObject = field(repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)
    holder: str = ""
    fence: int = 0
    lease: str = ""
    whole: bool = True

    @property
    def name(self) -> str:
        """The name of the release."""
        return find_str(self.document, "name")

    @property
    def namespace(self) -> str:
        """The namespace of the release."""
        return find_str(self.document, "namespace")

    @property
    def revision(self) -> int:
        """The number of the revision: 1, 2, 3, …"""
        return find_int(self.document, "version")

    @property
    def status(self) -> ReleaseStatus:
        """Return the status; UNKNOWN for a status that this module does not know."""
        text = find_str(self.document, "info", "status")
        return ReleaseStatus(text) if text in set(ReleaseStatus) else ReleaseStatus.UNKNOWN

    @property
    def description(self) -> str:
        """Return the description of the last operation."""
        return find_str(self.document, "info", "description")

    @property
    def chart(self) -> JsonObject:
        """The chart's metadata (``Chart.yaml``)."""
        return find_object(self.document, "chart", "metadata")

    @property
    def values(self) -> JsonObject:
        """The values the user gave (``helm get values``)."""
        self._need_whole()
        return find_object(self.document, "config")

    @property
    def manifest(self) -> str:
        """The applied objects as YAML (``helm get manifest``)."""
        self._need_whole()
        return find_str(self.document, "manifest")

    @property
    def hooks(self) -> list[JsonObject]:
        """Helm's hook entries: name, kind, path, manifest, events, weight, delete_policies."""
        self._need_whole()
        return [as_object(hook, "hook") for hook in find_list(self.document, "hooks")]

    @property
    def base(self) -> bytes:
        """Return the source from which the manifest was made, in the form that the request gave (:attr:`ReleaseRequest.base`);
        b"" if the request gave no source.
        """
        return self._file(BASE_FILE)

    @property
    def inputs(self) -> bytes:
        """Return the inputs that the revision was made from, as the request gave them (:attr:`ReleaseRequest.inputs`); b"" if
        the request gave none.
        """
        return self._file(INPUTS_FILE)

    def with_inputs(self, inputs: bytes) -> "Release":
        """Return the same record with other inputs."""
        self._need_whole()
        found = find(self.document, "chart", "files")
        files = [each for each in (found if isinstance(found, list) else []) if find(each, "name") != INPUTS_FILE]
        chart: JsonObject = {**find_object(self.document, "chart"), "files": [*files, *_files({INPUTS_FILE: inputs})]}
        return replace(self, document={**self.document, "chart": chart})

    @property
    def first_deployed(self) -> str:
        """Return the time of the first revision, as RFC 3339 text; "" if the record has no time."""
        return find_str(self.document, "info", "first_deployed")

    @property
    def last_deployed(self) -> datetime | None:
        """Return the time of this revision; None if the record has no time."""
        return parse_time(find_str(self.document, "info", "last_deployed"))

    @property
    def stamp(self) -> str:
        """Return the stamp of this revision, a short text in a label; "" if the revision has none.

        Helm copies labels to new revisions, so a stamp that names another revision does not count.
        """
        number, _, text = self.labels.get(STAMP_LABEL, "").partition(".")
        return text if number == str(self.revision) else ""

    @property
    def secret_name(self) -> str:
        """The name of the Secret that keeps this revision."""
        return f"sh.helm.release.v1.{self.name}.v{self.revision}"

    @property
    def written_by(self) -> Holder:
        """Return the writer of this revision; an empty identity stands for a user's helm."""
        return Holder(self.holder, self.fence, self.lease)

    def summary(self) -> "Release":
        """Return the revision with only the parts that a history shows. They are enough for a revision to which no operation
        rolls back."""
        info = {key: value for key, value in find_object(self.document, "info").items() if key != "notes"}
        document: JsonObject = {"name": self.name, "namespace": self.namespace, "version": self.revision, "info": info}
        return replace(self, document={**document, "chart": {"metadata": self.chart}}, whole=False)

    def _file(self, name: str) -> bytes:
        self._need_whole()
        files = find(self.document, "chart", "files")
        for file in files if isinstance(files, list) else ():
            if find(file, "name") == name:
                data = find(file, "data")
                return _decoded(data) if isinstance(data, str) else b""
        return b""

    def _need_whole(self) -> None:
        if not self.whole:
            raise ReleaseRecordError(
                f"release {self.namespace}/{self.name}: only the summary of revision {self.revision} was read; read "
                "the complete revision by its number"
            )

    def with_status(self, status: ReleaseStatus, description: str, **info: str) -> "Release":
        """Return the same record with another status; the keywords ``info`` set further fields of the record's info."""
        about: JsonObject = {
            **find_object(self.document, "info"),
            "status": str(status),
            "description": description,
            **info,
        }
        return replace(self, document={**self.document, "info": about})


def new_release(
    *,
    name: str,
    namespace: str,
    revision: int,
    status: ReleaseStatus,
    description: str,
    chart: JsonObject,
    values: JsonObject,
    manifest: str,
    hooks: list[JsonObject],
    now: datetime,
    first_deployed: str = "",
    chart_values: JsonObject | None = None,
    labels: Mapping[str, str] | None = None,
    holder: Holder | str = "",
    notes: str = "",
    base: bytes = b"",
    inputs: bytes = b"",
) -> Release:
    """Return a new record that this process writes.

    ``chart`` is the metadata of Chart.yaml, ``chart_values`` are the chart's defaults, ``notes`` is the rendered NOTES.txt,
    ``base`` is the source of the manifest if it is to be kept, ``inputs`` are the inputs that the revision was made from.
    """
    files = _files({BASE_FILE: base, INPUTS_FILE: inputs})
    stamp = format_exact_time(now)
    by = Holder(holder) if isinstance(holder, str) else holder
    document: JsonObject = {
        "name": name,
        "info": {
            "first_deployed": first_deployed or stamp,
            "last_deployed": stamp,
            "deleted": "",
            "description": description,
            "status": str(status),
            **({"notes": notes} if notes else {}),
        },
        "chart": {
            "metadata": chart,
            "lock": None,
            "templates": [],
            "values": chart_values or {},
            "schema": None,
            "files": files,
        },
        "config": values,
        "manifest": manifest,
        "hooks": [*hooks],
        "version": revision,
        "namespace": namespace,
    }
    return Release(document, dict(labels or {}), by.identity, by.fence, by.lease)


def _files(contents: Mapping[str, bytes]) -> list[JsonValue]:
    """Return the entries for the files of a chart; empty files are omitted."""
    return [{"name": name, "data": base64.b64encode(data).decode()} for name, data in contents.items() if data]


def check_name(name: str) -> None:
    """Check a release's name. Raises ReleaseError for a name that Helm would refuse."""
    if not is_subdomain(name, MAX_NAME):
        raise ReleaseError(
            f"release {name!r}: a name has at most {MAX_NAME} lower case letters, digits, '-' and '.', "
            "and begins and ends with a letter or a digit"
        )


def to_secret(release: Release, now: datetime) -> JsonObject:
    """Return the Secret of a record. Raises ReleaseRecordError if it would be larger than a Secret may be."""
    text = pack_document(release.document)
    if len(text) > MAX_RECORD_BYTES:
        raise ReleaseRecordError(
            f"release {release.namespace}/{release.name}: its record is {len(text)} bytes packed, and a Secret holds "
            f"{MAX_RECORD_BYTES}; split the package, or take large files out of its values and templates"
        )
    return secret_with(release, text, now)


def pack_document(document: JsonObject) -> bytes:
    """Return the datum of a record's Secret, before the base64 encoding that Kubernetes requires for all data of Secrets."""
    return base64.b64encode(gzip(encode_json(document)))


def secret_with(release: Release, text: bytes, now: datetime) -> JsonObject:
    """Return the Secret of a record whose datum is ``text``."""
    labels = {key: value for key, value in release.labels.items() if key not in _OWN_LABELS}
    metadata: JsonObject = {
        "name": release.secret_name,
        "namespace": release.namespace,
        "labels": {
            **labels,
            "name": release.name,
            "owner": "helm",
            "status": str(release.status),
            "version": str(release.revision),
            "modifiedAt": str(int(now.timestamp())),
        },
    }
    if release.holder:
        metadata["annotations"] = holder_annotations(release.written_by)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": SECRET_TYPE,
        "data": {"release": base64.b64encode(text).decode()},
    }


def holder_annotations(holder: Holder) -> JsonObject:
    """Return the annotations that name the writer of a Secret."""
    said: JsonObject = {HOLDER_ANNOTATION: holder.identity}
    if holder.lease:
        said |= {FENCE_ANNOTATION: str(holder.fence), LEASE_ANNOTATION: holder.lease}
    return said


def read_holder(annotations: Mapping[str, JsonValue]) -> Holder:
    """Return the writer of a Secret with these annotations. Fields that cannot be read count as absent."""

    def said(name: str) -> str:
        value = annotations.get(name)
        return value if isinstance(value, str) else ""

    fence, lease = said(FENCE_ANNOTATION), said(LEASE_ANNOTATION)
    if not lease or not _FENCE.fullmatch(fence):
        return Holder(said(HOLDER_ANNOTATION))
    return Holder(said(HOLDER_ANNOTATION), int(fence), lease)


def from_secret(secret: JsonObject) -> Release:
    """Return the record in a Secret. Raises ReleaseRecordError, naming the Secret."""
    place = "release record"
    try:
        place = f"release record {find_str(secret, 'metadata', 'namespace')}/{find_str(secret, 'metadata', 'name')}"
        data = find_str(secret, "data", "release")
        if len(data) > 4 * MAX_RECORD_BYTES:
            raise ReleaseRecordError(f"{place}: {len(data)} bytes is more than a Secret can hold")
        document = _document(base64.b64decode(base64.b64decode(data, validate=True), validate=True), place)
        labels = find_object(secret, "metadata", "labels")
        holder = read_holder(find_object(secret, "metadata", "annotations"))
        release = Release(
            document,
            {key: value for key, value in labels.items() if key not in _OWN_LABELS and isinstance(value, str)},
            holder.identity,
            holder.fence,
            holder.lease,
        )
        check_record(release)
    except (binascii.Error, zlib.error, ShapeError, JsonError, ValueError) as error:
        raise ReleaseRecordError(f"{place}: cannot be read: {error}") from error
    return release


def check_record(release: Release) -> None:
    """Read all parts that may have a wrong type, so that later reads cannot fail. Raises ShapeError."""
    if not release.name or release.revision < 1:
        raise ShapeError("it has no name, or its revision (version) is not a positive number")
    for hook in release.hooks:
        find_str(hook, "manifest")
    _ = release.namespace, release.status, release.description, release.manifest, release.first_deployed
    _ = release.chart, release.values, release.last_deployed


def _document(packed: bytes, place: str) -> JsonObject:
    if packed[:3] == b"\x1f\x8b\x08":
        packed = gunzip(packed, place)
    return as_object(decode_json(packed, max_bytes=MAX_DOCUMENT_BYTES, what=place), place)


def _decoded(data: str) -> bytes:
    """Return the data of a chart's file; b"" for invalid data, which only another writer can have made."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return b""


def gunzip(packed: bytes, place: str) -> bytes:
    """Unpack gzip data.

    Raises ReleaseRecordError if the unpacked data are larger than :data:`MAX_DOCUMENT_BYTES`, or if the end is missing. Raises
    zlib.error if the data are damaged in another way.
    """
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    data = unpacker.decompress(packed, MAX_DOCUMENT_BYTES)
    if unpacker.unconsumed_tail:
        raise ReleaseRecordError(f"{place}: over {MAX_DOCUMENT_BYTES} bytes unpacked")
    if not unpacker.eof:
        raise ReleaseRecordError(f"{place}: cannot be read: the compressed data is incomplete")
    return data


def gzip(data: bytes) -> bytes:
    """Pack data with gzip, without time and name, so that the same data give the same bytes."""
    packer = zlib.compressobj(COMPRESSION, wbits=16 + zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()
