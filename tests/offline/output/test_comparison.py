"""The comparison of two builds."""

from tests.offline.support import flux_id
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.redaction.redaction import LAST_APPLIED
from wharfinger.offline.orchestrator.result import Failure, Manifest, Result
from wharfinger.offline.output.comparison import (
    HIDDEN,
    HIDDEN_AFTER,
    HIDDEN_BEFORE,
    Verb,
    changed_images,
    compared,
    images_of,
)
from wharfinger.offline.store.identity import object_id
from wharfinger.runtime.fixpoint.model import Id

A, B = flux_id("Kustomization", "a"), flux_id("Kustomization", "b")


def obj(name: str, kind: str = "ConfigMap", **fields: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}, "data": {**fields}}


def result(a: list[JsonObject], b: list[JsonObject] | None = None, *, failed: tuple[str, ...] = ()) -> Result:
    made = {A: a, B: b or []}
    manifests = {who: tuple(Manifest(object_id(each), each) for each in objects) for who, objects in made.items()}
    return Result(manifests, {who: Failure(who, "x") for who in (A, B) if who.name in failed}, {})


def test_equal_builds_have_no_changes() -> None:
    one = result([obj("x", a="1")], [obj("y")])
    assert compared(one, one).changes == ()


def test_added_changed_and_deleted_objects_are_listed() -> None:
    comparison = compared(result([obj("x", a="1"), obj("gone")]), result([obj("x", a="2"), obj("new")]))
    assert [(each.verb, each.id.name) for each in comparison.changes] == [
        (Verb.DELETED, "gone"),
        (Verb.ADDED, "new"),
        (Verb.CHANGED, "x"),
    ]
    assert [comparison.count(verb) for verb in Verb] == [1, 1, 1]


def test_objects_of_a_producer_failed_on_one_side_are_not_compared() -> None:
    comparison = compared(result([obj("x")], [obj("y")]), result([], [obj("y", a="1")], failed=("a",)))
    assert [each.id.name for each in comparison.changes] == ["y"]
    assert comparison.incomparable == (A,)


def test_an_object_moved_to_another_producer_is_unchanged() -> None:
    assert compared(result([obj("x")]), result([], [obj("x")])).changes == ()


def test_values_of_secrets_are_hidden() -> None:
    before, after = obj("s", "Secret", same="1", other="2"), obj("s", "Secret", same="1", other="3", new="4")
    (change,) = compared(result([before]), result([after])).changes
    assert change.before is not None
    assert change.after is not None
    assert change.before["data"] == {"same": HIDDEN, "other": HIDDEN_BEFORE}
    assert change.after["data"] == {"same": HIDDEN, "other": HIDDEN_AFTER, "new": HIDDEN_AFTER}
    (added,) = compared(result([]), result([after])).changes
    assert added.after is not None
    assert added.after["data"] == dict.fromkeys(("same", "other", "new"), HIDDEN)


def test_images_are_found_in_every_pod_template() -> None:
    spec: JsonObject = {"containers": [{"image": "a:1"}], "initContainers": [{"image": "b:1"}, {"name": "none"}]}
    pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    job: JsonObject = {**pod, "spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}
    assert images_of(pod) == images_of(job) == {"a:1", "b:1"}
    newer: JsonObject = {**pod, "spec": {"containers": [{"image": "a:2"}]}}
    assert changed_images(compared(result([pod]), result([newer])).changes) == (("a:1", "b:1"), ("a:2",))


def test_copies_and_malformed_values_of_secrets_are_hidden() -> None:
    copy: JsonObject = {"name": "s", "namespace": "n", "annotations": {LAST_APPLIED: "HUNTER"}}
    before: JsonObject = {**obj("s", "Secret"), "metadata": copy, "data": "HUNTER"}
    (change,) = compared(result([before]), result([obj("s", "Secret", a="HUNTER")])).changes
    assert "HUNTER" not in str(change)


def test_objects_at_any_depth_below_a_failed_producer_are_not_compared() -> None:
    """In one of the two builds, the parent fails. In the other, it makes a child, the child makes a grandchild, and the
    grandchild makes an object.
    """
    child, grandchild = flux_id("Kustomization", "child"), flux_id("HelmRelease", "grandchild")
    made: dict[Id, tuple[Manifest, ...]] = {
        A: (Manifest(child, {}),),
        child: (Manifest(grandchild, {}),),
        grandchild: (Manifest(Id("PersistentVolumeClaim", "db", "data"), {}),),
        B: (Manifest(Id("ConfigMap", "n", "y"), {}),),
    }
    before, after = Result(made, {}, {}), Result({B: made[B]}, {A: Failure(A, "x")}, {})
    for comparison in (compared(before, after), compared(after, before)):
        assert comparison.changes == ()
        assert (comparison.incomparable, comparison.unknown) == ((A,), (grandchild, child))
    elsewhere = Result({B: (Manifest(child, {}),), child: ()}, {A: Failure(A, "x")}, {})
    assert compared(before, elsewhere).unknown == ()
