"""The mark on what a hook made."""

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.releases.hook_made import MADE_FOR, MADE_FOR_NAMESPACE, Maker
from wharfinger.formats.json.value import JsonObject

MAKER = Maker(Owner("web", "prod"))


def test_a_copy_is_marked_beside_what_it_says_itself() -> None:
    obj: JsonObject = {"kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "x"}}}
    marked = MAKER.marked(obj)
    assert marked["metadata"] == {
        "name": "a",
        "labels": {"app": "x", MADE_FOR: "web"},
        "annotations": {MADE_FOR_NAMESPACE: "prod"},
    }
    assert obj == {"kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "x"}}}
    assert MAKER.has_made(marked)
    assert MAKER.selector == "wharfinger.dev/made-by-hook-of=web"


def test_a_release_of_the_same_name_elsewhere_has_not_made_it() -> None:
    marked = MAKER.marked({"metadata": {"name": "a"}})
    assert not Maker(Owner("web", "test")).has_made(marked)
    assert not Maker(Owner("other", "prod")).has_made(marked)
    assert not MAKER.has_made({"metadata": {"name": "a", "labels": {MADE_FOR: "web"}}})
    assert not MAKER.has_made({"metadata": {"name": "a"}})
