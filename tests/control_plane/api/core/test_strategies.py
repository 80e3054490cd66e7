import pytest

from tests.control_plane.support.backend_views import FakeView
from wharfinger.control_plane.api.core.strategies import CORE_STRATEGIES
from wharfinger.formats.json.value import JsonObject, find


def test_namespaces_get_a_finalizer_and_a_label() -> None:
    strategy = CORE_STRATEGIES["Namespace"]

    assert find(strategy.create({"spec": {"finalizers": ["a.b/c"]}}, FakeView()), "spec", "finalizers") == [
        "a.b/c",
        "kubernetes",
    ]
    updated = strategy.update({"metadata": {"name": "n"}, "spec": {}}, {"spec": {"finalizers": ["x"]}}, FakeView())
    assert updated["spec"] == {"finalizers": ["x"]}
    assert find(updated, "metadata", "labels", "kubernetes.io/metadata.name") == "n"
    assert strategy.subresources["finalize"]({"spec": {}}, {"spec": {"finalizers": ["x"]}}, FakeView()) == {"spec": {}}


def test_a_limit_range_without_a_name() -> None:
    found = CORE_STRATEGIES["LimitRange"].create({"metadata": {}, "spec": {"limits": []}}, FakeView())

    assert find(found, "metadata", "name") == "11111111-1111-4111-8111-111111111111"
    assert found["spec"] == {"limits": None}


def test_fields_of_dynamic_kubelet_configuration_are_dropped() -> None:
    node: JsonObject = {"spec": {"configSource": {}, "a": 1}, "status": {"config": {}, "b": 2}}

    assert CORE_STRATEGIES["Node"].create(node, FakeView()) == {"spec": {"a": 1}, "status": {"b": 2}}
    assert CORE_STRATEGIES["Node"].update({}, {}, FakeView()) == {}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"phase": "A", "lastPhaseTransitionTime": "t"}, {"phase": "A"}, "t"),
        ({"phase": "A", "lastPhaseTransitionTime": "t"}, {"phase": "B"}, "2026-11-21T04:00:00Z"),
        ({"phase": "A", "lastPhaseTransitionTime": "t"}, {"phase": "B", "lastPhaseTransitionTime": "u"}, "u"),
        ({"phase": "A"}, {"phase": "A"}, None),
    ],
)
def test_a_changed_volume_phase_gets_a_transition_time(old: JsonObject, new: JsonObject, expected: str | None) -> None:
    found = CORE_STRATEGIES["PersistentVolume"].status({"status": new}, {"status": old}, FakeView())

    assert find(found, "status", "lastPhaseTransitionTime") == expected


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"dataSource": {"kind": "Pod", "name": "x"}}, set()),
        ({"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}, {"dataSource", "dataSourceRef"}),
        ({"dataSourceRef": {"kind": "Any", "apiGroup": "a", "name": "x"}}, {"dataSource", "dataSourceRef"}),
        ({"dataSourceRef": {"kind": "Any", "name": "x", "namespace": "other"}}, set()),
    ],
)
def test_invalid_claim_sources_are_dropped(spec: JsonObject, kept: set[str]) -> None:
    found = CORE_STRATEGIES["PersistentVolumeClaim"].create({"spec": spec}, FakeView())["spec"]

    assert isinstance(found, dict)
    assert set(found) == kept


def test_references_to_secrets_are_reduced_to_names() -> None:
    account: JsonObject = {"secrets": [{"name": "a", "kind": "Secret"}, {}]}

    assert CORE_STRATEGIES["ServiceAccount"].create(account, FakeView())["secrets"] == [{"name": "a"}, {}]
    assert CORE_STRATEGIES["ServiceAccount"].update({}, account, FakeView()) == {}
