"""Commits. Several answers wait for one commit. Uncommitted writes are never visible, and are undone if the commit fails."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.control_plane.support.bench import Reply, send, watching
from tests.control_plane.support.samples import NOW, definition
from wharfinger.control_plane.http.commits import Commits
from wharfinger.control_plane.service import ControlPlane, assemble
from wharfinger.control_plane.storage.interface import Collection, CommitError, Key
from wharfinger.control_plane.storage.sqlite import open_sqlite_storage
from wharfinger.formats.json.value import JsonObject, find_object

MAPS = "/api/v1/namespaces/default/configmaps"


class Rig:
    """A control plane that stores its objects in a file. Its commits are counted, and can be made to fail."""

    def __init__(self, opened: ExitStack, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.storage = opened.enter_context(open_sqlite_storage(path))
        self.plane: ControlPlane = assemble(self.storage, lambda: NOW, None, None)
        self.commits = 0
        commit = self.plane.backend.commit

        def counted() -> None:
            self.commits += 1
            commit()

        monkeypatch.setattr(self.plane.backend, "commit", counted)

    def fill_the_disk(self) -> None:
        self.storage._database.execute("PRAGMA max_page_count = 1")

    def make_room(self) -> None:
        self.storage._database.execute("PRAGMA max_page_count = 1000000")

    async def make(self, name: str) -> Reply:
        body: JsonObject = {"metadata": {"name": name}, "data": {"x": "y" * 200_000}}
        return await send(self.plane, "POST", MAPS, body)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    with ExitStack() as opened:
        yield Rig(opened, tmp_path / "data.db", monkeypatch)


async def test_concurrent_requests_share_a_commit_that_reads_wait_for(rig: Rig) -> None:
    codes: list[int] = []

    async def make(name: str) -> None:
        codes.append((await rig.make(name)).code)
        assert rig.storage.committed == rig.storage.revision

    async def look() -> None:
        listed = await send(rig.plane, "GET", MAPS)
        assert rig.storage.committed == rig.storage.revision
        codes.append(listed.code)

    async with trio.open_nursery() as nursery:
        for name in ("a", "b", "c"):
            nursery.start_soon(make, name)
        nursery.start_soon(look)

    assert sorted(codes) == [200, 201, 201, 201]
    assert rig.commits == 1


async def test_writes_that_cannot_be_committed_are_undone_and_reported(rig: Rig) -> None:
    assert (await rig.make("before")).code == 201
    async with watching(rig.plane, f"{MAPS}?watch=1&resourceVersion={rig.storage.revision}") as events:
        rig.fill_the_disk()
        replies: list[Reply] = []

        async def make(name: str) -> None:
            replies.append(await rig.make(name))

        async with trio.open_nursery() as nursery:
            for name in ("a", "b"):
                nursery.start_soon(make, name)

        assert [reply.code for reply in replies] == [500, 500]
        assert (await send(rig.plane, "GET", f"{MAPS}/a")).code == 404
        rig.make_room()
        assert (await rig.make("c")).code == 201
        assert b'"name":"c"' in await anext(events)


async def test_a_failed_commit_of_another_writer_is_reported(rig: Rig) -> None:
    backend = rig.plane.backend
    commits = Commits(backend)
    rig.fill_the_disk()
    backend.put(Key(Collection("", "configmaps"), "default", "a"), {"metadata": {"name": "a"}, "x": "y" * 200_000})
    failed: list[str] = []

    async def settle() -> None:
        try:
            await commits.settle()
        except CommitError as error:
            failed.append(str(error))

    over = commits._over = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(settle)
        await wait_all_tasks_blocked()
        with pytest.raises(CommitError):
            backend.commit()
        over.set()

    assert failed == ["the writes could not be committed and were undone; check the disk"]
    assert backend.settled


async def test_a_definition_that_cannot_be_committed_is_not_served(rig: Rig) -> None:
    rig.fill_the_disk()
    body = definition()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    large: JsonObject = {**body, "metadata": {**find_object(body, "metadata"), "annotations": {"x": "y" * 200_000}}}

    assert (await send(rig.plane, "POST", path, large)).code == 500
    assert rig.plane.backend.catalog.find("example.com", "v1", "widgets") is None
    rig.make_room()
    assert (await send(rig.plane, "POST", path, body)).code == 201
    assert rig.plane.backend.catalog.find("example.com", "v1", "widgets") is not None
