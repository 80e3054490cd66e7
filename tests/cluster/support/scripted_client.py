"""The real client with a scripted server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.cluster.api.test_discovery import CORE, GROUPS
from tests.cluster.support.faulty_transport import Answer, FaultyTransport, Script, json_reply
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.api.http_session import ClientOptions
from wharfinger.formats.json.value import JsonObject

OPTIONS = ClientOptions(random=lambda: 0.5)


class Server:
    """A server that answers discovery from documents, and all other requests from the script of a test."""

    def __init__(self, script: Script, api: JsonObject = CORE, apis: JsonObject = GROUPS) -> None:
        self.script = script
        self.api = api
        self.apis = apis

    def __call__(self, request: httpx.Request) -> Answer:
        if request.url.path == "/api":
            return json_reply(self.api)
        if request.url.path == "/apis":
            return json_reply(self.apis)
        return self.script(request)


@asynccontextmanager
async def client_of(
    script: Script, options: ClientOptions = OPTIONS
) -> AsyncIterator[tuple[HttpClusterClient, FaultyTransport]]:
    transport = FaultyTransport(script)
    async with open_client(Connection("https://api.example"), transport=transport, options=options) as client:
        yield client, transport
    assert transport.open_streams == 0
