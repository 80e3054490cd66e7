"""Baselines: the server's answers to our applies, in a compact form. They show whether a watch event may be drift."""

import pytest

from tests.cluster.support.drift_bench import DEPLOYMENT, MANAGER, drift_bench, yaml_object
from wharfinger.cluster.objects.applied_objects import Applied, AppliedObjects, applied_of, mark_of
from wharfinger.cluster.objects.desired import Identity
from wharfinger.formats.json.value import JsonObject, as_object, canonical_json
from wharfinger.kube.field_sets import path_text

WEB = Identity("Deployment.apps", "prod", "web")


async def test_an_applied_deployment_is_stored_compactly() -> None:
    web = yaml_object(DEPLOYMENT)
    async with drift_bench() as bench:
        applied = await bench.apply(web)
        live = await bench.ours.get(await bench.key(web))

        assert applied.is_marked(live, MANAGER)
        assert applied.changed_values(live) == []
        assert len(applied.fields) + len(applied.values) < len(canonical_json(live)) / 5

        spec = {**as_object(live["spec"], "spec"), "replicas": 7}
        other: JsonObject = {**live, "spec": spec}
        assert applied.is_marked(other, MANAGER), "the mark covers owners, not values"
        assert [path_text(path) for path in applied.changed_values(other)] == [".spec.replicas"]

        await bench.patch("ed", web, {"status": {"replicas": 3}}, "status")
        assert applied.is_marked(await bench.ours.get(await bench.key(web)), MANAGER)
        await bench.patch("ed", web, {"spec": {"replicas": 9}})
        assert not applied.is_marked(await bench.ours.get(await bench.key(web)), MANAGER)


async def test_a_secret_applied_as_string_data_is_marked_by_its_data() -> None:
    secret = yaml_object("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: prod}, stringData: {a: x}}")
    async with drift_bench() as bench:
        applied = await bench.apply(secret)
        await bench.patch("ed", secret, {"data": {"a": "eXk="}})

        assert not applied.is_marked(await bench.ours.get(await bench.key(secret)), MANAGER)


def obj(uid: str = "u", version: str = "5") -> JsonObject:
    return {"metadata": {"uid": uid, "resourceVersion": version}}


def test_objects_without_an_entry_have_no_mark() -> None:
    assert mark_of(obj(), MANAGER) == 0
    assert applied_of(obj(), MANAGER).is_marked(obj(), MANAGER)
    assert not applied_of(obj(), MANAGER).is_marked(obj("other"), MANAGER)
    assert (
        applied_of({"metadata": {"managedFields": [{"manager": MANAGER, "operation": "Apply"}]}}, MANAGER).values == b""
    )


@pytest.mark.parametrize(
    ("mine", "theirs", "newer"),
    [("9", "10", False), ("10", "9", True), ("9", "9", False), ("x", "9", False), ("9", "", False)],
)
def test_numeric_versions_are_compared(mine: str, theirs: str, *, newer: bool) -> None:
    assert applied_of(obj(version=mine), MANAGER).is_newer_than(obj(version=theirs)) is newer


def test_objects_with_equal_fields_share_them() -> None:
    one, two = applied_of(obj(), MANAGER), applied_of(obj(version="6"), MANAGER)
    assert one.fields is two.fields
    assert one.owned is two.owned


def test_applied_objects_are_recorded_and_forgotten() -> None:
    objects = AppliedObjects(MANAGER)
    told: list[Identity] = []
    objects.record(WEB, obj())
    objects.listen(told.append)
    objects.record(WEB, obj(version="6"))

    kept = objects.get(WEB)
    assert isinstance(kept, Applied)
    assert (kept.resource_version, len(objects), told) == ("6", 1, [WEB])
    objects.forget(WEB)
    objects.forget(WEB)
    assert (objects.get(WEB), len(objects)) == (None, 0)


def test_an_object_with_fields_of_another_manager_is_shared_until_an_answer_shows_otherwise() -> None:
    objects = AppliedObjects(MANAGER)
    alone = obj()
    shared: JsonObject = {
        "metadata": {"uid": "u", "resourceVersion": "5", "managedFields": [{"manager": "helm", "fieldsV1": {}}]}
    }
    objects.noticed(WEB, shared)
    assert not objects.is_shared(WEB), "nothing was applied"
    objects.record(WEB, alone)
    assert not objects.is_shared(WEB)
    objects.noticed(WEB, shared)
    objects.noticed(WEB, alone)  # events of earlier states may arrive late
    assert objects.is_shared(WEB)
    objects.record(WEB, alone)
    assert not objects.is_shared(WEB)
    objects.record(WEB, shared)
    assert objects.is_shared(WEB)
    objects.forget(WEB)
    assert not objects.is_shared(WEB)
