"""The ControllerRevisions of workloads, and their deletion."""

from trio.testing import MockClock

from tests.control_plane.support.controller_harness import key, listed, open_cluster, settle, workload
from wharfinger.control_plane.controllers.workloads.revisions import revision_hashes, template_of
from wharfinger.formats.json.value import JsonObject


def test_the_template_is_read_from_a_revision() -> None:
    template: JsonObject = {"metadata": {}, "spec": {}}
    assert template_of({"data": {"spec": {"template": {**template, "$patch": "replace"}}}}) == template
    assert revision_hashes([{"metadata": {"labels": {"controller-revision-hash": "a"}}}, {}]) == {"a", ""}


async def test_old_revisions_are_deleted(autojump_clock: MockClock) -> None:
    async with open_cluster() as client:
        await client.create(workload("StatefulSet", "db", serviceName="db", revisionHistoryLimit=1))
        where = await key(client, "apps/v1", "StatefulSet", "db")
        for number in range(3):
            labels: JsonObject = {"a": "b", "number": str(number)}
            await client.merge_patch(where, {"spec": {"template": {"metadata": {"labels": labels}}}})
            await settle()
        found = await listed(client, "apps/v1", "ControllerRevision")
        assert sorted(str(one["revision"]) for one in found) == ["3", "4"]
