"""The mark on objects that a hook of a package created."""

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.hook_made import MADE_FOR, MADE_FOR_NAMESPACE, HookMark
from wharfinger.formats.json.value import JsonObject

MARK = HookMark(Owner("web", "prod"))


def test_a_copy_is_marked_and_retains_its_labels() -> None:
    obj: JsonObject = {"kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "x"}}}
    marked = MARK.put_on(obj)
    assert marked["metadata"] == {
        "name": "a",
        "labels": {"app": "x", MADE_FOR: "web"},
        "annotations": {MADE_FOR_NAMESPACE: "prod"},
    }
    assert obj == {"kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "x"}}}
    assert MARK.is_on(marked)
    assert MARK.selector == "wharfinger.dev/made-by-hook-of=web"


def test_an_object_of_a_release_of_the_same_name_elsewhere_is_not_marked() -> None:
    marked = MARK.put_on({"metadata": {"name": "a"}})
    assert not HookMark(Owner("web", "test")).is_on(marked)
    assert not HookMark(Owner("other", "prod")).is_on(marked)
    assert not MARK.is_on({"metadata": {"name": "a", "labels": {MADE_FOR: "web"}}})
    assert not MARK.is_on({"metadata": {"name": "a"}})
