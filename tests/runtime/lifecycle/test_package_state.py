"""The state of a package, which outlives the process: it is written by compare-and-set, and read by the next process."""

import base64
import binascii
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.values import json_objects, json_values
from tests.scale import scaled
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.errors import NotFoundError, UnreachableError
from wharfinger.cluster.api.http_client import HttpClusterClient, open_client
from wharfinger.cluster.records.release import STAMP_LABEL, Release
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.lifecycle.applied_stamp import stamp_of
from wharfinger.runtime.lifecycle.package_state import (
    MAX_STATE,
    STATE_TYPE,
    PackageState,
    PackageStateError,
    decoded,
    encoded,
    state_record,
)
from wharfinger.runtime.resources.identity import AppId, IdentityError, ModuleId
from wharfinger.runtime.resources.resources import SECRET

APP = AppId("default", "shop")
KEY = ObjectKey(SECRET, "default", "wharfinger.app.shop")


@asynccontextmanager
async def open_cluster() -> AsyncIterator[HttpClusterClient]:
    async with (
        open_control_plane(simulate=False) as control_plane,
        open_client(Connection(LOCAL, bearer("")), transport=control_plane.transport()) as client,
    ):
        yield client


async def test_a_stored_state_is_read_by_the_next_process() -> None:
    async with open_cluster() as client:
        record = state_record(client, APP)
        assert await record.read() == PackageState()
        await record.update(lambda state: state.installed("https://r.example/p web", "1.0.0", "sha256:a"))
        await record.update(lambda state: state.startup_done("hooks/a.sh"))
        await record.update(lambda state: state.patched(({"op": "add", "path": "/web/a", "value": 1},)))
        assert await state_record(client, APP).read() == record.state
        secret = await client.get(KEY)
        assert (find_str(secret, "type"), find_str(secret, "metadata", "labels", "wharfinger.dev/package")) == (
            STATE_TYPE,
            "default.shop",
        )


async def test_an_unchanged_state_is_not_written() -> None:
    async with open_cluster() as client:
        record = state_record(client, APP)
        await record.read()
        await record.update(lambda state: state)
        version = find_str(await client.get(KEY), "metadata", "resourceVersion")
        await record.update(lambda state: state)
        assert find_str(await client.get(KEY), "metadata", "resourceVersion") == version


async def test_changes_of_another_process_are_retained() -> None:
    async with open_cluster() as client:
        ours, theirs = state_record(client, APP), state_record(client, APP)
        await ours.read()
        await theirs.read()
        await theirs.update(lambda state: state.startup_done("theirs"))
        await ours.update(lambda state: state.startup_done("ours"))
        assert (await theirs.read()).started == {"ours", "theirs"}


async def test_a_later_revision_shows_the_applied_inputs() -> None:
    def stamped(number: int, inputs: str, values: str) -> Release:
        document: JsonObject = {"version": number, "info": {"status": "deployed"}}
        return Release(document, {STAMP_LABEL: f"{number}.{stamp_of(inputs, values)}"}, "wharfinger")

    async with open_cluster() as client:
        record = state_record(client, APP)
        record.compare([stamped(1, "a", "b")])
        assert record.state == PackageState()  # either no state was written yet, or a user deleted it as a reset
        await record.update(lambda state: state.applied_as("c", "d", "e", 2))
        record.compare([stamped(1, "a", "b"), stamped(2, "a", "b")])
        assert record.state.is_applied("c", "d")
        record.compare([stamped(2, "a", "b"), stamped(3, "f", "g")])
        assert (record.state.is_applied("f", "g"), record.state.is_of("c")) == (True, False)
        assert (await state_record(client, APP).read()).is_applied("c", "d")  # `compare` wrote nothing
        other = state_record(client, APP)
        await other.read()
        await other.update(lambda state: state.startup_done("theirs"))
        await record.update(lambda state: state.startup_done("ours"))  # there is a conflict, so the state is read again
        found = await state_record(client, APP).read()
        assert found.is_applied("f", "g")
        assert found.revision == 3
        assert found.started == {"ours", "theirs"}


async def test_a_state_deleted_by_a_user_is_written_again() -> None:
    async with open_cluster() as client:
        record = state_record(client, APP)
        await record.read()
        await record.update(lambda state: state.startup_done("a"))
        await client.delete(KEY)
        await record.update(lambda state: state.startup_done("b"))
        assert (await state_record(client, APP).read()).started == {"a", "b"}


async def test_in_a_terminating_namespace_no_record_is_created() -> None:
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}}
    held: JsonObject = {"name": "held", "namespace": "going", "finalizers": ["example.com/hold"]}
    async with open_cluster() as client:
        await client.create(namespace)
        await client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": held}
        )  # this object keeps the namespace in Terminating
        record = state_record(client, AppId("going", "shop"))
        await record.read()
        await record.update(done("a"))
        await client.delete(ObjectKey(await client.resource_type("v1", "Namespace"), "", "going"))
        with suppress(NotFoundError):
            await client.delete(record.key)
        await record.update(done("b"))
        assert record.state.started == {"a", "b"}
        with pytest.raises(NotFoundError):
            await client.get(record.key)


def done(hook: str) -> Callable[[PackageState], PackageState]:
    return lambda state: state.startup_done(hook)


class LosesAnswers:
    """A client that passes calls on. While ``losing`` is true, writes succeed but their answers are lost."""

    def __init__(self, client: HttpClusterClient) -> None:
        self.client = client
        self.losing = False

    async def get(self, key: ObjectKey) -> JsonObject:
        return await self.client.get(key)

    async def create(self, obj: JsonObject) -> JsonObject:
        return self._lost(await self.client.create(obj))

    async def replace(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        return self._lost(await self.client.replace(obj, subresource=subresource))

    def _lost(self, answer: JsonObject) -> JsonObject:
        if self.losing:
            raise UnreachableError("no answer")
        return answer


async def test_a_write_with_a_lost_answer_does_not_block_the_record() -> None:
    async with open_cluster() as client:
        losing = LosesAnswers(client)
        record = state_record(cast("ClusterClient", losing), APP)
        await record.read()
        for word in ("created", "replaced"):
            losing.losing = True
            with pytest.raises(UnreachableError):
                await record.update(done(word))
            losing.losing = False
            await record.update(done(f"after {word}"))
        started = (await state_record(client, APP).read()).started
        assert started == {"created", "after created", "replaced", "after replaced"}


async def test_a_record_can_be_deleted_twice() -> None:
    async with open_cluster() as client:
        record = state_record(client, APP)
        await record.read()
        await record.update(lambda state: state.startup_done("a"))
        await record.delete()
        await record.delete()
        with pytest.raises(NotFoundError):
            await client.get(KEY)
        assert record.state == PackageState()


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "data",
    [
        "",
        base64_of("no json"),
        base64_of("[1]"),
        base64_of('{"started": [1]}'),
        base64_of('{"schema": "2"}'),
        base64_of('{"schema": 0}'),
    ],
)
async def test_a_damaged_state_is_reported_with_a_remedy(data: str) -> None:
    async with open_cluster() as client:
        body = encoded(KEY, "default.shop", PackageState())
        body["data"] = {"state.json": data}
        await client.create(body)
        with pytest.raises(PackageStateError, match=r"wharfinger\.app\.shop.*delete the Secret") as caught:
            await state_record(client, APP).read()
        assert not caught.value.transient


def test_another_digest_resets_the_startup_hooks() -> None:
    state = PackageState().installed("s", "1", "sha256:a").startup_done("h")
    assert state.installed("s", "1", "sha256:a").started == {"h"}
    assert state.installed("s", "2", "sha256:b").started == frozenset()
    assert state.patched(({"op": "add"},)).installed("s", "2", "sha256:b").patches == ({"op": "add"},)


async def test_kinds_that_hooks_may_have_created_are_stored_until_collected() -> None:
    async with open_cluster() as client:
        record = state_record(client, APP)
        await record.update(lambda state: state.may_have_made(["v1/Secret"]).may_have_made(["v1/ConfigMap"]))
        again = state_record(client, APP)
        assert (await again.read()).made == {"v1/Secret", "v1/ConfigMap"}
        assert again.state.started_anew().installed("s", "2", "sha256:b").made == again.state.made
        await again.update(lambda state: state.collected())
        assert (await record.read()).made == frozenset()


def test_too_much_state_is_refused_before_it_is_sent() -> None:
    huge = PackageState(patches=({"op": "add", "path": "/a", "value": "x" * MAX_STATE},))
    with pytest.raises(PackageStateError, match="more than a Secret can have"):
        encoded(KEY, "default.shop", huge)


async def test_the_state_is_stored_in_a_secret_of_the_package() -> None:
    async with open_cluster() as client:
        kept = state_record(client, ModuleId("ingress", "edge")).key
        assert kept == ObjectKey(SECRET, "edge", "wharfinger.module.ingress")
        with pytest.raises(IdentityError):
            state_record(client, AppId("prod", "a" * 60))


async def test_a_state_of_a_newer_program_is_refused_and_not_changed() -> None:
    async with open_cluster() as client:
        body = encoded(KEY, "default.shop", PackageState())
        body["data"] = {"state.json": base64_of('{"schema": 6, "digest": "sha256:a", "future": true}')}
        await client.create(body)
        record = state_record(client, APP)
        with pytest.raises(PackageStateError, match="its schema is 6, but this program reads only 1 to 5") as caught:
            await record.read()
        assert not caught.value.transient
        with pytest.raises(PackageStateError):
            await record.update(done("a"))
        assert (await client.get(KEY))["data"] == body["data"]


async def test_a_state_of_the_first_version_is_migrated() -> None:
    """The state was written by a program that knew only the first version of the format."""
    first = (
        '{"digest":"sha256:a","patches":[{"op":"add","path":"/web/a","value":1}],'
        '"source":"https://r.example/p web","started":["h"],"version":"1.0.0"}'
    )
    async with open_cluster() as client:
        body = encoded(KEY, "default.shop", PackageState())
        body["data"] = {"state.json": base64_of(first)}
        await client.create(body)
        record = state_record(client, APP)
        assert await record.read() == PackageState(
            "https://r.example/p web",
            "1.0.0",
            "sha256:a",
            frozenset({"h"}),
            ({"op": "add", "path": "/web/a", "value": 1},),
        )
        await record.update(lambda state: state.applied_as("f", "v", "s"))
        written = json.loads(base64.b64decode(find_str(await client.get(KEY), "data", "state.json")))
        assert written == {
            **json.loads(first),
            "schema": 5,
            "synchronized": {},
            "made": [],
            "applied": "f",
            "values": "v",
            "settings": "s",
            "configured": None,
            "configuredVersion": 0,
            "withdrawn": False,
            "forced": "",
            "reset": "",
            "ready": None,
            "rollback": None,
            "rollbackAsked": "",
            "revision": 0,
        }


def test_a_reset_forgets_everything_but_the_installed_package() -> None:
    state = PackageState("s", "1", "sha256:a").startup_done("h").patched(({"op": "add"},)).applied_as("f", "v", "t")
    assert (state.applied, state.values, state.settings) == ("f", "v", "t")
    assert state.started_anew() == PackageState("s", "1", "sha256:a")


def test_a_reset_request_resets_the_state_once() -> None:
    state = PackageState("s", "1", "sha256:a").startup_done("h").applied_as("f", "v", "t")
    forced = state.heard(forced="10:00", reset="")
    assert forced == replace(state, forced="10:00")
    reset = forced.heard(forced="10:00", reset="11:00")
    assert (reset.started, reset.applied, reset.reset) == (frozenset(), "", "11:00")
    again = reset.startup_done("h")
    assert again.heard(forced="10:00", reset="11:00") == again


def test_valid_settings_are_stored_and_none_differs_from_empty() -> None:
    found: list[JsonObject | None] = [{"a": [1]}, {}, None]
    for settings in found:
        state = PackageState().configured_as(settings, 3)
        assert (state.configured, state.configured_version) == (settings, 3)
        assert decoded(encoded(KEY, "p", state)) == state


def test_stored_settings_belong_to_a_package_and_not_to_a_version() -> None:
    state = PackageState().installed("https://r.example/p web", "1", "sha256:a").configured_as({"a": 1}, 1)
    assert state.installed("https://other.example web", "2", "sha256:b").configured == {"a": 1}
    assert state.installed("https://r.example/p shop", "1", "sha256:c").configured is None


def test_an_uninstalled_package_stays_withdrawn_until_objects_are_placed() -> None:
    gone = PackageState().applied_as("f", "v", "t").uninstalled()
    assert gone.withdrawn
    assert decoded(encoded(KEY, "p", gone)) == gone
    assert gone.installed("s", "2", "sha256:b").withdrawn
    assert not gone.placed().withdrawn


@given(
    st.builds(
        PackageState,
        *[st.text()] * 3,
        st.frozensets(st.text(), max_size=3),
        st.lists(json_values(), max_size=3).map(tuple),
        *[st.text()] * 3,
        st.none() | json_objects(),
        st.integers(0, 1_000),
        st.booleans(),
        *[st.text()] * 2,
    )
)
def test_a_state_survives_a_round_trip_through_its_secret(state: PackageState) -> None:
    secret: JsonObject = encoded(KEY, "p", state)
    assert decoded(secret) == state


WHOLE = encoded(
    KEY,
    "p",
    PackageState("s", "1", "sha256:a", frozenset({"h"}), ({"op": "add", "path": "/a", "value": [1]},), "f", "v", "t")
    .configured_as({"a": 1}, 2)
    .uninstalled()
    .heard(forced="10:00", reset=""),
)


def test_any_content_of_the_secret_is_a_state_or_a_declared_error() -> None:
    """The test changes, cuts and doubles bytes, in the document and in its base64 form."""
    chance = random.Random(13)  # noqa: S311 - the same inputs every time
    text = find_str(WHOLE, "data", "state.json")
    read = refused = 0
    for number in range(scaled(100_000, 500)):
        inside = number % 2 == 0
        data = bytearray(base64.b64decode(text) if inside else text.encode())
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(data) + 1)
            data[at : at + chance.randrange(4)] = chance.choice(
                [chance.randbytes(1), b"", b'"', b"{}", b"[1]", b"null", b"1e999", data[:at]]
            )
        value = base64.b64encode(data).decode() if inside else data.decode(errors="surrogateescape")
        try:
            state = decoded({"data": {"state.json": value}})
        except (FormatError, binascii.Error):
            refused += 1
        else:
            assert decoded(encoded(KEY, "p", state)) == state
            read += 1
    assert min(read, refused) > 0, (read, refused)
