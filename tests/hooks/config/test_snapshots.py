"""The snapshots that a binding includes."""

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.problems import HookConfigError, Problems
from wharfinger.hooks.config.snapshots import Snapshots

WATCHED: list[JsonValue] = [
    {"name": "a", "group": "g"},
    {"group": "h"},
    {"name": "b", "group": "g"},
    {"name": "twice"},
    {"name": "twice"},
    {"name": "", "group": ""},
]


@pytest.mark.parametrize(
    ("item", "names"),
    [
        ({}, ()),
        ({"group": "g"}, ("a", "b")),
        ({"group": "h"}, ("kube",)),
        ({"group": "nobody"}, ()),
        ({"group": ""}, ()),
        ({"includeSnapshotsFrom": ["b", "b"], "group": "g"}, ("b", "a")),
    ],
)
def test_included_snapshots_come_first_then_the_group_without_duplicates(
    item: JsonObject, names: tuple[str, ...]
) -> None:
    problems = Problems("x")
    assert Snapshots(WATCHED, problems, default_name="kube").of(item, "schedule") == names
    problems.raise_any()


def test_snapshot_names_must_match_exactly_one_binding() -> None:
    problems = Problems("x")
    snapshots = Snapshots(WATCHED, problems, default_name="kube")
    snapshots.of({"includeSnapshotsFrom": ["gone", "a", "twice", "kube"]}, "kubernetesMutating")
    with pytest.raises(HookConfigError) as caught:
        problems.raise_any()
    assert caught.value.problems == (
        "kubernetesMutating.includeSnapshotsFrom is invalid: 'gone' binding name not found",
        "kubernetesMutating.includeSnapshotsFrom is invalid: there are 2 'twice' binding names",
        "kubernetesMutating.includeSnapshotsFrom is invalid: there are 2 'kube' binding names",
    )
