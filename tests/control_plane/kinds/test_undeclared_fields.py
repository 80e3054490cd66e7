import json

from hypothesis import given
from hypothesis import strategies as st

from tests.control_plane.support.samples import SCHEMA
from wharfinger.control_plane.kinds.type_shapes import builtin_list_types, crd_list_types
from wharfinger.control_plane.kinds.undeclared_fields import prune
from wharfinger.formats.json.value import JsonObject, JsonValue

DEPLOYMENT = builtin_list_types("apps", "v1", "Deployment")
WIDGET = crd_list_types(SCHEMA)


def test_an_object_without_undeclared_fields_is_returned_itself() -> None:
    obj: JsonObject = {"metadata": {"name": "a", "labels": {"any": "thing"}}, "spec": {"replicas": 1}}

    pruned, unknown = prune(obj, DEPLOYMENT)

    assert pruned is obj
    assert unknown == ()


def test_undeclared_fields_are_removed_and_listed_by_path() -> None:
    obj: JsonObject = {
        "metadata": {"nam": "a"},
        "spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b", "imge": "x"}]}}},
        "extra": 1,
    }
    before = json.dumps(obj)

    pruned, unknown = prune(obj, DEPLOYMENT)

    assert unknown == ("extra", "metadata.nam", "spec.template.spec.containers[1].imge")
    assert pruned == {"metadata": {}, "spec": {"template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}}
    assert json.dumps(obj) == before


def test_custom_kinds_are_pruned_by_their_schema() -> None:
    pruned, unknown = prune({"spec": {"size": 1, "junk": 1}, "other": 2}, WIDGET)

    assert (pruned, unknown) == ({"spec": {"size": 1}}, ("other", "spec.junk"))


def test_a_schema_that_preserves_unknown_fields_prunes_nothing() -> None:
    lists = crd_list_types({"type": "object", "x-kubernetes-preserve-unknown-fields": True})

    assert prune({"anything": {"goes": 1}}, lists)[1] == ()


@given(
    st.dictionaries(
        st.sampled_from(["spec", "status", "metadata", "zzz", "replicas", "template"]),
        st.recursive(
            st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.sampled_from(["replicas", "spec", "template", "zzz"]), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_pruning_is_idempotent(obj: dict[str, JsonValue]) -> None:
    pruned, _ = prune(obj, DEPLOYMENT)

    assert prune(pruned, DEPLOYMENT) == (pruned, ())
