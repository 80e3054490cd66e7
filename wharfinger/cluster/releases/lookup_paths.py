"""The check of the paths of the Kubernetes API that a chart's `lookup` reads: which of them it may read.

Pure. Only what `lookup` needs is allowed: the version, discovery, objects, and collections. Everything else is refused, in
particular subresources (``pods/x/log``, ``services/x/proxy``) and watches. A confined release reads only objects of its own
namespace: no other namespace, no list over all namespaces, and no object of a cluster-scoped kind (the path of such an object
looks like a path over all namespaces).

A path is split, each part is checked, and the requested path is assembled from the checked parts. So only checked paths are
requested, however the client wrote them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

PARAMETERS: Final = frozenset({"limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "timeout"})
"""The query parameters that are passed on. Others are dropped, except `watch`, which is refused."""

_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:~-]{0,252}\Z")
_SUBRESOURCES_OF_NAMESPACES: Final = frozenset({"status", "finalize"})


@dataclass(frozen=True, slots=True)
class Question:
    """A path that Helm may request in a lookup, with its parameters. ``is_index`` is true for ``/api`` and ``/apis``, whose
    documents also have an aggregated form.
    """

    path: str
    params: Mapping[str, str]
    is_index: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A collection (``name`` is "") or an object; ``namespace`` is "" for all namespaces, or for a cluster-scoped kind."""

    api_version: str
    plural: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class NotAllowed:
    """The decision that a path may not be requested. ``place`` names the objects at that path, or is None if they are not
    objects that a chart could look up.
    """

    place: Place | None = None


Judgement: TypeAlias = Question | NotAllowed


def judge(path: str, query: Mapping[str, tuple[str, ...]], namespace: str | None) -> Judgement:
    """Decide whether a lookup may send this GET. If ``namespace`` is given, only objects of that namespace may be read,
    otherwise all objects.
    """
    parts = path.removeprefix("/").removesuffix("/").split("/")
    if not path.startswith("/") or not all(_PART.match(part) for part in parts) or "watch" in query:
        return NotAllowed()
    params = {name: values[-1] for name, values in query.items() if name in PARAMETERS}
    match parts:
        case ["version"]:
            return Question("/version", {})
        case ["api"] | ["apis"]:
            return Question(f"/{parts[0]}", {}, is_index=True)
        case ["api", _] | ["apis", _] | ["apis", _, _]:
            return Question(f"/{'/'.join(parts)}", {})
        case ["api", version, *rest]:
            return _resource(f"/api/{version}", version, rest, params, namespace)
        case ["apis", group, version, *rest]:
            return _resource(f"/apis/{group}/{version}", f"{group}/{version}", rest, params, namespace)
        case _:
            return NotAllowed()


def _resource(
    root: str, api_version: str, rest: list[str], params: Mapping[str, str], namespace: str | None
) -> Judgement:
    """Decide whether a lookup may request a collection or an object, in a namespace or cluster-wide. ``rest`` is the part of
    its path after the version.
    """
    match rest:
        case ["namespaces", inside, plural, *name] if len(name) <= 1 and not _is_of_namespace(api_version, plural):
            where, allowed = f"namespaces/{inside}/", namespace in (None, inside)
            place = Place(api_version, plural, inside, "".join(name))
        case [plural, *name] if len(name) <= 1 and plural != "watch":
            where, allowed = "", namespace is None
            place = Place(api_version, plural, "", "".join(name))
        case _:
            return NotAllowed()
    return Question("/".join((f"{root}/{where}{plural}", *name)), params) if allowed else NotAllowed(place)


def _is_of_namespace(api_version: str, plural: str) -> bool:
    """Return whether ``namespaces/x/<plural>`` is a subresource of the Namespace, and not a collection in it."""
    return "/" not in api_version and plural in _SUBRESOURCES_OF_NAMESPACES
