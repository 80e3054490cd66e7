"""Templates of `-o jsonpath=`, whose output is that of kubectl."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.json_path.path import JsonPathError
from wharfinger.formats.json_path.template import parse_template, render_template

DOCUMENT: JsonObject = {
    "kind": "List",
    "items": [{"name": "a", "n": 1, "on": True, "tags": ["x", "y"]}, {"name": "b", "n": 2.5, "of": None}],
    "by": {"k": {"v": "1"}, "l": {"v": "2"}},
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.kind}", "List"),
        (".kind", "List"),
        ("{.items[*].name}", "a b"),
        ("{.items[0].tags}", '["x","y"]'),
        ("{.items[0].on} {.items[1].n}", "true 2.5"),
        ("{.items[1].of}", "null"),
        ("{.absent}", ""),
        ("{.by.*.v}", "1 2"),
        ("{@.kind}", "List"),
        ("{$.kind}", "List"),
        ('{range .items[*]}{.name}{"\\t"}{.n}{"\\n"}{end}', "a\t1\nb\t2.5\n"),
        ("{range .items[*]}{.name} of {$.kind};{end}", "a of List;b of List;"),
        ("{range .items[*]}{range .tags[*]}{@}{'!'}{end}{end}", "x!y!"),
        ('{.items[?(@.name=="b")].n}', "2.5"),
        ('{"a {brace} \\" "}.', 'a {brace} " .'),
    ],
)
def test_templates_render_text(template: str, text: str) -> None:
    assert render_template(parse_template(template), DOCUMENT) == text


@pytest.mark.parametrize(
    "template",
    ["", " ", "{.a", "a}", "{end}", "{range .a}", "{.a[}", "{'a' 'b'}x", "{nothing}", '{"a}', "{range .a}" * 10],
)
def test_invalid_templates_are_refused(template: str) -> None:
    with pytest.raises(JsonPathError):
        parse_template(template)


@given(st.text(alphabet="{}.[]*'\"ab@$ \\range", max_size=30))
def test_any_text_is_read_or_refused(template: str) -> None:
    try:
        parts = parse_template(template)
    except JsonPathError:
        return
    assert isinstance(render_template(parts, DOCUMENT), str)
