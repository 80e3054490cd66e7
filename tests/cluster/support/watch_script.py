"""A scripted server of lists and watches, and a subscriber that records the changes that it gets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.cluster.support.client_contract import config_map
from tests.cluster.support.faulty_transport import Answer, FaultyTransport, Hang, Reply, event, json_reply
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.api.raw_object import RawChange
from wharfinger.cluster.watch.shared_watches import SharedWatches, open_shared_watches
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object


def obj(name: str, version: int, uid: str = "") -> JsonObject:
    """Return a ConfigMap with this resource version and UID."""
    made = config_map(name)
    find_object(made, "metadata").update({"resourceVersion": str(version), "uid": uid or f"u-{name}"})
    return made


def page(*items: JsonObject, version: int, token: str = "") -> Reply:
    """Return a page of a list. If it has a token, another page follows."""
    values: list[JsonValue] = list(items)
    metadata: JsonObject = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    return json_reply({"kind": "ConfigMapList", "metadata": metadata, "items": values})


def watch(*events: tuple[str, JsonObject], then: Hang | Exception | None = None) -> Reply:
    """Return a watch that sends these events, and then ends (by default), hangs, or breaks with an exception."""
    lines = [event(kind, obj) for kind, obj in events]
    return Reply(200, lines if then is None else [*lines, then])


class WatchScript:
    """A script with answers to lists and answers to watches.

    When no answers are left, further watches stay open without events.
    """

    def __init__(self, lists: list[Answer], watches: list[Answer] | None = None) -> None:
        self.lists = lists
        self.watches = watches or []
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> Answer:
        params = request.url.params
        if "watch" in params:
            self.asked.append("watch " + params["resourceVersion"])
            return self.watches.pop(0) if self.watches else Reply(200, [Hang()])
        words = ["list", *(name for name in ("limit", "continue") if name in params)]
        self.asked.append(" ".join(words))
        return self.lists.pop(0)

    def take(self) -> list[str]:
        """Return the requests since the last call."""
        taken, self.asked = self.asked, []
        return taken


class Told:
    """A subscriber that records changes in short form.

    A question mark marks a deletion that came without the object's last state.
    """

    def __init__(self) -> None:
        self.changes: list[str] = []

    def __call__(self, change: RawChange) -> None:
        self.changes.append(f"{change.type} {change.key.name}" + ("" if change.object else "?"))

    def take(self) -> list[str]:
        """Return the changes since the last call."""
        taken, self.changes = self.changes, []
        return taken


@asynccontextmanager
async def watches_of(script: WatchScript) -> AsyncIterator[tuple[SharedWatches, FaultyTransport]]:
    """Open shared watches of a scripted server. At the end, check that no request is still open."""
    transport = FaultyTransport(script)
    async with open_client(Connection("http://api.example"), transport=transport) as client:
        async with open_shared_watches(client, jitter=lambda: 0.0) as watches:
            yield watches, transport
        assert client.statistics()["watches"] == 0
    assert transport.open_streams == 0
