"""The release engine with the real client and the control plane in memory, in virtual time."""

from collections.abc import Callable
from dataclasses import replace

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.cluster.support.client_contract import key, widget_crd
from tests.cluster.support.release_bench import CLAIM, KEEP, WIDGET, Bench, bench, cluster, open_engine
from tests.cluster.support.release_requests import CHART, config_map, deployment, objects_of, request
from wharfinger.cluster.api.errors import ClusterError, InvalidError, ReleaseError, UnknownKindError, UnreachableError
from wharfinger.cluster.fields.conflicts import FieldConflictError
from wharfinger.cluster.objects.ownership import ForeignObjectError
from wharfinger.cluster.records.release import Release, ReleaseStatus, new_release
from wharfinger.cluster.records.release_store import ReleaseBusyError, ReleaseStore
from wharfinger.cluster.releases.late_tidying import TIDY_S
from wharfinger.cluster.releases.request import Outcome, ReleaseRequest
from wharfinger.cluster.releases.upgrade import NamespaceMissingError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.resource import ObjectKey

# -- installing and upgrading


async def test_an_install_applies_and_records_the_objects(autojump_clock: MockClock) -> None:
    async with bench() as at:
        result = await at.engine.upgrade(request(config_map("a", v="1"), deployment("web"), size=3))
        assert (result.outcome, result.revision) == (Outcome.INSTALLED, 1)
        assert [str(one) for one in result.objects] == ["ConfigMap default/a", "Deployment.apps default/web"]
        live = await at.client.get(key("a"))
        assert live["data"] == {"v": "1"}
        assert find(live, "metadata", "labels") == {
            "app.kubernetes.io/managed-by": "Helm",
            "wharfinger.dev/release": "web",
        }
        assert find(live, "metadata", "annotations") == {
            "meta.helm.sh/release-name": "web",
            "meta.helm.sh/release-namespace": "default",
        }
        (record,) = await at.engine.history("web", "default")
        assert (record.status, record.description) == (ReleaseStatus.DEPLOYED, "Install complete")
        assert (record.values, record.chart, record.holder) == ({"size": 3}, CHART, "wharfinger")


async def test_the_record_is_written_before_and_updated_after_the_objects(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("b"), config_map("a")))
        assert at.transport.writes[0] == "POST secrets"
        assert sorted(at.transport.writes[1:3]) == ["PATCH a", "PATCH b"]
        assert at.transport.writes[3:] == ["PUT sh.helm.release.v1.web.v1"]


async def test_an_unchanged_upgrade_makes_no_revision_and_no_request(autojump_clock: MockClock) -> None:
    async with bench() as at:
        wanted = request(config_map("a", v="1"), config_map("b", v="1"))
        await at.engine.upgrade(wanted)
        await wait_all_tasks_blocked()
        at.transport.requests.clear()
        result = await at.engine.upgrade(request(config_map("a", v="1"), config_map("b", v="1")))
        assert (result.outcome, result.revision) == (Outcome.UNCHANGED, 1)
        assert [str(one) for one in result.objects] == ["ConfigMap default/a", "ConfigMap default/b"]
        assert at.engine.unchanged(wanted) == result
        assert at.transport.requests == []


async def test_a_deleted_object_is_restored_by_itself(autojump_clock: MockClock) -> None:
    async with bench() as at:
        wanted = request(config_map("a", v="1"), config_map("b", v="1"))
        await at.engine.upgrade(wanted)
        before = await at.client.get(key("a"))
        await at.client.delete(key("b"))
        await trio.sleep(5)
        assert set(await at.config_maps()) == {"a", "b"}
        assert await at.client.get(key("a")) == before
        assert at.engine.unchanged(wanted) is not None


@pytest.mark.slow
async def test_after_a_restart_an_unchanged_upgrade_writes_only_missing_objects(
    autojump_clock: MockClock,
) -> None:
    wanted = request(config_map("a", v="1"), config_map("b", v="1"))
    async with cluster() as (client, transport):
        async with open_engine(client) as engine:
            await engine.upgrade(wanted)
        await client.delete(key("b"))
        transport.requests.clear()
        async with open_engine(client) as engine:
            assert (await engine.upgrade(wanted)).outcome is Outcome.UNCHANGED
            assert transport.writes == ["PATCH b"]
            await trio.sleep(10_000)
            assert transport.writes == ["PATCH b"]


@pytest.mark.parametrize(
    "change",
    [
        lambda wanted: replace(wanted, values={"x": 1}),
        lambda wanted: replace(wanted, chart={**CHART, "version": "2.0.0"}),
        lambda wanted: replace(wanted, labels={"team": "a"}),
        lambda wanted: replace(wanted, base=b"of this"),
    ],
)
async def test_every_changed_input_makes_a_revision(
    change: Callable[[ReleaseRequest], ReleaseRequest], autojump_clock: MockClock
) -> None:
    async with bench() as at:
        wanted = request(config_map("a"))
        await at.engine.upgrade(wanted)
        changed = change(wanted)
        assert (await at.engine.upgrade(changed)).outcome is Outcome.UPGRADED
        await trio.sleep(TIDY_S + 1)
        assert await at.statuses() == ["1 superseded Install complete", "2 deployed Upgrade complete"]


async def test_a_mark_is_added_to_the_existing_revision(autojump_clock: MockClock) -> None:
    wanted = replace(request(config_map("a")), labels={"team": "a"}, base=b"of this")
    async with cluster() as (client, transport):
        async with open_engine(client) as engine:
            await engine.upgrade(wanted)
        async with open_engine(client) as engine:
            transport.requests.clear()
            marked = replace(wanted, marks={"mark": "one"})
            for change, writes in ((marked, 1), (marked, 1), (replace(wanted, marks={"mark": "two"}), 2)):
                result = await engine.upgrade(change)
                (record,) = await engine.history("web", "default")
                assert (result.outcome, result.revision) == (Outcome.UNCHANGED, 1)
                assert (record.labels, record.base) == ({"team": "a", **change.marks}, b"of this")
                assert transport.writes == ["PUT sh.helm.release.v1.web.v1"] * writes
            assert (await engine.upgrade(replace(marked, labels={"team": "b"}))).revision == 2


async def test_a_failed_mark_is_retried(autojump_clock: MockClock) -> None:
    """A mark is a label of the record. A changed mark is written even if the first attempt times out or causes a conflict."""
    conflict = httpx.Response(409, json={"reason": "Conflict", "code": 409})
    for fault in (httpx.ReadTimeout("too slow"), conflict):
        async with bench() as at:
            wanted = request(config_map("a"))
            await at.engine.upgrade(wanted)
            faults: list[Exception | httpx.Response] = [fault]

            def once(
                asked: httpx.Request, faults: list[Exception | httpx.Response] = faults
            ) -> Exception | httpx.Response | None:
                return faults.pop() if faults and asked.method == "PUT" else None

            at.transport.fault = once
            await at.engine.upgrade(replace(wanted, marks={"mark": "one"}))
            (record,) = await at.engine.history("web", "default")
            assert (faults, record.labels, record.revision) == ([], {"mark": "one"}, 1)


async def test_a_mark_is_not_added_to_a_users_revision(autojump_clock: MockClock) -> None:
    async with bench() as at:
        wanted = request(config_map("a"))
        await at.engine.upgrade(wanted)
        theirs = replace((await at.engine.history("web", "default"))[0], holder="")
        store = ReleaseStore(at.client, at.clock)
        await store.create(replace(theirs, document={**theirs.document, "version": 2}))
        await trio.sleep(1)
        assert (await at.engine.upgrade(replace(wanted, marks={"mark": "one"}))).revision == 3
        assert [one.labels for one in await at.engine.history("web", "default")] == [{}, {}, {"mark": "one"}]


async def test_an_upgrade_prunes_removed_objects(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a"), config_map("b"), config_map("kept", KEEP), CLAIM))
        result = await at.engine.upgrade(request(config_map("a", v="2"), config_map("c")))
        assert set(await at.config_maps()) == {"a", "c", "kept"}
        assert [str(one) for one in result.pruned] == ["ConfigMap default/b"]
        assert {str(one): why for one, why in result.kept.items()} == {
            "ConfigMap default/kept": "helm.sh/resource-policy: keep",
            "PersistentVolumeClaim default/data": "PersistentVolumeClaim objects are only deleted on request",
        }


async def test_an_object_given_to_another_release_is_not_pruned(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a"), config_map("b")))
        annotations: JsonObject = {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "default"}
        await at.client.merge_patch(key("b"), {"metadata": {"annotations": annotations}})
        result = await at.engine.upgrade(request(config_map("a")))
        assert list(result.kept.values()) == ["belongs to default/other"]
        await at.client.merge_patch(key("b"), {"metadata": {"annotations": None}})
        result = await at.engine.upgrade(request(config_map("a", v="3")))
        assert set(await at.config_maps()) == {"a", "b"}


async def test_an_object_in_another_api_version_is_the_same_object(autojump_clock: MockClock) -> None:
    crd = widget_crd()
    spec = crd["spec"]
    assert isinstance(spec, dict)
    versions = spec["versions"]
    assert isinstance(versions, list)
    assert isinstance(versions[0], dict)
    spec["versions"] = [versions[0], {**versions[0], "name": "v2", "storage": False}]
    async with bench() as at:
        first = await at.engine.upgrade(request(WIDGET, crds=(crd,)))
        second = await at.engine.upgrade(request(WIDGET.replace("test/v1", "test/v2"), crds=(crd,)))
        assert first.objects != second.objects
        assert second.pruned == ()
        assert find(await at.client.get(second.objects[0]), "spec", "a") == 1


async def test_history_is_bounded(autojump_clock: MockClock) -> None:
    async with bench() as at:
        for number in range(13):
            await at.engine.upgrade(request(config_map("a", v=str(number))))
        await trio.sleep(TIDY_S + 1)
        revisions = await at.engine.history("web", "default")
        assert [one.revision for one in revisions] == list(range(4, 14))
        assert [one.status for one in revisions] == [*[ReleaseStatus.SUPERSEDED] * 9, ReleaseStatus.DEPLOYED]


# -- refusals, before anything is written


async def refused(at: Bench, *manifests: str, error: type[ClusterError], match: str) -> None:
    at.transport.requests.clear()
    with pytest.raises(error, match=match):
        await at.engine.upgrade(request(*manifests))
    assert at.transport.writes == []


async def test_objects_of_others_are_refused(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("theirs"), name="other"))
        await at.client.create(
            objects_of(config_map("nobodys"))[0] | {"metadata": {"name": "free", "namespace": "default"}}
        )
        await refused(
            at,
            config_map("a"),
            config_map("theirs"),
            error=ForeignObjectError,
            match="ConfigMap default/theirs belongs to the release default/other",
        )
        await refused(at, config_map("free"), error=ForeignObjectError, match="not part of any release")
        annotations: JsonObject = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "default"}
        await at.client.merge_patch(key("free"), {"metadata": {"annotations": annotations}})
        await at.engine.upgrade(request(config_map("free")))
        assert find(await at.client.get(key("free")), "metadata", "labels", "app.kubernetes.io/managed-by") == "Helm"


async def test_invalid_releases_are_refused_before_any_write(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await refused(at, config_map("a"), config_map("a"), error=ReleaseError, match="ConfigMap default/a twice")
        await refused(at, WIDGET, error=UnknownKindError, match="Widget of example.test/v1")
        await refused(
            at, "apiVersion: v1\nkind: ConfigMap\n", error=ReleaseError, match="without apiVersion, kind or name"
        )
        with pytest.raises(ReleaseError, match="at most 53"):
            await at.engine.upgrade(request(config_map("a"), name="Web"))
        with pytest.raises(NamespaceMissingError, match="the namespace nowhere does not exist; create it"):
            await at.engine.upgrade(replace(request(config_map("a")), namespace="nowhere"))
        assert at.transport.writes == []


async def test_a_namespace_being_deleted_is_refused(autojump_clock: MockClock) -> None:
    async with bench() as at:
        namespace = await at.client.resource_type("v1", "Namespace")
        metadata: JsonObject = {"name": "going", "finalizers": ["example.test/hold"]}
        await at.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        await at.client.delete(ObjectKey(namespace, "", "going"))
        with pytest.raises(NamespaceMissingError, match="is being deleted"):
            await at.engine.upgrade(replace(request(config_map("a")), namespace="going"))


# -- failures during an upgrade


async def test_a_failed_upgrade_retains_the_deployed_record_and_the_next_one_prunes(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", v="1")))
        bad = deployment("Not_A_Name")
        with pytest.raises(InvalidError):
            await at.engine.upgrade(request(config_map("a", v="2"), config_map("b"), bad))
        first, second = await at.engine.history("web", "default")
        assert (first.status, second.status) == (ReleaseStatus.DEPLOYED, ReleaseStatus.FAILED)
        assert second.description.startswith("Upgrade failed: apply Deployment.apps default/Not_A_Name")
        assert set(await at.config_maps()) == {"a", "b"}
        result = await at.engine.upgrade(request(config_map("a", v="1")))
        assert (result.outcome, result.revision) == (Outcome.UPGRADED, 3)
        assert [str(one) for one in result.pruned] == ["ConfigMap default/b"]
        assert [one.status.value for one in await at.engine.history("web", "default")] == [
            "superseded",
            "failed",
            "deployed",
        ]


async def test_conflicts_name_the_other_manager_unless_forced(autojump_clock: MockClock) -> None:
    edit = objects_of(config_map("a", v="9"))[0]
    edit["metadata"] = {"name": "a", "namespace": "default"}
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", w="1")))
        await at.client.apply(edit, field_manager="ann", force=True)
        with pytest.raises(FieldConflictError, match=r"ConfigMap default/a: \.data\.v belongs to 'ann'") as caught:
            await at.engine.upgrade(request(config_map("a", v="2", w="2")))
        assert not caught.value.transient
        assert (await at.client.get(key("a")))["data"] == {"v": "9", "w": "1"}
    async with bench(force=True) as at:
        await at.engine.upgrade(request(config_map("a", w="1")))
        await at.client.apply(edit, field_manager="ann", force=True)
        await at.engine.upgrade(request(config_map("a", v="2")))
        assert (await at.client.get(key("a")))["data"] == {"v": "2"}


async def test_cancelling_marks_the_record_failed(autojump_clock: MockClock) -> None:
    async with bench() as at:
        never = trio.Event()
        at.transport.fault = lambda asked: never if asked.method == "PATCH" else None
        with trio.move_on_after(5) as scope:
            await at.engine.upgrade(request(config_map("a")))
        assert scope.cancelled_caught
        assert await at.statuses() == ["1 failed Install failed: interrupted"]
        at.transport.fault = lambda _: None
        assert (await at.engine.upgrade(request(config_map("a")))).revision == 2


async def test_a_pending_record_of_an_unreachable_server_is_settled_later(autojump_clock: MockClock) -> None:
    async with bench() as at:
        gone = httpx.ConnectError("refused")
        at.transport.fault = lambda asked: gone if asked.method in {"PATCH", "PUT"} else None
        with pytest.raises(UnreachableError):
            await at.engine.upgrade(request(config_map("a")))
        assert await at.statuses() == ["1 pending-install Initial install underway"]
        at.transport.fault = lambda _: None
        await at.engine.upgrade(request(config_map("a")))
        assert await at.statuses() == [
            "1 failed interrupted while pending-install: the daemon was ended",
            "2 deployed Upgrade complete",
        ]


async def test_a_record_that_could_not_be_superseded_is_superseded_later(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", v="1")))
        gone = httpx.ConnectError("refused")
        at.transport.fault = lambda asked: gone if asked.method == "PUT" and asked.url.path.endswith(".v1") else None
        with pytest.raises(UnreachableError):  # b is new: the record is written first and tidied at once
            await at.engine.upgrade(request(config_map("a", v="1"), config_map("b")))
        assert await at.statuses() == ["1 deployed Install complete", "2 deployed Upgrade complete"]
        at.transport.fault = lambda _: None
        again = request(config_map("a", v="1"), config_map("b"))
        assert (await at.engine.upgrade(again)).outcome is Outcome.UNCHANGED
        await trio.sleep(TIDY_S + 1)
        assert await at.statuses() == ["1 superseded Install complete", "2 deployed Upgrade complete"]


# -- other writers


def foreign_record(at: Bench, revision: int, status: ReleaseStatus) -> Release:
    return new_release(
        name="web",
        namespace="default",
        revision=revision,
        status=status,
        description="by hand",
        chart=CHART,
        values={},
        manifest=config_map("hand"),
        hooks=[],
        now=at.clock(),
    )


async def test_a_users_running_helm_is_waited_for_with_a_timeout(autojump_clock: MockClock) -> None:
    async with bench() as at:
        store = ReleaseStore(at.client, at.clock)
        await store.create(foreign_record(at, 1, ReleaseStatus.PENDING_INSTALL))
        with pytest.raises(ReleaseBusyError, match="a helm command is at work on revision 1") as caught:
            await at.engine.upgrade(request(config_map("a")))
        assert caught.value.transient
        with pytest.raises(ReleaseBusyError):
            await at.engine.uninstall("web", "default")
        await trio.sleep(601)
        assert (await at.engine.upgrade(request(config_map("a")))).revision == 2


async def test_a_revision_written_first_by_a_user_makes_the_upgrade_busy(autojump_clock: MockClock) -> None:
    async with bench() as at:
        store = ReleaseStore(at.client, at.clock)

        async def write_first() -> None:
            await wait_all_tasks_blocked()
            await store.create(foreign_record(at, 1, ReleaseStatus.DEPLOYED))
            release.set()

        release = trio.Event()
        held: list[str] = []

        def fault(asked: httpx.Request) -> trio.Event | None:
            if asked.method == "POST" and not held:
                held.append(asked.url.path)
                return release
            return None

        at.transport.fault = fault
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write_first)
            with pytest.raises(ReleaseBusyError, match="revision 1 was written by another process just now"):
                await at.engine.upgrade(request(config_map("a")))


async def test_an_unreadable_manifest_stops_the_upgrade(autojump_clock: MockClock) -> None:
    async with bench() as at:
        store = ReleaseStore(at.client, at.clock)
        record = foreign_record(at, 1, ReleaseStatus.DEPLOYED)
        await store.create(replace(record, document={**record.document, "manifest": "a: [" + "x" * 200_000}))
        with pytest.raises(ReleaseError, match="check `helm get manifest`"):
            await at.engine.upgrade(request(config_map("a")))


# -- definitions


async def test_definitions_are_applied_first_and_waited_for(autojump_clock: MockClock) -> None:
    async with bench(simulate=False) as at:
        result = await at.engine.upgrade(request(WIDGET, crds=(widget_crd(),)))
        assert [str(one) for one in result.objects] == ["Widget.example.test default/one"]
        crd = ObjectKey(
            await at.client.resource_type("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            "",
            "widgets.example.test",
        )
        assert "meta.helm.sh/release-name" not in str(await at.client.get(crd))
        done = await at.engine.uninstall("web", "default")
        assert [str(one) for one in done.deleted] == ["Widget.example.test default/one"]
        await at.client.get(crd)


async def test_definitions_in_the_manifest_are_applied_first(autojump_clock: MockClock) -> None:
    wanted = replace(request(WIDGET), objects=(*objects_of(WIDGET), widget_crd()))
    async with bench() as at:
        result = await at.engine.upgrade(wanted)
        assert [one.resource.kind for one in result.objects] == ["CustomResourceDefinition", "Widget"]
