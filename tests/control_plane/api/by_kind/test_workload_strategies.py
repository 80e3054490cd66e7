"""Fields of workloads that the API server sets or drops at a write."""

from tests.control_plane.support.backend_views import FakeView
from wharfinger.control_plane.api.by_kind.workload_strategies import WORKLOAD_STRATEGIES, template_generation
from wharfinger.formats.json.value import JsonObject, find


def test_a_job_without_labels_gets_those_of_its_template() -> None:
    create = WORKLOAD_STRATEGIES["Job.batch"].create
    labels: JsonObject = {"a": "b"}
    template: JsonObject = {"metadata": {"labels": labels}}
    shared: JsonObject = {"metadata": {"name": "j", "uid": "u", "labels": labels}, "spec": {"template": template}}
    own: JsonObject = {"metadata": {"name": "j", "uid": "u", "labels": {"a": "b"}}, "spec": {"template": template}}
    assert find(create(shared, FakeView()), "metadata", "labels", "job-name") == "j"
    assert find(create(own, FakeView()), "metadata", "labels") == {"a": "b"}
    by_hand: JsonObject = {"spec": {"manualSelector": True}}
    assert create(by_hand, FakeView()) is by_hand


def test_a_disabled_field_is_dropped_unless_already_set() -> None:
    strategy = WORKLOAD_STRATEGIES["StatefulSet.apps"]
    obj: JsonObject = {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "partition": 0}}}}
    assert find(strategy.create(obj, FakeView()), "spec", "updateStrategy", "rollingUpdate") == {"partition": 0}
    assert strategy.update(obj, obj, FakeView()) is obj


def test_template_changes_increase_the_template_generation() -> None:
    strategy = WORKLOAD_STRATEGIES["DaemonSet.apps"]
    old = strategy.create({"metadata": {}, "spec": {"template": {}}}, FakeView())
    assert template_generation(old) == 1
    new = strategy.update({"metadata": {}, "spec": {"template": {"a": 1}}}, old, FakeView())
    assert template_generation(new) == 2
    assert template_generation(strategy.status({"metadata": {}}, old, FakeView())) == 1
