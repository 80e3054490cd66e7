"""The YAML writer. Written values are equal when they are read back, and the style is that of a human writer."""

import math

import pytest
import yaml
from hypothesis import given

from tests.formats.support.values import AWKWARD_TEXT, json_values
from tests.formats.support.yaml_table import SCALARS
from wharfinger.formats.json.value import MAX_DEPTH, JsonValue, canonical_json
from wharfinger.formats.yaml.reader import YamlError, read_yaml, read_yaml_all
from wharfinger.formats.yaml.writer import write_yaml, write_yaml_all


@pytest.mark.slow
@given(json_values())
def test_any_json_value_round_trips(value: JsonValue) -> None:
    again = read_yaml(write_yaml(value), what="written")

    assert canonical_json(again) == canonical_json(value)


@pytest.mark.parametrize("text", [*AWKWARD_TEXT, *(text for text, _ in SCALARS)])
def test_awkward_text_round_trips_as_value_key_and_item(text: str) -> None:
    value: JsonValue = {text: text, "list": [text, {text: [text]}]}

    assert read_yaml(write_yaml(value), what="written") == value
    assert read_yaml(write_yaml(text), what="written") == text


@pytest.mark.parametrize("text", ["y", "0777", "1e3", "~", "12:30:45", "2026-01-01", "1.5", ".5", "1_000", "=", "<<"])
def test_ambiguous_strings_are_quoted(text: str) -> None:
    assert write_yaml({"a": text}) == f"a: '{text}'\n"
    assert yaml.safe_load(write_yaml({text: text})) == {text: text}


def test_yaml_is_written_in_block_style() -> None:
    value: JsonValue = {
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {}},
        "data": {"script": "#!/bin/sh\n  echo 'hi'\n", "on": "yes"},
        "list": [1, None, {"b": True, "c": []}, [2]],
        "long": "word " * 60 + "end",
    }

    assert write_yaml(value) == (
        "kind: ConfigMap\n"
        "metadata:\n"
        "  name: a\n"
        "  labels: {}\n"
        "data:\n"
        "  script: |\n"
        "    #!/bin/sh\n"
        "      echo 'hi'\n"
        "  'on': 'yes'\n"
        "list:\n"
        "- 1\n"
        "- null\n"
        "- b: true\n"
        "  c: []\n"
        "- - 2\n"
        f"long: {'word ' * 60}end\n"
    )


@pytest.mark.parametrize(
    ("value", "text"), [(None, "null\n"), ("a", "a\n"), (":...", ":...\n"), (1.5, "1.5\n"), (1.0, "1\n"), ([], "[]\n")]
)
def test_a_single_scalar_is_written_as_a_document(value: JsonValue, text: str) -> None:
    assert write_yaml(value) == text


def test_a_stream_of_documents_is_written_with_separators() -> None:
    documents: list[JsonValue] = [{"a": 1}, ["b"], "..."]

    assert write_yaml_all(documents).startswith("---\na: 1\n---\n- b\n---\n")
    assert read_yaml_all(write_yaml_all(documents), what="written") == documents
    assert write_yaml_all([]) == ""


@pytest.mark.parametrize("value", [1e22, 1e300, 5e-324, 0.1, -0.0, 2.0**62, 2.0**63, 1234567890123456768.0, 2**64 - 1])
def test_numbers_read_back_equal(value: float) -> None:
    assert read_yaml(write_yaml([value]), what="written") == [value]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "nan has no JSON form"),
        (-math.inf, "-inf has no JSON form"),
        (2**64, "beyond 64 bits"),
        (-(2**63) - 1, "beyond 64 bits"),
        (10**5000, "beyond 64 bits"),
        ("a\ud800", "a lone surrogate"),
    ],
    ids=["nan", "infinity", "65 bits", "65 bits down", "digits", "surrogate"],
)
def test_values_without_a_yaml_form_are_refused(value: JsonValue, reason: str) -> None:
    for nested in (value, [value], {"a": value}):
        with pytest.raises(YamlError, match=reason):
            write_yaml(nested)


def test_values_nested_too_deep_are_not_written() -> None:
    value: JsonValue = "x"
    for _ in range(MAX_DEPTH // 2):
        value = [{"a": value}]

    assert read_yaml(write_yaml(value), what="written") == value
    with pytest.raises(YamlError, match="nested deeper"):
        write_yaml([value])
    endless: list[JsonValue] = []
    endless.append(endless)
    with pytest.raises(YamlError, match="nested deeper"):
        write_yaml(endless)
