"""The states of all packages, read in one list. Each state is taken from the list once. A package reads its own state if the
list does not contain it.
"""

import pytest
import trio
from trio.testing import MockClock

from tests.runtime.lifecycle.test_package_state import APP, KEY, open_cluster
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.http_client import open_client
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.lifecycle.listed_states import FRESH_S, ListedStates
from wharfinger.runtime.lifecycle.package_state import PACKAGE_LABEL, decoded, state_record

OTHER: JsonObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "own", "namespace": "default", "labels": {PACKAGE_LABEL: "default.shop"}},
}


async def test_a_state_is_taken_once(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await state_record(client, APP).update(lambda state: state.installed("web", "1.0.0", "sha256:a"))
        await client.create(OTHER)
        states = ListedStates()
        assert states.take(KEY) is None  # nothing was listed
        await states.read(client, {"default.shop"})
        secret = states.take(KEY)
        assert secret is not None
        assert decoded(secret).version == "1.0.0"
        assert states.take(KEY) is None
        assert states.take(ObjectKey(KEY.resource, "default", "own")) is None  # a Secret of a chart


async def test_a_record_is_made_from_the_list_once(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        written = state_record(client, APP)
        await written.update(lambda state: state.installed("web", "1.0.0", "sha256:a"))
        states = ListedStates()
        await states.read(client, {"default.shop"})
        await written.update(lambda state: state.installed("web", "2.0.0", "sha256:b"))
        assert (await states.record(client, APP)).state.version == "1.0.0"
        assert (await states.record(client, APP)).state.version == "2.0.0"
        await written.delete()
        assert (await states.record(client, APP)).state.version == ""


async def test_the_state_of_another_daemons_package_is_not_stored(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await state_record(client, APP).update(lambda state: state.installed("web", "1.0.0", "sha256:a"))
        states = ListedStates()
        await states.read(client, {"default.other"})
        assert states.take(KEY) is None
        await states.read(client, {"default.shop"})
        states.forget("default.other")
        states.forget("default.shop")  # the package was handed over to another daemon, and may come back
        assert states.take(KEY) is None


async def test_a_state_that_was_listed_long_ago_is_read_again(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await state_record(client, APP).update(lambda state: state.installed("web", "1.0.0", "sha256:a"))
        states = ListedStates()
        await states.read(client, {"default.shop"})
        await trio.sleep(FRESH_S)
        assert states.take(KEY) is None


async def test_a_restored_record_is_updated_by_compare_and_set(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        first, states = state_record(client, APP), ListedStates()
        await first.update(lambda state: state.installed("web", "1.0.0", "sha256:a"))
        await states.read(client, {"default.shop"})
        await first.update(lambda state: state.startup_done("hooks/a.sh"))
        secret = states.take(KEY)
        assert secret is not None
        second = state_record(client, APP)
        second.restore(secret)
        await second.update(lambda state: state.startup_done("hooks/b.sh"))
        assert (await state_record(client, APP).read()).started == {"hooks/a.sh", "hooks/b.sh"}


async def test_without_the_list_each_package_reads_its_own_state(caplog: pytest.LogCaptureFixture) -> None:
    states = ListedStates()
    async with open_client(Connection("http://127.0.0.1:9")) as client:
        await states.read(client, {"default.shop"})
    assert "cannot list the states of packages" in caplog.text
    assert states.take(KEY) is None
