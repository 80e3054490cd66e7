"""What a client accepts and what it sends: media types, and the views (``as=Table``) of Kubernetes' content negotiation.

Protobuf is read but never written, and CBOR not at all: asked for them, the next type that the client accepts is taken,
and that is JSON with every client there is.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.cluster.control_plane import status

OFFERED: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
"""As the kube-apiserver says it when nothing fits."""


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

    @property
    def content_type(self) -> str:
        """The Content-Type of the answer; only aggregated discovery names its view there."""
        if self.view is View.DISCOVERY:
            return f"{self.encoding};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        return str(self.encoding)


def negotiate(accept: str, views: Collection[View]) -> Representation:
    """The first acceptable representation of an Accept header. Raises StatusError (406)."""
    if not accept.strip():
        return Representation(Encoding.JSON)
    for clause in accept.split(","):
        found = _clause(clause, views)
        if found is not None:
            return found
    raise status.not_acceptable(OFFERED)


def _clause(clause: str, views: Collection[View]) -> Representation | None:
    media, parameters = parse_media_type(clause)
    encodings = {
        "application/json": Encoding.JSON,
        "application/yaml": Encoding.YAML,
        "*/*": Encoding.JSON,
        "application/*": Encoding.JSON,
    }
    if media not in encodings:
        return None
    wanted = parameters.get("as", "")
    if not wanted:
        return Representation(encodings[media])
    view = next((view for view in views if view.value == wanted), None)
    group, version = ("apidiscovery.k8s.io", "v2") if view is View.DISCOVERY else ("meta.k8s.io", "v1")
    if view is None or parameters.get("g") != group or parameters.get("v") != version:
        return None
    return Representation(encodings[media], view)


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
