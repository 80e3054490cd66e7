"""Replay recorded transcripts of a real kube-apiserver against a handler, and compare the answers.

Recordings contain placeholders such as ``$uid1`` and ``$rv2``. The first occurrence of a placeholder binds it to the value
in the answer, if that value has the right form. Each later occurrence must have the same value. If two objects have
different uids or revisions in the recording, they must also have different ones in the replay. The revision of a list may
be any revision, because other clients wrote while the transcript was recorded.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import httpx
import trio
from trio.testing import MockClock

from wharfinger.control_plane.service import open_control_plane
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_object, find_str

RECORDED: Final = Path(__file__).with_name("recorded")
_AGE: Final = re.compile(r"(\d+[smhdy]){1,2}")
_QUOTED_REVISION: Final = re.compile(r'(resourceVersion\\*"?: ?\\*")(?:[0-9]+|\$rv[0-9]+)')
"""A revision inside an object that a message quotes. Such revisions are not compared."""
PLACEHOLDER: Final = re.compile(r"\$(uid|rv|rand|continue|ip|nodePort|time|age|cert|server)(\d*)")
FORMS: Final = {
    "uid": r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "rv": r"[0-9]+",
    "rand": r"[bcdfghjklmnpqrstvwxz2456789]{5}",
    "continue": r"[A-Za-z0-9_-]+",
    "ip": r"10\.0\.0\.[0-9]{1,3}",
    "nodePort": r"3[0-2][0-9]{3}",
    "time": r"[0-9-]{10}T[0-9:]{8}(?:\.[0-9]{6})?Z",
    "age": r"[0-9]+[smhd](?:[0-9]+[smh])?",
    "cert": r".+",
    "server": r".+",
}
POLLS: Final = 100
_ANY_REVISION: Final = "$rv0"
TOKEN: Final = "admintoken"


@dataclass(frozen=True, slots=True)
class Step:
    """A recorded request and its answer."""

    number: int
    note: str
    poll: bool
    request: JsonObject
    response: JsonObject
    differs: str = ""
    """The reason for an intentional difference; "" if the answers must be equal."""


def load(scenario: str) -> list[Step]:
    """Return the steps of a file such as ``04-crud-configmap``."""
    return load_file(RECORDED / f"{scenario}.jsonl")


def load_file(path: Path) -> list[Step]:
    """Return the steps of a recording."""
    lines = path.read_text().strip().split("\n")[1:]  # unlike splitlines(), this does not split at U+0085
    return [
        Step(
            item["step"],
            item["note"],
            item.get("poll", False),
            item["request"],
            item["response"],
            item.get("differs", ""),
        )
        for item in map(json.loads, lines)
    ]


@dataclass
class Bindings:
    """The values of the placeholders in one replay."""

    values: dict[str, str] = field(default_factory=dict)

    def fill(self, text: str) -> str:
        """Return the text of a request with all bound placeholders replaced by their values."""
        return PLACEHOLDER.sub(lambda found: self.values.get(found[0], found[0]), text)

    def unify(self, expected: str, actual: str, *, shared: bool) -> bool:
        """Return whether a text matches, and bind new placeholders.

        If ``shared``, a new placeholder for a revision may get the same value as another placeholder.
        """
        pattern, names = "", list[str]()
        position = 0
        for found in PLACEHOLDER.finditer(expected):
            known = self.values.get(found[0]) if found[1] not in {"time", "age"} else None
            pattern += re.escape(expected[position : found.start()])
            if known is not None:
                pattern += re.escape(known)
            else:
                pattern += f"({FORMS[found[1]]})"
                names.append(found[0])
            position = found.end()
        match = re.fullmatch(pattern + re.escape(expected[position:]), actual)
        if match is None:
            return False
        for name, value in zip(names, match.groups(), strict=True):
            kind = name.rstrip("0123456789")
            if self.values.get(name) == value:
                continue
            if kind == "$uid" and value in self.values.values():
                return False
            if kind == "$rv" and not shared and value in self.values.values():
                return False
            self.values[name] = value
        return True


def differences(expected: JsonValue, actual: JsonValue, bindings: Bindings, path: str = "") -> Iterator[str]:
    """Yield the differences between an answer and the recorded one."""
    if isinstance(expected, str) and expected.startswith("$nodePort") and isinstance(actual, int):
        actual = str(actual)
    if isinstance(expected, str) and isinstance(actual, str):
        if not _same_text(expected, actual, bindings, path):
            yield f"{path}: expected {expected!r}, got {actual!r}"
    elif isinstance(expected, dict) and isinstance(actual, dict):
        expected = {bindings.fill(name): value for name, value in expected.items()}
        expected = expected if path else _of_a_list(expected, bindings)
        for name in sorted(expected.keys() | actual.keys()):
            if name not in expected or name not in actual:
                yield f"{path}.{name}: {'unexpected' if name in actual else 'missing'}"
            else:
                yield from differences(expected[name], actual[name], bindings, f"{path}.{name}")
    elif isinstance(expected, list) and isinstance(actual, list):
        if path.endswith(".managedFields"):  # entries are ordered by time, and the times differ here
            expected, actual = sorted(expected, key=_by_manager), sorted(actual, key=_by_manager)
        if len(expected) != len(actual):
            yield f"{path}: expected {len(expected)} items, got {len(actual)}"
        for index, pair in enumerate(zip(expected, actual, strict=False)):
            yield from differences(*pair, bindings, f"{path}[{index}]")
    elif type(expected) is not type(actual) or expected != actual:
        yield f"{path}: expected {expected!r}, got {actual!r}"


def _of_a_list(expected: JsonObject, bindings: Bindings) -> JsonObject:
    """Return the expected answer. If it is a list whose recorded revision has already occurred in an earlier answer, return it
    with a placeholder for any revision, because other writes may have changed the revision of the list since then.
    """
    listed = "items" in expected or expected.get("kind") == "Table"
    revision = find(expected, "metadata", "resourceVersion") if listed else None
    if not isinstance(revision, str) or revision not in bindings.values:
        return expected
    bindings.values.pop(_ANY_REVISION, None)
    return {**expected, "metadata": {**find_object(expected, "metadata"), "resourceVersion": _ANY_REVISION}}


def _same_text(expected: str, actual: str, bindings: Bindings, path: str) -> bool:
    if ".cells[" in path and _AGE.fullmatch(expected) and _AGE.fullmatch(actual):
        return True  # ages are relative to the time of the request
    expected, actual = (_QUOTED_REVISION.sub(r"\1N", text) for text in (expected, actual))
    shared = bool(re.fullmatch(r"(\[\d+\])?(\.object)?\.metadata\.resourceVersion|.*message", path))
    return bindings.unify(expected, actual, shared=shared)


def _by_manager(entry: JsonValue) -> tuple[str, ...]:
    return tuple(find_str(entry, name) for name in ("operation", "manager", "subresource", "apiVersion"))


def replay_offline(steps: list[Step], *, simulate: bool = True) -> list[tuple[Step, list[str]]]:
    """Replay a recording against a new control plane in virtual time, and return the failed steps with their differences.

    A step with an intentional difference fails if there is no difference.
    """

    async def run() -> list[tuple[Step, list[str]]]:
        start, began = datetime(2026, 11, 21, 4, tzinfo=UTC), trio.current_time()
        bindings, failures = Bindings(), list[tuple[Step, list[str]]]()
        async with (
            open_control_plane(
                token=TOKEN,
                simulate=simulate,
                now=lambda: start + timedelta(seconds=trio.current_time() - began),
            ) as control_plane,
            httpx.AsyncClient(transport=control_plane.transport(), base_url="http://test") as client,
        ):
            for step in steps:
                if step.poll or step.number == 2:
                    await trio.sleep(1)  # controllers had finished in the recording, and timestamps have whole seconds
                found = await replay_step(client, step, bindings, TOKEN)
                if step.differs:
                    found = [] if found else ["does not differ any more; remove its `differs`"]
                if found:
                    failures.append((step, found))
        return failures

    return trio.run(run, clock=MockClock(autojump_threshold=0))


async def replay_step(client: httpx.AsyncClient, step: Step, bindings: Bindings, token: str) -> list[str]:
    """Replay one step, and return its differences from the recording. A polled step is repeated until there are no differences,
    but at most POLLS times in total.
    """
    found: list[str] = []
    for _ in range(POLLS if step.poll else 1):
        attempt = Bindings(dict(bindings.values))
        found = list(_compare(step.response, await _send(client, step.request, attempt, token), attempt))
        if not found or not step.poll:
            bindings.values.update(attempt.values)
            break
        await trio.sleep(0.1)
    return found


def _generated(described: str) -> JsonObject:
    """Return the large object that a recording describes with a text such as ``data.a = 'x' * 1048577, name g``."""
    body: JsonObject = {"metadata": {}}
    for part in described.split(", "):
        path, text, times = part.removeprefix("name "), "", "1"
        if found := re.fullmatch(r"([\w.]+) ?= ?'([^']*)'(?: \* (\d+))?", part):
            path, text, times = found[1], found[2], found[3] or "1"
        *parents, last = path.split(".") if text else ("metadata", "name")
        value = text * int(times) if text else path
        inner = body
        for name in parents:
            inner = as_object(inner.setdefault(name, {}), name)
        inner[last] = value
    return body


def bytes_of(text: str) -> bytes:
    """Return a body in UTF-8. The characters ``\\udc80`` to ``\\udcff`` stand for single bytes that are not UTF-8."""
    return text.encode(errors="surrogateescape")


async def _send(client: httpx.AsyncClient, request: JsonObject, bindings: Bindings, token: str) -> httpx.Response:
    headers = {
        "accept": "application/json",
        "content-type": "application/json",
        "user-agent": "recorder/1.0",
        "authorization": f"Bearer {token}",
    }
    for name, value in find_object(request, "headers").items():
        headers.pop(name, None)
        if isinstance(value, str):
            headers[name] = value
    body = request.get("body")
    if described := find_str(body, "$generated"):
        body = _generated(described)
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    return await client.request(
        find_str(request, "method"),
        bindings.fill(find_str(request, "path")),
        headers=headers,
        content=bytes_of(bindings.fill(text)),
    )


def _compare(expected: JsonObject, response: httpx.Response, bindings: Bindings) -> Iterator[str]:
    if response.status_code != expected["status"]:
        yield f"status: expected {expected['status']}, got {response.status_code}: {response.text[:300]}"
    for name, value in find_object(expected, "headers").items():
        wanted = value if isinstance(value, list) else [value]
        if sorted(map(str, wanted)) != sorted(response.headers.get_list(name)):
            yield f"header {name}: expected {value!r}, got {response.headers.get_list(name)!r}"
    body = expected["body"]
    if find(body, "$summary") is not None:
        return
    yield from differences(body, _parsed(response, watch=isinstance(body, list)), bindings)


def _parsed(response: httpx.Response, *, watch: bool) -> JsonValue:
    if watch and response.status_code == 200:
        return [as_object(json.loads(line), "event") for line in response.text.splitlines()]
    if response.headers.get("content-type", "").startswith("application/json") and response.text:
        try:
            parsed: JsonValue = json.loads(response.text)
        except ValueError:  # the answer is an unexpected watch
            return response.text
        return parsed
    return response.text
