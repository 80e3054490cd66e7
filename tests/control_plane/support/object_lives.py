"""Random lives of objects. Each object is created by a request that a real API server accepted, often with a few changes.
Then the object is read, written and deleted.

All choices come from a ``random.Random``. So its seed always results in the same run, if the answers are the same.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.control_plane.recorded_answers.recorder import RECORDINGS
from tests.control_plane.recorded_answers.replay import load_file
from tests.control_plane.support.fitting_values import altered
from tests.control_plane.support.openapi_requests import ODD, Operation
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    as_object,
    decode_json,
    encode_json,
    find_object,
    find_str,
)
from wharfinger.httpd.messages import Request, Response

NAMESPACES: Final = ("a", "b")
_ALIVE: Final = 100
_NAMESPACE: Final = re.compile(r"(?<=/namespaces/)[^/]+(?=/)")
_NAMED_AS_THEY_ARE: Final = ("customresourcedefinitions", "apiservices", "csinodes", "ipaddresses", "leases")
_COLLECTION: Final = re.compile(r"/(api|apis/[^/]+)/[^/]+(/namespaces/\{namespace\})?/[^/]+")
_PATCHES: Final = ("application/merge-patch+json", "application/strategic-merge-patch+json")
_OPTIONS: Final[tuple[JsonObject, ...]] = (
    {},
    {"propagationPolicy": "Foreground"},
    {"propagationPolicy": "Orphan"},
    {"gracePeriodSeconds": 0},
    {"preconditions": {"uid": "x"}},
    {"dryRun": ["All"]},
)


@dataclass(frozen=True, slots=True)
class Seed:
    """A create request that a real API server accepted. A namespace in the path is replaced by ``{namespace}``."""

    path: str
    body: JsonObject


def seeds() -> list[Seed]:
    """Return the accepted create requests in the recordings, of all kinds."""
    found = []
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        for step in load_file(path):
            body, place = step.request.get("body"), find_str(step.request, "path").partition("?")[0]
            place = _NAMESPACE.sub("{namespace}", place)
            taken = find_str(step.request, "method") == "POST" and step.response.get("status") == 201
            if taken and isinstance(body, dict) and _COLLECTION.fullmatch(place) and "$" not in str(body):
                found.append(Seed(place, body))
    return found


@dataclass(slots=True)
class Lives:
    """The existing objects, and the choice of the next request."""

    draw: random.Random
    seeds: Sequence[Seed]
    operations: Mapping[tuple[str, str], Operation]
    """The operations, by method and path."""
    creates: int = 0
    created: int = 0
    _alive: dict[str, tuple[str, JsonObject]] = field(default_factory=dict)
    """For each object's path, the template of the collection's path and the last seen object."""
    _by_path: dict[str, list[Seed]] = field(default_factory=dict)
    _number: int = 0

    def __post_init__(self) -> None:
        for seed in self.seeds:
            self._by_path.setdefault(seed.path, []).append(seed)

    def drawn(self) -> Request:
        """Choose the next request."""
        if not self._alive or self.draw.random() < 0.35:
            return self._create()
        if len(self._alive) > _ALIVE:
            return self._asked("DELETE", next(iter(self._alive)), self.draw.choice(_OPTIONS))
        path = self.draw.choice(list(self._alive))
        template, obj = self._alive[path]
        match self.draw.random():
            case chance if chance < 0.1:
                return self._asked("GET", path)
            case chance if chance < 0.35:
                return self._asked("PUT", path, self._altered("PUT", template, obj))
            case chance if chance < 0.5:
                below = self.draw.choice(("status", "scale", "finalize", "approval", "resize", "ephemeralcontainers"))
                body = self._altered("PUT", template, obj)
                return self._asked("PUT", f"{path}/{below}", body)
            case chance if chance < 0.85:
                return self._patch(template, path, obj)
            case _:
                return self._asked("DELETE", path, self.draw.choice(_OPTIONS))

    def saw(self, request: Request, answer: Response) -> None:
        """Record the answer to a request."""
        made = request.method == "POST"
        self.creates += made
        if answer.status not in {200, 201}:
            if answer.status == 404:
                self._alive.pop(request.path, None)
            return
        obj = as_object(decode_json(answer.body, max_bytes=10_000_000, what="answer"), "answer")
        if made:
            self.created += 1
            template = _NAMESPACE.sub("{namespace}", request.path)
            self._alive[f"{request.path}/{find_str(obj, 'metadata', 'name')}"] = template, obj
        elif request.path in self._alive and find_str(obj, "kind") != "Status":
            self._alive[request.path] = self._alive[request.path][0], obj
        elif request.method == "DELETE":
            self._alive.pop(request.path, None)

    def _create(self) -> Request:
        seed = self.draw.choice(self._by_path[self.draw.choice(list(self._by_path))])
        body = seed.body
        if not seed.path.endswith(_NAMED_AS_THEY_ARE) and self.draw.random() < 0.9:
            self._number += 1
            body = {**body, "metadata": {**find_object(body, "metadata"), "name": f"n{self._number}"}}
        metadata = find_object(body, "metadata")
        kept = {name: value for name, value in metadata.items() if name not in {"namespace", "resourceVersion"}}
        body = {**body, "metadata": kept}
        for _ in range(self.draw.choice((0, 0, 1, 1, 1, 2))):
            body = self._altered("POST", seed.path, body)
        return self._asked("POST", seed.path.replace("{namespace}", self.draw.choice(NAMESPACES)), body)

    def _altered(self, method: str, template: str, obj: JsonObject) -> JsonObject:
        path = template if method == "POST" else f"{template}/{{name}}"
        operation = self.operations.get((method, path))
        if operation is None:
            return obj
        if self.draw.random() < 0.1:
            return _odd_somewhere(obj, self.draw)
        return as_object(altered(obj, operation.body, operation.schemas, self.draw), "object")

    def _patch(self, template: str, path: str, obj: JsonObject) -> Request:
        changed = self._altered("PUT", template, obj)
        pointers = list(_pointers(changed, ""))
        match self.draw.randrange(3):
            case 0:
                pointer, value = self.draw.choice(pointers)
                operation = self.draw.choice(("add", "remove", "replace", "test"))
                patch: JsonValue = [{"op": operation, "path": pointer, "value": value}]
                return self._asked("PATCH", path, patch, "application/json-patch+json")
            case 1:
                part: JsonObject = {
                    name: value for name, value in changed.items() if name not in {"status", "metadata"}
                }
                return self._asked("PATCH", path, part, self.draw.choice(_PATCHES))
            case _:
                name = find_str(obj, "metadata", "name")
                applied: JsonObject = {**changed, "metadata": {"name": name}}
                applied.pop("status", None)
                query = {"fieldManager": ("lives",), "force": (self.draw.choice(("true", "false")),)}
                return self._asked("PATCH", path, applied, "application/apply-patch+yaml", query)

    def _asked(
        self,
        method: str,
        path: str,
        body: JsonValue = None,
        content_type: str = "application/json",
        query: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Request:
        headers = {"user-agent": "lives/1", "content-type": content_type}
        return Request(method, path, query or {}, headers, b"" if body is None else encode_json(body))


def _pointers(value: JsonValue, place: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield the JSON pointer (RFC 6901) and the value of every part of a document."""
    yield place, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from _pointers(item, f"{place}/{str(name).replace('~', '~0').replace('/', '~1')}")


def _odd_somewhere(obj: JsonObject, draw: random.Random) -> JsonObject:
    """Return a copy of the object in which one value is replaced by an unusual one (``ODD``)."""
    pointer, _ = draw.choice(list(_pointers(obj, ""))[1:] or [("/spec", None)])
    first, *rest = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    value = obj.get(first)
    if rest and isinstance(value, dict) and draw.random() < 0.8:
        return {**obj, first: _odd_somewhere(value, draw)}
    return {**obj, first: draw.choice(ODD)}
