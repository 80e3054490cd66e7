"""The page that each address shows."""

import pytest

from tests.debug.dashboard.test_source import Daemon
from wharfinger.debug.dashboard.pages import OVERVIEW, PACKAGE, PARAMETERS, QUEUES, Pages
from wharfinger.debug.errors import NoDaemonError


async def test_each_path_has_its_page() -> None:
    pages = Pages(Daemon().source())
    assert (await pages.page(OVERVIEW, "")).title == "Packages"
    assert (await pages.page(OVERVIEW, "shop")).find == "shop"
    assert (await pages.page(QUEUES, "")).title == "Queues"
    assert (await pages.page(PACKAGE, "prod.shop")).title == "prod.shop"
    assert set(PARAMETERS) == {OVERVIEW, PACKAGE, QUEUES}
    assert pages.pause_s(PACKAGE, "prod.shop") > 0
    assert pages.pause_s(OVERVIEW, "shop") > 0


async def test_an_unknown_package_has_a_page_with_a_hint() -> None:
    page = await Pages(Daemon().source()).page(PACKAGE, "prod.shopp")
    assert page.announcement.startswith("no package named 'prod.shopp'; did you mean prod.shop")


async def test_a_page_without_a_daemon_is_an_error() -> None:
    daemon = Daemon()
    daemon.is_away = True
    with pytest.raises(NoDaemonError):
        await Pages(daemon.source()).page(OVERVIEW, "")
