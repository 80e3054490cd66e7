"""Content negotiation: the media types that a client accepts and sends, and Kubernetes' views (``as=Table``).

Protobuf is read but never written, and CBOR is not supported. A client that prefers protobuf or CBOR gets the next type that it
accepts, which is JSON for every known client.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wharfinger.control_plane.wire import status

OFFERED: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
"""The media types that an error lists, as kube-apiserver names them."""
STREAMS: Final = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
"""The media types of watches that an error lists, as kube-apiserver names them."""

_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PAIR: Final = rf'\s*;\s*({_WORD})\s*=\s*(?:{_WORD}|"[^"]*")'
_CONTENT_TYPE: Final = re.compile(rf"\s*({_WORD}/{_WORD})\s*((?:{_PAIR})*)\s*;?\s*")
_PARAMETER: Final = re.compile(_PAIR)


class Encoding(StrEnum):
    """The format of a body."""

    JSON = "application/json"
    YAML = "application/yaml"
    PROTOBUF = "application/vnd.kubernetes.protobuf"


class View(StrEnum):
    """The view of an answer."""

    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class Representation:
    """The form of an answer: the encoding of its body, and the view of the objects in it."""

    encoding: Encoding
    view: View = View.OBJECT
    version: str = "v1"
    """The version of the API group meta.k8s.io that a view has."""
    pretty: bool = False
    """True if JSON is indented for people."""

    @property
    def content_type(self) -> str:
        """Return the Content-Type of the answer. It names the view only if the view is aggregated discovery."""
        if self.view is View.DISCOVERY:
            return f"{self.encoding};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        return str(self.encoding)


def negotiate(
    accept: str,
    views: Collection[View],
    *,
    watch: bool = False,
    listing: bool = False,
    custom: bool = False,
    offered: tuple[str, ...] = OFFERED,
) -> Representation:
    """Return the representation that a client prefers according to its Accept header. Raises StatusError (406).

    A watch is never YAML. kube-apiserver checks the media type in two steps with different errors: first only the type, which
    must be in ``offered``, then the type with its view. ``custom`` kinds skip the first step. For a watch, and for a collection
    that is read (``listing``), the error of the first step also lists the media types of watches.
    """
    if not accept.strip():
        return Representation(Encoding.JSON)
    clauses = _clauses(accept)
    if not custom and not any(media in offered or media == "*/*" for media in named_media(accept)):
        raise status.not_acceptable((*OFFERED, *STREAMS) if watch or listing else offered)
    known = False
    for media, parameters in clauses:
        found = _representation(media, parameters, views)
        if found is not None and watch and found.encoding is Encoding.YAML:
            known = True
            break
        if found is not None:
            return found
    raise status.only_accepted(STREAMS if known and not custom else OFFERED)


def error_representation(accept: str) -> Representation | None:
    """Return the format in which a client gets an error; None if the client accepts no known type."""
    if not accept.strip():
        return Representation(Encoding.JSON)
    found = (_representation(media, parameters, ()) for media, parameters in _clauses(accept))
    return next((item for item in found if item is not None), None)


def named_media(accept: str) -> list[str]:
    """Return the media types of an Accept header as they are written, without their parameters."""
    return [clause.partition(";")[0].strip(" ") for clause in accept.split(",")]


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Return the media types of an Accept header with their parameters, the preferred one first. Names are case-sensitive."""
    clauses = []
    for clause in accept.split(","):
        media, *parts = (part.strip() for part in clause.split(";"))
        kind, slash, sub = media.partition("/")
        media = "*/*" if media == "*" else f"{kind.strip()}{slash}{sub.strip()}"
        pairs = (part.split("=") for part in parts)
        parameters = {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2 and pair[1]}
        if media.count("/") == 1:
            clauses.append((media, parameters))
    return sorted(clauses, key=_preference)


def _preference(clause: tuple[str, Mapping[str, str]]) -> tuple[float, bool, bool]:
    """Return the sort key of a clause: its weight, and named types before wildcards."""
    media, parameters = clause
    try:
        weight = float(parameters.get("q", "1"))
    except ValueError:
        weight = 0.0
    return -weight, media.startswith("*"), media.endswith("*")


_READ: Final = {"application/json": Encoding.JSON, "application/yaml": Encoding.YAML}
_ANY: Final = frozenset({"*/*", "application/*"})


def _representation(media: str, parameters: Mapping[str, str], views: Collection[View]) -> Representation | None:
    encoding = Encoding.JSON if media in _ANY else _READ.get(media)
    if encoding is None or parameters.get("stream", "watch") != "watch":
        return None
    pretty = parameters.get("pretty") == "1"
    if parameters.keys().isdisjoint({"as", "g", "v"}):
        return Representation(encoding, pretty=pretty)
    wanted, version = parameters.get("as", ""), parameters.get("v", "")
    view = next((view for view in views if view.value == wanted), None)
    group, versions = ("apidiscovery.k8s.io", ("v2",)) if view is View.DISCOVERY else ("meta.k8s.io", ("v1", "v1beta1"))
    if view is None or parameters.get("g") != group or version not in versions:
        return None
    return Representation(encoding, view, version, pretty=pretty)


def parse_media_type(text: str) -> tuple[str, dict[str, str]]:
    """Parse a media type: ``application/json;as=Table`` → ``("application/json", {"as": "Table"})``."""
    media, *parts = text.split(";")
    parameters = {}
    for part in parts:
        name, _, value = part.partition("=")
        parameters[name.strip().lower()] = value.strip().strip('"')
    return media.strip().lower(), parameters


def body_encoding(content_type: str) -> Encoding:
    """Return the format of the body of a create, update or delete; JSON if none is given. Raises StatusError (415)."""
    if not content_type or content_type == "application/json":
        return Encoding.JSON
    found = _CONTENT_TYPE.fullmatch(content_type)
    names = _PARAMETER.findall(found[2].lower()) if found is not None else []
    media = found[1].lower() if found is not None and len(names) == len(set(names)) else ""
    if media not in OFFERED:
        raise status.unsupported_media_type(OFFERED)
    return Encoding(media)


def patch_media(content_type: str, offered: Sequence[str], *, custom: bool) -> str:
    """Return the media type of a patch. Raises StatusError (415).

    As in kube-apiserver, the type of a patch of a built-in kind is checked in two steps with different errors. The first step
    also accepts a header that lists several types, with spaces around them.
    """
    media = content_type.partition(";")[0]
    if media in offered:
        return media
    named = {clause.partition(";")[0].strip(" ") for clause in content_type.split(",")}
    if custom or not named.isdisjoint(offered):
        raise status.unsupported_media_type(offered)
    raise status.StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
