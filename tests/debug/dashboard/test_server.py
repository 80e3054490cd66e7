"""The server of the page."""

from pathlib import Path

import pytest
import trio

from tests.debug.support.dashboard_samples import inspector, opened
from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.dashboard.server import DashboardPortError, new_gate, open_dashboard


async def test_the_address_works_once_and_for_one_browser(tmp_path: Path) -> None:
    async with opened(tmp_path, inspector()) as (address, client):
        assert (await client.get("/")).status_code == 403
        answer = await client.get(address)
        assert (answer.status_code, answer.url.path, answer.url.query) == (200, "/", b"")
        client.cookies.clear()
        again = await client.get(address)
        assert again.status_code == 403
        assert "used before" in again.text


async def test_a_port_that_is_in_use_is_an_error() -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        port: int = listener.socket.getsockname()[1]
        with pytest.raises(DashboardPortError, match="choose another --port"):
            async with open_dashboard(DebugClient(Path("none")), port):
                raise AssertionError("not opened")


def test_secrets_are_new_each_time() -> None:
    one, other = new_gate(80, 0.0), new_gate(80, 0.0)
    assert len({one.token, one.session, other.token, other.session}) == 4
    assert min(map(len, (one.token, one.session))) >= 43
