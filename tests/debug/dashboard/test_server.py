"""The server of the dashboard: its one-time address, its port and its cookies."""

import re
from pathlib import Path

import pytest
import trio

from tests.debug.support.dashboard_samples import inspector, opened
from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.dashboard.server import DashboardPortError, new_gate, open_dashboard
from wharfinger.httpd.limits import HttpLimits
from wharfinger.httpd.messages import Request, Response
from wharfinger.httpd.server import open_server


async def test_the_address_works_once_for_one_browser(tmp_path: Path) -> None:
    async with opened(tmp_path, inspector()) as (address, client):
        assert (await client.get("")).status_code == 403
        answer = await client.get(address)
        assert (answer.status_code, str(answer.url)) == (200, address.partition("?")[0])
        client.cookies.clear()
        again = await client.get(address)
        assert again.status_code == 403
        assert "used before" in again.text


async def test_the_cookie_is_not_sent_to_another_server_of_this_machine(tmp_path: Path) -> None:
    seen: list[Request] = []

    async def keep(request: Request) -> Response:
        seen.append(request)
        return Response(200)

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port: int = listeners[0].socket.getsockname()[1]
    async with opened(tmp_path, inspector()) as (address, client), open_server(listeners, keep, HttpLimits()):
        page = await client.get(address)
        assert page.status_code == 200
        for path in ("/", "/queues", "/package?name=prod.shop", "/static/style.css"):
            await client.get(f"http://127.0.0.1:{port}{path}")
        assert [request.headers.get("cookie") for request in seen] == [None] * 4
        links = re.findall(r'(?:href|src|action)="([^"#]*)"', page.text)
        assert {"./", "queues", "static/refresh.js", "package?name=prod.shop"} <= set(links)
        for link in links:
            assert (await client.get(link)).status_code == 200, link


async def test_a_port_that_is_in_use_is_an_error() -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        port: int = listener.socket.getsockname()[1]
        with pytest.raises(DashboardPortError, match="choose another --port"):
            async with open_dashboard(DebugClient(Path("none")), port):
                raise AssertionError("not opened")


def test_token_and_cookie_are_new_for_each_server() -> None:
    one, other = new_gate(80, 0.0), new_gate(80, 0.0)
    assert len({one.token, one.session, one.folder, other.token, other.session, other.folder}) == 6
    assert min(map(len, (one.token, one.session, one.folder))) >= 43
