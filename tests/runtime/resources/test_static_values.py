"""Static values, which are read from an annotation of a Module. Invalid ones are refused."""

import pytest

from tests.runtime.support.objects import module
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.runtime.resources.static_values import MAX_STATIC, STATIC_VALUES, read_static_values


def annotated(value: JsonValue) -> JsonObject:
    return {**module("web"), "metadata": {"name": "web", "annotations": {STATIC_VALUES: value}}}


def test_static_values_are_read_from_an_annotation() -> None:
    assert read_static_values(annotated('{"a": {"b": [1]}}')) == {"a": {"b": [1]}}
    assert read_static_values(annotated("{}")) == {}
    assert read_static_values(module("web")) is None


@pytest.mark.parametrize("value", ["", "{", "[]", "null", 3, '{"a": "' + "x" * 4 * MAX_STATIC + '"}'])
def test_invalid_static_values_are_refused(value: JsonValue) -> None:
    with pytest.raises(FormatError, match=r"metadata\.annotations: wharfinger\.dev/static-values"):
        read_static_values(annotated(value))
