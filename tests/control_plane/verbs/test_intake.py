from dataclasses import replace

import pytest

from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.verbs.intake import accepted, check_name, check_namespace
from wharfinger.control_plane.verbs.options import FieldValidation
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue

CONFIG = builtin("", "v1", "configmaps")


def test_bodies_of_built_in_kinds_may_omit_kind_and_version() -> None:
    assert accepted(CONFIG, {"data": {"a": None}}, FieldValidation.WARN).obj == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {},
        "data": {"a": ""},
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "json: cannot unmarshal array into Go value of type struct { APIVersion string"),
        ({"metadata": 5}, "number into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
        ({"kind": "Secret"}, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        ({"kind": "Secret", "data": 5}, "number into Go struct field Secret.data of type map[string][]uint8"),
        ({"apiVersion": "apps/v1"}, 'no kind "ConfigMap" is registered for version "apps/v1"'),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c (<empty>)"),
    ],
)
def test_bodies_of_another_type_are_refused(body: JsonValue, words: str) -> None:
    with pytest.raises(StatusError) as caught:
        accepted(CONFIG, body, FieldValidation.WARN)
    assert caught.value.code == 400
    assert words in caught.value.message


def test_undeclared_fields_are_refused_warned_about_or_ignored() -> None:
    body: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "extra": 1, "metadata": {"name": "a"}}

    assert accepted(CONFIG, body, FieldValidation.WARN).warnings == ('unknown field "extra"',)
    assert accepted(CONFIG, body, FieldValidation.IGNORE).warnings == ()
    assert "extra" not in accepted(CONFIG, body, FieldValidation.IGNORE).obj
    with pytest.raises(StatusError, match='strict decoding error: unknown field "extra"'):
        accepted(CONFIG, body, FieldValidation.STRICT)


def test_the_namespace_must_match_the_path() -> None:
    assert check_namespace(CONFIG, {"metadata": {"name": "a"}}, "x")["metadata"] == {"name": "a", "namespace": "x"}
    with pytest.raises(StatusError, match="does not match the namespace sent on the request"):
        check_namespace(CONFIG, {"metadata": {"namespace": "y"}}, "x")
    cluster = replace(CONFIG, kind=replace(CONFIG.kind, namespaced=False))
    assert check_namespace(cluster, {"metadata": {"namespace": "y"}}, "")["metadata"] == {}


def test_the_name_must_match_the_path() -> None:
    assert check_name({"metadata": {"name": "a"}}, "a")["metadata"] == {"name": "a"}
    with pytest.raises(StatusError, match=r"\(a based on URL\) was undeterminable: name must be provided"):
        check_name({"metadata": {}}, "a")
    with pytest.raises(StatusError, match=r"the name of the object \(b\) does not match the name on the URL \(a\)"):
        check_name({"metadata": {"name": "b"}}, "a")
