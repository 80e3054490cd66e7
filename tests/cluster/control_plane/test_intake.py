from dataclasses import replace

import pytest

from tests.cluster.control_plane.samples import builtin, definition
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.crds import kind_of_definition
from wharfinger.cluster.control_plane.intake import accepted, check_name, check_namespace, typed
from wharfinger.cluster.control_plane.options import FieldValidation
from wharfinger.cluster.control_plane.status import StatusError
from wharfinger.formats.json_value import JsonObject, JsonValue

CONFIG = builtin("", "v1", "configmaps")
WIDGET_KIND = kind_of_definition(definition())
WIDGET = Served(WIDGET_KIND, WIDGET_KIND.versions[0])


def test_built_in_kinds_may_leave_out_what_the_path_says() -> None:
    assert typed(CONFIG, {"data": {"a": None}}) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {},
        "data": {"a": ""},
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "json: cannot unmarshal array into Go value of type ConfigMap"),
        (None, "cannot unmarshal string into"),
        ({"metadata": 5}, "metadata: expected an object"),
        ({"metadata": {"name": 5}}, "name: expected a string"),
        (
            {"metadata": {"labels": {"a": True}}},
            "cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels",
        ),
        ({"data": {"a": 1.5}}, "cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        ({"data": {"a": {}}}, "cannot unmarshal object into"),
        ({"kind": "Secret"}, 'no kind "Secret" is registered for version "v1"'),
        ({"apiVersion": "apps/v1"}, 'no kind "ConfigMap" is registered for version "apps/v1"'),
    ],
)
def test_what_is_no_config_map(body: JsonValue, words: str) -> None:
    with pytest.raises(StatusError) as caught:
        typed(CONFIG, body)
    assert caught.value.code == 400
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"apiVersion": "example.com/v1"}, "Object 'Kind' is missing"),
        ({"kind": "Widget"}, "Object 'apiVersion' is missing"),
        (
            {"apiVersion": "example.com/v2", "kind": "Widget"},
            "does not match the expected API version (example.com/v1)",
        ),
        ({"apiVersion": "example.com/v1", "kind": "Other"}, "does not match the expected kind (Widget)"),
    ],
)
def test_custom_kinds_must_say_what_they_are(body: JsonValue, words: str) -> None:
    with pytest.raises(StatusError) as caught:
        typed(WIDGET, body)
    assert words in caught.value.message


def test_undeclared_fields() -> None:
    body: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "extra": 1, "metadata": {"name": "a"}}

    assert accepted(CONFIG, body, FieldValidation.WARN).warnings == ('unknown field "extra"',)
    assert accepted(CONFIG, body, FieldValidation.IGNORE).warnings == ()
    assert "extra" not in accepted(CONFIG, body, FieldValidation.IGNORE).obj
    with pytest.raises(StatusError, match='strict decoding error: unknown field "extra"'):
        accepted(CONFIG, body, FieldValidation.STRICT)


def test_the_namespace_of_the_path_counts() -> None:
    assert check_namespace(CONFIG, {"metadata": {"name": "a"}}, "x")["metadata"] == {"name": "a", "namespace": "x"}
    with pytest.raises(StatusError, match="does not match the namespace sent on the request"):
        check_namespace(CONFIG, {"metadata": {"namespace": "y"}}, "x")
    cluster = replace(CONFIG, kind=replace(CONFIG.kind, namespaced=False))
    assert check_namespace(cluster, {"metadata": {"namespace": "y"}}, "")["metadata"] == {}


def test_the_name_of_the_path_counts() -> None:
    assert check_name({"metadata": {}}, "a")["metadata"] == {"name": "a"}
    with pytest.raises(StatusError, match=r"the name of the object \(b\) does not match the name on the URL \(a\)"):
        check_name({"metadata": {"name": "b"}}, "a")
