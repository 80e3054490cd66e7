"""Release heads: the revisions of all releases from one watch, without their content. Changes by other writers are reported."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.large_records import NOW, US, record
from tests.cluster.support.release_faults import TwoWays, two_ways
from tests.scale import scaled
from wharfinger.cluster.api.errors import UnreachableError
from wharfinger.cluster.api.raw_object import RawChange, RawObject
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.lease.fencing import NOBODY, Holder
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release import ReleaseStatus, to_secret
from wharfinger.cluster.records.release_heads import ForeignChange, ReleaseHeads, open_release_heads, read_head
from wharfinger.cluster.watch.shared_watches import open_shared_watches
from wharfinger.formats.json.value import JsonObject, JsonValue, find_object
from wharfinger.kube.resource import ObjectKey, ResourceType

WEB = Owner("web", "default")
SECRET = ResourceType("", "v1", "Secret", "secrets", namespaced=True)
THEM = Holder("daemon-2", 9, "default/other/uid-2")


def made(revision: int, status: str) -> str:
    """Return the expected report about a record that the client of these tests wrote."""
    return f"release default/web: revision {revision} was set to status {status} by a helm command (field manager wharfinger)"


@dataclass
class Bench:
    ways: TwoWays
    heads: ReleaseHeads
    told: list[str] = field(default_factory=list)

    async def settle(self) -> None:
        await wait_all_tasks_blocked(0.01)

    async def write(self, revision: int, status: ReleaseStatus, holder: Holder = NOBODY) -> JsonObject:
        """Write a record as another process."""
        return await self.ways.client.create(to_secret(record(revision, status=status, holder=holder), NOW))

    async def rewrite(self, revision: int, status: ReleaseStatus, holder: Holder = NOBODY) -> JsonObject:
        return await self.ways.client.replace(to_secret(record(revision, status=status, holder=holder), NOW))

    async def delete(self, revision: int) -> None:
        await self.ways.client.delete(ObjectKey(SECRET, "default", f"sh.helm.release.v1.web.v{revision}"))

    def shown(self) -> list[tuple[int, str]]:
        return [(head.revision, head.status.value) for head in self.heads.heads(WEB)]


@asynccontextmanager
async def bench(*before: int) -> AsyncIterator[Bench]:
    async with two_ways() as ways:
        for revision in before:
            await ways.client.create(to_secret(record(revision), NOW))
        async with open_shared_watches(ways.broken) as watches, open_release_heads(watches, US) as heads:
            at = Bench(ways, heads)
            heads.listen(lambda change: at.told.append(str(change)))
            assert not heads.synced
            await heads.wait_synced()
            yield at


async def test_heads_follow_the_labels(autojump_clock: MockClock) -> None:
    async with bench(10, 9, 2) as at:
        assert [head.revision for head in at.heads.heads(WEB)] == [2, 9, 10]
        newest = at.heads.newest(WEB)
        assert newest is not None
        assert (newest.revision, newest.status, newest.holder, newest.owner) == (10, ReleaseStatus.DEPLOYED, US, WEB)
        other = Owner("other", "default")
        assert (at.heads.heads(other), at.heads.newest(other), at.heads.state(other)) == ((), None, frozenset())
        assert at.told == [], "existing records are not reported"


async def test_changes_by_others_are_reported(autojump_clock: MockClock) -> None:
    async with bench(1) as at:
        await at.write(2, ReleaseStatus.PENDING_UPGRADE)
        await at.settle()
        assert at.told == [made(2, "pending-upgrade")]
        await at.rewrite(1, ReleaseStatus.SUPERSEDED)
        await at.rewrite(2, ReleaseStatus.DEPLOYED)
        await at.settle()
        assert at.told[1:] == [made(2, "deployed")]
        await at.write(3, ReleaseStatus.DEPLOYED, THEM)
        await at.settle()
        assert at.told[2:] == [
            "release default/web: revision 3 was set to status deployed by the Wharfinger daemon daemon-2"
        ]
        assert at.shown() == [(1, "superseded"), (2, "deployed"), (3, "deployed")]
        for revision in (1, 2, 3):
            await at.delete(revision)
        await at.settle()
        assert at.told[3:] == [
            "release default/web: its last record, revision 3, was deleted by a process that deleted all records of the release"
        ]
        assert (at.shown(), at.heads.state(WEB)) == ([], frozenset())


async def test_a_record_deleted_during_our_uninstall_is_not_reported(autojump_clock: MockClock) -> None:
    """When a namespace is deleted, a record may disappear before our uninstall deletes it.

    Helm must not be named as the author.
    """
    async with bench() as at:
        for holder, told in ((US, 0), (NOBODY, 1)):
            with at.heads.writing("default", "sh.helm.release.v1.web.v1") as wrote:
                wrote(await at.write(1, ReleaseStatus.UNINSTALLING, holder))
            await at.delete(1)
            await at.settle()
            assert len(at.told) == told


async def test_a_label_change_is_not_reported(autojump_clock: MockClock) -> None:
    async with bench(1) as at:
        before = at.heads.state(WEB)
        key = ObjectKey(SECRET, "default", "sh.helm.release.v1.web.v1")
        await at.ways.client.merge_patch(
            key, {"metadata": {"labels": {"team": "x"}, "annotations": {"wharfinger.dev/holder": None}}}
        )
        await at.settle()
        assert at.told == []
        assert at.heads.state(WEB) != before


async def test_deletion_and_recreation_of_a_release_are_reported(autojump_clock: MockClock) -> None:
    async with bench(1) as at:
        await at.delete(1)
        await at.write(1, ReleaseStatus.DEPLOYED)
        await at.delete(1)
        await at.write(1, ReleaseStatus.FAILED)
        await at.settle()
        by = "a process that deleted all records of the release"
        gone = f"release default/web: its last record, revision 1, was deleted by {by}"
        assert at.told == [gone, made(1, "deployed"), gone, made(1, "failed")]
        assert at.shown() == [(1, "failed")]


# -- our own writes


async def test_our_writes_are_known_at_once_and_not_reported(autojump_clock: MockClock) -> None:
    async with bench() as at:
        with at.heads.writing("default", "sh.helm.release.v1.web.v1") as wrote:
            secret = await at.write(1, ReleaseStatus.DEPLOYED)
            await at.settle()
            assert at.shown() == [], "evaluated when the write ends"
            wrote(secret)
            assert at.shown() == [(1, "deployed")]
        with at.heads.writing("default", "sh.helm.release.v1.web.v1") as wrote:
            wrote(await at.rewrite(1, ReleaseStatus.FAILED))
        await at.settle()
        with at.heads.writing("default", "sh.helm.release.v1.web.v1") as wrote:
            await at.delete(1)
            await at.settle()
            wrote(None)
        assert (at.told, at.shown()) == ([], [])


async def test_foreign_writes_during_ours_are_reported(autojump_clock: MockClock) -> None:
    async with bench() as at:
        with at.heads.writing("default", "sh.helm.release.v1.web.v1") as wrote:
            wrote(await at.write(1, ReleaseStatus.DEPLOYED))
            await at.rewrite(1, ReleaseStatus.FAILED)
            await at.settle()
        assert at.told == [made(1, "failed")]
        assert at.shown() == [(1, "failed")]


async def test_a_write_without_an_answer_is_attributed_by_its_holder(autojump_clock: MockClock) -> None:
    async with bench() as at:
        for revision, holder in ((1, US), (2, NOBODY)):
            with pytest.raises(UnreachableError), at.heads.writing("default", f"sh.helm.release.v1.web.v{revision}"):
                await at.write(revision, ReleaseStatus.DEPLOYED, holder)
                await at.settle()
                raise UnreachableError("the answer was lost")
        assert at.told == [made(2, "deployed")]
        assert at.shown() == [(1, "deployed"), (2, "deployed")]


def change(secret: JsonObject, kind: WatchType = WatchType.MODIFIED, *, state: bool = True) -> RawChange:
    metadata = find_object(secret, "metadata")
    key = ObjectKey(SECRET, "default", str(metadata["name"]))
    uid, version = str(metadata.get("uid", "")), str(metadata.get("resourceVersion", ""))
    return RawChange(kind, key, RawObject(key, uid, version, msgspec.json.encode(secret)) if state else None)


def secret_at(
    version: str, *, uid: str = "u", status: ReleaseStatus = ReleaseStatus.DEPLOYED, name: str = "web"
) -> JsonObject:
    release = record(status=status)
    secret = to_secret(replace(release, document={**release.document, "name": name}), NOW)
    metadata = find_object(secret, "metadata")
    place: JsonObject = {"name": "sh.helm.release.v1.web.v1", "uid": uid, "resourceVersion": version}
    return {**secret, "metadata": {**metadata, **place}}


def version_of(heads: ReleaseHeads, owner: Owner = WEB) -> str | None:
    newest = heads.newest(owner)
    return None if newest is None else newest.version


def test_a_watch_behind_our_writes_reverts_nothing() -> None:
    heads = ReleaseHeads(US)
    with heads.writing("default", "sh.helm.release.v1.web.v1") as wrote:
        wrote(secret_at("100"))
    heads.changed(change(secret_at("99", status=ReleaseStatus.PENDING_UPGRADE)))
    assert version_of(heads) == "100"
    heads.changed(change(secret_at("101")))
    assert version_of(heads) == "101"
    heads.changed(change(secret_at("7", uid="another")))
    assert version_of(heads) == "7"
    heads.changed(change(secret_at("9", uid="u"), WatchType.DELETED))
    assert version_of(heads) == "7", "that record was deleted before"
    heads.changed(change(secret_at("x", uid="another")))
    assert version_of(heads) == "x", "non-numeric versions are accepted in order of arrival"
    heads.changed(change(secret_at("x", uid="another")))
    heads.changed(change(secret_at("1"), WatchType.DELETED, state=False))
    assert version_of(heads) is None
    heads.changed(change(secret_at("1"), WatchType.DELETED))
    assert version_of(heads) is None


def test_a_secret_that_becomes_a_record_of_another_release_moves() -> None:
    heads = ReleaseHeads(US)
    heads.changed(change(secret_at("1")))
    heads.changed(change(secret_at("2", name="other")))
    assert (version_of(heads), version_of(heads, Owner("other", "default"))) == (None, "2")


def test_the_author_of_an_uninstall_is_determined() -> None:
    head = read_head(msgspec.json.encode(secret_at("1", status=ReleaseStatus.UNINSTALLING)))
    assert head is not None
    assert ForeignChange(replace(head, holder=NOBODY), gone=True).by == "a helm uninstall"
    assert ForeignChange(replace(head, holder=THEM), gone=True).by == "the Wharfinger daemon daemon-2"
    deployed = replace(head, holder=NOBODY, status=ReleaseStatus.DEPLOYED)
    assert ForeignChange(deployed, gone=True).by == "a process that deleted all records of the release"
    assert ForeignChange(replace(head, holder=NOBODY, manager="Helm")).by == "a helm command (field manager Helm)"


async def test_heads_without_a_watch_are_never_synced() -> None:
    heads = ReleaseHeads(US)
    await heads.wait_synced()
    assert not heads.synced


# -- reading


def text(**metadata: JsonValue) -> bytes:
    whole: JsonObject = {"name": "x", "namespace": "n", "labels": {"name": "web", "version": "3", "status": "deployed"}}
    return json.dumps({"metadata": {**whole, **metadata}, "data": {"release": "x"}}).encode()


def test_a_head_is_read_from_metadata() -> None:
    managers: JsonValue = [
        {"manager": "old", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {}}},
        {"manager": "Helm", "time": "2026-01-02T00:00:00Z"},
        {"manager": "timeless"},
    ]
    head = read_head(text(managedFields=managers, uid="u", resourceVersion="5"))
    assert head is not None
    assert (head.owner, head.revision, head.state, head.manager) == (Owner("web", "n"), 3, ("x", "u", "5"), "Helm")
    unknown = read_head(text(labels={"name": "web", "version": "3", "status": "odd"}))
    assert unknown is not None
    assert (unknown.status, unknown.holder) == (ReleaseStatus.UNKNOWN, NOBODY)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        text(labels={}),
        text(labels={"name": "web"}),
        text(labels={"name": "", "version": "1"}),
        *(text(labels={"name": "web", "version": version}) for version in ("x", "-1", "1.5", "²", "9" * 11)),
        text(labels={"name": 5}),
        text(name=None),
    ],
)
def test_secrets_that_are_not_records_are_ignored(said: bytes) -> None:
    assert read_head(said) is None
    heads = ReleaseHeads(US)
    key = ObjectKey(SECRET, "default", "x")
    heads.changed(RawChange(WatchType.ADDED, key, RawObject(key, "", "", said)))
    assert heads.heads(Owner("web", "n")) == ()


@settings(max_examples=scaled(5_000, 200))
@given(st.binary(max_size=80), st.integers(0, 400), st.integers(0, 10))
def test_reading_any_text_does_not_raise(piece: bytes, at: int, cut: int) -> None:
    whole = text(managedFields=[{"manager": "Helm", "time": "x"}], annotations={"wharfinger.dev/holder": "a"})
    read_head(whole[:at] + piece + whole[at + cut :])
