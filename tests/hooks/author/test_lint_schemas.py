"""Checks for misspelt schema keywords and for values that do not match their schema."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hooks.support.linting import lint, package
from wharfinger.formats.json.value import JsonValue, find
from wharfinger.hooks.author.lint_schemas import MAX_SCHEMAS, misspelt


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "object", "properties": {"default": {}, "anything": {"type": "string"}}}, []),
        ({"default": {"anything": 1}, "enum": [{"a": 1}], "example": {"x": 1}, "examples": [{"y": 1}]}, []),
        ({"properties": {"a": {"defualt": 1}}}, [("properties.a.defualt", "did you mean 'default'?")]),
        ({"items": {"tpye": 1}}, [("items.tpye", "did you mean 'type'?")]),
        ({"items": [{"tpye": 1}]}, [("items.0.tpye", "did you mean 'type'?")]),
        ({"additionalProperties": {"requierd": []}}, [("additionalProperties.requierd", "did you mean 'required'?")]),
        ({"additionalProperties": False, "items": 3, "anyOf": 1, "properties": []}, []),
        ({"anyOf": [{}, {"minLenght": 1}]}, [("anyOf.1.minLenght", "did you mean 'minLength'?")]),
        ({"not": {"zzz": 1}}, [("not.zzz", "so it has no effect")]),
        ({"x-extnd": {}}, [("x-extnd", "did you mean 'x-extend'?")]),
        ({"x-anything-else": {}, "x-extend": {"schema": "a"}}, []),
        ({"x-kubernetes-validation": []}, [("x-kubernetes-validation", "did you mean 'x-kubernetes-validations'?")]),
        ({"q" * 100: 1}, [("q" * 100, "so it has no effect")]),
        ([1], []),
        (None, []),
    ],
)
def test_unknown_schema_keywords_are_found_by_path(schema: JsonValue, found: list[tuple[str, str]]) -> None:
    told = [(".".join(map(str, path)), why) for path, why in misspelt(schema)]
    assert [path for path, _ in told] == [path for path, _ in found]
    assert all(why.endswith(end) for (_, why), (_, end) in zip(told, found, strict=True)), told


def test_a_schema_beyond_the_search_limit_is_accepted() -> None:
    assert list(misspelt({"items": [{} for _ in range(MAX_SCHEMAS * 2)]})) == []


def test_a_misspelt_keyword_is_reported_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = "type: object\nx-config-version: 1\nproperties:\n  a:\n    type: string\n    patern: x\n"
    folder = package(tmp_path, {"openapi/settings.yaml": schema, "openapi/values.yaml": "a: b: c"})
    code, found = lint(capsys, folder)
    assert (code, found[0]) == (
        1,
        "openapi/settings.yaml:6: warning: patern: not a keyword of a schema, so it has no effect; did you mean 'pattern'?",
    )
    assert [line.partition(": error")[0] for line in found[1:]] == ["openapi/values.yaml:1"]


VALUES = "type: object\nproperties:\n  list: {type: array, items: {type: integer}}\n  name: {type: string}\nrequired: [token]\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"values.yaml": "name: x\nlist:\n  - 1\n  - b\n"}, ["values.yaml:4: error: list[1]: expected an integer"]),
        ({"values.yaml": "name: x\n"}, []),
        ({"values.yaml": "# nothing\n"}, []),
        (
            {"package.yaml": "", "values.yaml": "web:\n  list: [a]\n"},
            ["values.yaml:2: error: list[0]: expected an integer"],
        ),
    ],
)
def test_values_of_a_package_are_checked_against_its_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], found: list[str]
) -> None:
    folder = package(tmp_path, {"openapi/values.yaml": VALUES, **files})
    if not files.get("package.yaml", "-"):
        (folder / "package.yaml").unlink()
    _, told = lint(capsys, folder, "--no-templates")
    told = [line for line in told if line.startswith("values.yaml")]
    assert len(told) == len(found), told
    assert all(line.startswith(beginning) for line, beginning in zip(told, found, strict=True)), told


def test_values_are_checked_against_the_settings_schema_without_values_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = "type: object\nx-config-version: 1\nproperties:\n  a: {type: integer}\n"
    folder = package(tmp_path, {"openapi/settings.yaml": schema, "values.yaml": "\na: b\n"})
    assert lint(capsys, folder, "--no-templates") == (
        1,
        ["values.yaml:2: error: a: expected an integer, found a string"],
    )


def test_a_default_that_its_schema_refuses_is_reported_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = "type: object\nx-config-version: 1\nproperties:\n  who:\n    type: string\n    default: 5\n"
    values = "x-extend: {schema: settings.yaml}\ntype: object\nproperties:\n  port: {type: integer, default: a}\n"
    folder = package(tmp_path, {"openapi/settings.yaml": schema, "openapi/values.yaml": values})
    assert lint(capsys, folder, "--no-templates") == (
        1,
        [
            "openapi/settings.yaml:6: error: who: its default is refused by its schema: expected a string, found an integer",
            "openapi/values.yaml:4: error: port: its default is refused by its schema: expected an integer, found a string",
        ],
    )


WORDS = (
    st.sampled_from(["properties", "items", "anyOf", "type", "tpye", "default", "not", "x-extend", "x-extnd"])
    | st.text()
)
SCHEMAS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
)


@given(SCHEMAS)
def test_any_document_is_searched_for_misspelt_keywords(document: JsonValue) -> None:
    for path, why in misspelt(document):
        found: JsonValue = document
        for step in path:
            found = find(found, step)
        assert str(path[-1])[:40] in why
