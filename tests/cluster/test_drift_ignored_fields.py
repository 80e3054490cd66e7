"""Ignored fields, which are left out when an object is applied. All other fields are applied."""

import copy
from typing import Final

import pytest

from tests.cluster.support.drift_bench import DEPLOYMENT, MANAGER, Change, drift_bench, patch, replaced, yaml_object
from wharfinger.cluster.drift.comparison import without_ignored
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.objects.drift_policy import IgnoreRule
from wharfinger.formats.json.value import JsonObject, find

AT: Final = "/spec/template/spec/containers"


async def left_out(change: Change, rule: IgnoreRule, *, own_updates: bool = False) -> JsonObject:
    """Return the object that is applied after another manager's change: the desired object without the ignored fields."""
    desired = yaml_object(DEPLOYMENT)
    before = copy.deepcopy(desired)
    async with drift_bench() as bench:
        await bench.apply(desired)
        await change(bench, desired)
        live = await bench.ours.get(await bench.key(desired))
        rest = without_ignored(desired, live, MANAGER, [rule], own_updates=own_updates)
        assert desired == before, "the desired object is not changed"
        # This apply neither reverts the change nor removes any other field.
        await bench.ours.apply(rest, field_manager=MANAGER)
        after = await bench.ours.get(await bench.key(desired))
        assert after["spec"] == live["spec"]
        assert (await bench.found(desired, None, [rule])) == set()
        return rest


def spec_of(obj: JsonObject) -> JsonObject:
    spec = obj["spec"]
    assert isinstance(spec, dict)
    return spec


async def test_replicas_set_by_an_autoscaler_are_left_out() -> None:
    rest = await left_out(patch("kube-controller-manager", {"spec": {"replicas": 9}}, "scale"), BUILT_IN[0])

    assert "replicas" not in spec_of(rest)
    assert spec_of(rest).keys() == spec_of(yaml_object(DEPLOYMENT)).keys() - {"replicas"}


async def test_replicas_set_by_no_other_manager_are_applied() -> None:
    desired = yaml_object(DEPLOYMENT)

    assert await left_out(patch("ed", {"metadata": {"labels": {"x": "1"}}}), BUILT_IN[0]) == desired
    assert await left_out(patch("ed", {"spec": {"paused": True}}), IgnoreRule(("/spec",))) == desired


async def test_a_rule_for_other_objects_leaves_nothing_out() -> None:
    desired = yaml_object(DEPLOYMENT)
    rule = IgnoreRule(("/spec/template/spec/containers/0/env",), kind="StatefulSet")

    assert await left_out(patch("ed", {"metadata": {"labels": {"x": "1"}}}), rule) == desired


@pytest.mark.parametrize("pointer", ["/spec/template/spec/containers/0", "/spec/template/spec/containers/*/image"])
async def test_a_field_of_a_list_item_is_left_out(pointer: str) -> None:
    rest = await left_out(replaced("ed", f"{AT}/0/image", "other:1"), IgnoreRule((pointer,)))

    containers = find(rest, "spec", "template", "spec", "containers")
    wanted = find(yaml_object(DEPLOYMENT), "spec", "template", "spec", "containers")
    assert isinstance(containers, list)
    assert isinstance(wanted, list)
    assert isinstance(wanted[0], dict)
    assert containers == [{name: value for name, value in wanted[0].items() if name != "image"}, wanted[1]]


async def test_fields_written_by_hooks_are_left_out_on_request() -> None:
    rest = await left_out(patch(MANAGER, {"spec": {"replicas": 9}}), IgnoreRule(("/no",)), own_updates=True)

    assert "replicas" not in spec_of(rest)
