"""What a client accepts and what it sends: media types, and the views (``as=Table``) of Kubernetes' content negotiation.

Protobuf is read but never written, and CBOR not at all: asked for them, the next type that the client accepts is taken,
and that is JSON with every client there is.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.cluster.control_plane import status

OFFERED: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
"""As the kube-apiserver says it when nothing fits."""
STREAMS: Final = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
"""The same of a watch."""


class Encoding(StrEnum):
    """How a body is written."""

    JSON = "application/json"
    YAML = "application/yaml"
    PROTOBUF = "application/vnd.kubernetes.protobuf"


class View(StrEnum):
    """What an answer is turned into."""

    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class Representation:
    """What the client gets."""

    encoding: Encoding
    view: View = View.OBJECT
    version: str = "v1"
    """The version of meta.k8s.io in which a view is."""

    @property
    def content_type(self) -> str:
        """The Content-Type of the answer; only aggregated discovery names its view there."""
        if self.view is View.DISCOVERY:
            return f"{self.encoding};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        return str(self.encoding)


def negotiate(accept: str, views: Collection[View], *, watch: bool = False) -> Representation:
    """The best acceptable representation of an Accept header. Raises StatusError (406).

    A watch is never YAML. Where a media type is known, but not the view that is asked for, the refusal is another one than
    where no type is: in the kube-apiserver two programs look at them, one after the other.
    """
    if not accept.strip():
        return Representation(Encoding.JSON)
    clauses = sorted((parse_media_type(clause) for clause in accept.split(",")), key=_preference)
    for media, parameters in clauses:
        found = _representation(media, parameters, views)
        if found is not None and not (watch and found.encoding is Encoding.YAML):
            return found
    if not any(media in OFFERED or media == "*/*" for media, _ in clauses):
        raise status.not_acceptable((*OFFERED, *STREAMS) if watch else OFFERED)
    raise status.only_accepted(STREAMS if watch else OFFERED)


def error_encoding(accept: str) -> Encoding:
    """How an error is written for a client: as it wants its objects, or else in JSON."""
    try:
        return negotiate(accept, ()).encoding
    except status.StatusError:
        return Encoding.JSON


def _preference(clause: tuple[str, Mapping[str, str]]) -> tuple[float, bool, bool]:
    """Sorts clauses: by weight, and what is named before what is not."""
    media, parameters = clause
    try:
        weight = float(parameters.get("q", "1"))
    except ValueError:
        weight = 1.0
    return -weight, media.startswith("*"), media.endswith("*")


def _representation(media: str, parameters: Mapping[str, str], views: Collection[View]) -> Representation | None:
    encoding = {"application/json": Encoding.JSON, "application/yaml": Encoding.YAML, "*/*": Encoding.JSON}.get(media)
    if encoding is None:
        return None
    wanted, version = parameters.get("as", ""), parameters.get("v", "")
    if not wanted:
        return Representation(encoding)
    view = next((view for view in views if view.value == wanted), None)
    group, versions = ("apidiscovery.k8s.io", ("v2",)) if view is View.DISCOVERY else ("meta.k8s.io", ("v1", "v1beta1"))
    if view is None or parameters.get("g") != group or version not in versions:
        return None
    return Representation(encoding, view, version)


def parse_media_type(text: str) -> tuple[str, dict[str, str]]:
    """``application/json;as=Table`` → ``("application/json", {"as": "Table"})``."""
    media, *parts = text.split(";")
    parameters = {}
    for part in parts:
        name, _, value = part.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    return media.strip().lower(), parameters


def body_encoding(content_type: str) -> Encoding:
    """How the body of a create, update or delete is written; JSON where nothing is said. Raises StatusError (415)."""
    media, _ = parse_media_type(content_type)
    if media in {"", "application/json"}:
        return Encoding.JSON
    if media == Encoding.YAML:
        return Encoding.YAML
    if media == Encoding.PROTOBUF:
        return Encoding.PROTOBUF
    raise status.unsupported_media_type(OFFERED)
