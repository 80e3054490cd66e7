"""Predictions of upgrades, on a cluster in memory. The corpus of charts is the subject of tests/corpus/test_prediction.py."""

from dataclasses import replace

import pytest
from trio.testing import MockClock

from tests.cluster.support.client_contract import key, widget_crd
from tests.cluster.support.release_bench import KEEP, WIDGET, Bench, bench
from tests.cluster.support.release_requests import config_map, objects_of, request
from wharfinger.cluster.objects.desired import DIGEST_ANNOTATION
from wharfinger.cluster.objects.ownership import ForeignObjectError
from wharfinger.cluster.releases.prediction import Change, Prediction, Source, as_stored
from wharfinger.cluster.releases.request import ReleaseRequest
from wharfinger.cluster.releases.upgrade import EmptyReleaseError, NamespaceMissingError
from wharfinger.formats.json.value import find

NAMESPACE = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n"
HOOK = (
    "apiVersion: v1\nkind: ConfigMap\n"
    "metadata: {name: h, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\ndata: {a: '1'}\n"
)


async def predicted(at: Bench, wanted: ReleaseRequest) -> Prediction:
    """Return a prediction, and check that it has changed no ConfigMap."""
    before = {name: obj["metadata"] for name, obj in (await at.config_maps()).items()}
    prediction = await at.engine.predict(wanted)
    assert {name: obj["metadata"] for name, obj in (await at.config_maps()).items()} == before
    return prediction


def shown(prediction: Prediction) -> dict[str, tuple[str, str]]:
    return {each.object: (each.change.value, each.by.value) for each in prediction.changes}


async def test_an_install_an_upgrade_and_a_removal_are_predicted(autojump_clock: MockClock) -> None:
    async with bench() as at:
        first = request(config_map("a", v="1"), config_map("b", v="1"), config_map("c", KEEP, v="1"))
        assert shown(await predicted(at, first)) == {
            f"ConfigMap default/{name}": ("create", "dry run") for name in ("a", "b", "c")
        }
        assert await at.statuses() == []
        await at.engine.upgrade(first)
        same = await predicted(at, first)
        assert {each.change for each in same.changes} == {Change.UNCHANGED}
        second = request(config_map("a", v="2"), config_map("new", v="1"))
        found = await predicted(at, second)
        assert shown(found) == {
            "ConfigMap default/a": ("change", "dry run"),
            "ConfigMap default/new": ("create", "dry run"),
            "ConfigMap default/b": ("delete", "rules"),
            "ConfigMap default/c": ("keep", "rules"),
        }
        (change,) = [each for each in found.changes if each.change is Change.CHANGE]
        assert (find(change.before, "data"), find(change.after, "data")) == ({"v": "1"}, {"v": "2"})
        assert (
            next(each.note for each in found.changes if each.change is Change.KEEP) == "helm.sh/resource-policy: keep"
        )
        await at.engine.upgrade(second)
        assert set(await at.config_maps()) == {"a", "c", "new"}


async def test_the_correction_of_drift_is_predicted(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", v="1")))
        at.engine.suspend(request(config_map("a")).owner)
        await at.client.merge_patch(key("a"), {"data": {"v": "9"}})
        (change,) = (await predicted(at, request(config_map("a", v="1")))).changes
        assert change.change is Change.CHANGE
        await at.client.delete(key("a"))
        (change,) = (await predicted(at, request(config_map("a", v="1")))).changes
        assert change.change is Change.CREATE


async def test_a_failing_apply_is_predicted_as_unknown(autojump_clock: MockClock) -> None:
    edit = objects_of(config_map("a", v="9"))[0]
    edit["metadata"] = {"name": "a", "namespace": "default"}
    async with bench() as at:
        await at.engine.upgrade(request(config_map("a", w="1")))
        await at.client.apply(edit, field_manager="ann", force=True)
        (change,) = (await predicted(at, request(config_map("a", v="2", w="2")))).changes
        assert change.change is Change.UNKNOWN
        assert "the apply would fail: ConfigMap default/a: .data.v belongs to 'ann'" in change.note


async def test_objects_that_cannot_be_dry_run_are_predicted_from_the_chart(autojump_clock: MockClock) -> None:
    async with bench() as at:
        inside = config_map("inside", "namespace: new")
        wanted = request(NAMESPACE, inside, WIDGET, crds=(widget_crd(),))
        found = await predicted(at, wanted)
        assert {name: by for name, (_, by) in shown(found).items()} == {
            "CustomResourceDefinition.apiextensions.k8s.io widgets.example.test": "dry run",
            "Namespace new": "dry run",
            "ConfigMap new/inside": "chart",
            "Widget.example.test default/one": "chart",
        }
        await at.engine.upgrade(wanted)
        assert {each.change for each in (await predicted(at, wanted)).changes} == {Change.UNCHANGED}
        other = widget_crd()
        other["metadata"] = {"name": "widgets.example.test", "labels": {"x": "y"}}
        changed = request(NAMESPACE, inside, WIDGET.replace("a: 1", "a: 2"), crds=(other,))
        last = {each.object: each for each in (await predicted(at, changed)).changes}["Widget.example.test default/one"]
        assert (last.change, last.by) == (Change.CHANGE, Source.CHART)
        assert find(last.after, "spec", "a") == 2


async def test_hooks_are_named_and_not_predicted(autojump_clock: MockClock) -> None:
    async with bench() as at:
        wanted = replace(request(config_map("a")), hooks=objects_of(HOOK))
        assert (await predicted(at, wanted)).notes == (
            "hook ConfigMap h: would run; what hooks change is not predicted",
        )
        await at.engine.upgrade(wanted)
        assert (await predicted(at, wanted)).notes == ()


async def test_requests_that_an_upgrade_refuses_are_refused(autojump_clock: MockClock) -> None:
    async with bench() as at:
        await at.engine.upgrade(request(config_map("theirs"), name="other"))
        with pytest.raises(ForeignObjectError):
            await at.engine.predict(request(config_map("theirs")))
        await at.engine.upgrade(request(config_map("a")))
        with pytest.raises(EmptyReleaseError):
            await at.engine.predict(request())
        with pytest.raises(NamespaceMissingError):
            await at.engine.predict(replace(request(config_map("a")), namespace="nowhere"))


def test_server_fields_are_excluded_from_the_comparison() -> None:
    obj = {"kind": "A", "metadata": {"name": "a", "uid": "1", "managedFields": []}, "status": {}}
    assert as_stored(obj) == {"kind": "A", "metadata": {"name": "a"}}  # type: ignore[arg-type]
    marked = {"kind": "A", "metadata": {"name": "a", "annotations": {DIGEST_ANNOTATION: "sha256:1", "b": "c"}}}
    assert as_stored(marked) == {"kind": "A", "metadata": {"name": "a", "annotations": {"b": "c"}}}  # type: ignore[arg-type]
