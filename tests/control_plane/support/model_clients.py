"""Clients that make random writes, list in pages, and watch, and that record the answers in a ``Story``."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import trio

from tests.control_plane.support.model import Story, Write, data_of, name_of, revision_of
from wharfinger.formats.json.value import JsonObject, as_object, find, find_list, find_str

MAPS = "/api/v1/namespaces/default/configmaps"
SELECTOR = "labelSelector=model"
"""The selector of the story's ConfigMaps, which leaves out the server's own."""
NAMES = tuple("abcde")
_LATER = frozenset({500, 503, 504})

Connect = Callable[[], httpx.AsyncClient]


class Unanswered(Exception):  # noqa: N818 - it is no error of the client
    """The server did not answer, or answered that it was not available. The request may have been carried out."""


@dataclass
class Writer:
    """A client that writes. ``number`` distinguishes its values from those of other clients."""

    story: Story
    client: httpx.AsyncClient
    number: int
    rng: random.Random
    count: int = field(default=0)

    async def run(self, writes: int) -> None:
        """Run ``writes`` random actions, such as an update, a patch or a paged list."""
        for _ in range(writes):
            name = self.rng.choice(NAMES)
            act = self.rng.choice(
                (
                    self.create,
                    self.update,
                    self.merge,
                    self.json_patch,
                    self.strategic,
                    self.apply,
                    self.delete,
                    self.pages,
                )
            )
            try:
                await act(name)
            except Unanswered:
                self.story.unknown.add(name)
                await trio.sleep(0.05)

    def value(self) -> str:
        """Return a value that no other write ever uses."""
        self.count += 1
        return f"{self.number}-{self.count}"

    async def ask(self, method: str, path: str, body: object = None, kind: str = "json") -> tuple[int, JsonObject]:
        """Make a request, and return the code and the body of its answer. Raises Unanswered."""
        headers = {"content-type": f"application/{kind}", "user-agent": f"client-{self.number}/1"}
        content = b"" if body is None else json.dumps(body).encode()
        try:
            answer = await self.client.request(method, path, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise Unanswered from error
        if answer.status_code in _LATER:
            raise Unanswered
        return answer.status_code, as_object(json.loads(answer.content), "answer")

    def note(
        self, name: str, asked: dict[str, str | None], answer: JsonObject, *, whole: bool = False, read_at: int = 0
    ) -> None:
        """Record that a write was answered.

        A write that changes nothing has no revision of its own. Its answer has the revision of another write, which may be
        answered later.
        """
        revision = revision_of(answer)
        write = Write(revision, name, asked, whole, answer, read_at)
        known = next((one for one in self.story.writes if one.revision == revision), None)
        if known is None:
            self.story.writes.append(write)
        else:
            known.others.append(write)

    async def create(self, name: str) -> None:
        asked: dict[str, str | None] = {f"c{self.number}": self.value()}
        body = {"metadata": {"name": name, "labels": {"model": "1"}}, "data": asked}
        code, answer = await self.ask("POST", MAPS, body)
        assert code in {201, 409}, answer
        if code == 201:
            self.note(name, asked, answer, whole=True)

    async def update(self, name: str) -> None:
        """Read an object, change it, and write it back. The write is refused if another client was faster."""
        code, found = await self.ask("GET", f"{MAPS}/{name}")
        if code == 404:
            return
        data: dict[str, str | None] = {**data_of(found), f"u{self.number}": self.value()}
        if self.rng.random() < 0.3:
            data.pop(self.rng.choice(sorted(data)))
        code, answer = await self.ask("PUT", f"{MAPS}/{name}", {**found, "data": data})
        assert code in {200, 404, 409}, answer
        if code == 200:
            self.note(name, data, answer, whole=True, read_at=revision_of(found))

    async def merge(self, name: str) -> None:
        asked: dict[str, str | None] = {f"m{self.number}": self.value() if self.rng.random() < 0.8 else None}
        await self._patch(name, asked, {"data": asked}, "merge-patch+json")

    async def strategic(self, name: str) -> None:
        asked: dict[str, str | None] = {f"s{self.number}": self.value() if self.rng.random() < 0.8 else None}
        await self._patch(name, asked, {"data": asked}, "strategic-merge-patch+json")

    async def json_patch(self, name: str) -> None:
        asked: dict[str, str | None] = {f"j{self.number}": self.value()}
        operations = [{"op": "add", "path": f"/data/j{self.number}", "value": asked[f"j{self.number}"]}]
        await self._patch(name, asked, operations, "json-patch+json")

    async def apply(self, name: str) -> None:
        asked: dict[str, str | None] = {f"a{self.number}": self.value()}
        metadata = {"name": name, "labels": {"model": "1"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": asked}
        path = f"{MAPS}/{name}?fieldManager=applier-{self.number}&force=true"
        code, answer = await self.ask("PATCH", path, body, "apply-patch+yaml")
        assert code in {200, 201, 409}, answer
        if code != 409:
            self.note(name, asked, answer)

    async def _patch(self, name: str, asked: dict[str, str | None], body: object, kind: str) -> None:
        code, answer = await self.ask("PATCH", f"{MAPS}/{name}", body, kind)
        assert code in {200, 404, 409, 422}, answer  # 422 if the object has no data to add a member to
        if code == 200:
            self.note(name, asked, answer)

    async def delete(self, name: str) -> None:
        if self.rng.random() < 0.5:
            return
        code, answer = await self.ask("DELETE", f"{MAPS}/{name}")
        assert code in {200, 404, 409}, answer
        if code == 200:
            uid = find_str(answer, "details", "uid")
            self.story.deleted.append((name, uid))

    async def pages(self, _name: str) -> None:
        """List objects in pages of two. All pages must show the same state, whatever is written meanwhile."""
        listed: dict[str, dict[str, str]] = {}
        path, token = f"{MAPS}?{SELECTOR}&limit=2", ""
        while True:
            code, answer = await self.ask("GET", f"{path}&continue={token}" if token else path)
            if code == 410:
                return
            assert code == 200, answer
            listed |= {name_of(item): data_of(item) for item in find_list(answer, "items")}
            token = find_str(answer, "metadata", "continue")
            if not token:
                self.story.lists.append((revision_of(answer), listed))
                return


class Follower:
    """A client that lists and watches, and lists again when its watch cannot continue."""

    def __init__(self, story: Story, client: httpx.AsyncClient) -> None:
        self._story = story
        self._client = client
        self.objects: dict[str, JsonObject] = {}
        self.revision = -1
        self._moved = trio.Event()

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                await self._list()
                await self._watch()
            except httpx.HTTPError:
                await trio.sleep(0.05)

    async def _list(self) -> None:
        answer = await self._client.get(f"{MAPS}?{SELECTOR}")
        if answer.status_code != 200:
            raise httpx.ReadError("not now")
        listed = as_object(json.loads(answer.content), "list")
        assert revision_of(listed) >= self.revision, "the server went back"
        whole = {"kind": "ConfigMap", "apiVersion": "v1"}
        self.objects = {name_of(item): {**whole, **as_object(item, "item")} for item in find_list(listed, "items")}
        self._move(revision_of(listed))

    async def _watch(self) -> None:
        path = f"{MAPS}?{SELECTOR}&watch=1&resourceVersion={self.revision}&timeoutSeconds=600&allowWatchBookmarks=true"
        async with self._client.stream("GET", path, timeout=None) as events:
            if events.status_code != 200:
                raise httpx.ReadError("not now")
            async for line in events.aiter_lines():
                event = as_object(json.loads(line), "event")
                if event["type"] == "ERROR":
                    assert find(event, "object", "code") == 410, event
                    return
                self._take(find_str(event, "type"), as_object(event["object"], "object"))

    def _take(self, kind: str, obj: JsonObject) -> None:
        revision, name = revision_of(obj), name_of(obj)
        assert revision > self.revision or (kind == "BOOKMARK" and revision == self.revision), "an event out of order"
        if kind == "BOOKMARK":
            self._move(revision)
            return
        assert (kind == "ADDED") == (name not in self.objects), f"{kind} of {name}"
        if kind == "DELETED":
            gone = self.objects.pop(name)
            self._story.ends[name, find_str(gone, "metadata", "uid")] = revision
            self._story.watched.append((revision, name, None))
        else:
            self.objects[name] = obj
            self._story.watched.append((revision, name, obj))
        self._move(revision)

    def _move(self, revision: int) -> None:
        self.revision = revision
        self._moved.set()
        self._moved = trio.Event()

    async def until(self, revision: int) -> None:
        """Wait until the client has seen a revision."""
        while self.revision < revision:
            await self._moved.wait()
