"""Variables in built manifests."""

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.building.substitution import MAX_DEPTH, MAX_TEXT, SubstitutionError, substitute, substituted

VARIABLES = {"a": "apple", "empty": "", "n": "3", "path": "x/y/x"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${a}", "apple"),
        ("no ${a} $a {a}", "no apple $a {a}"),
        ("${absent}", ""),
        ("${absent:-other}", "other"),
        ("${absent:=other}", "other"),
        ("${empty:-other}", "other"),
        ("${empty-other}", ""),
        ("${absent-other}", "other"),
        ("${absent=other}", "other"),
        ("${a:-other}", "apple"),
        ("${absent:-${a}}", "apple"),
        ("${absent:-a:b}", "a:b"),
        ("$${a}", "${a}"),
        ("${a:1}", "pple"),
        ("${a:1:2}", "pp"),
        ("${a: -2}", "le"),
        ("${path/x/z}", "z/y/x"),
        ("${path//x/z}", "z/y/z"),
        ("${a^}", "Apple"),
        ("${a^^}", "APPLE"),
        ("${a,,}", "apple"),
    ],
)
def test_expressions_are_substituted(text: str, expected: str) -> None:
    assert substitute(text, VARIABLES) == expected


@pytest.mark.parametrize(
    "text", ["${", "${a", "${1}", "${a@Q}", "${}", "${x:-" * (MAX_DEPTH + 2) + "}" * (MAX_DEPTH + 2)]
)
def test_invalid_expressions_are_refused(text: str) -> None:
    with pytest.raises(SubstitutionError):
        substitute(text, VARIABLES)


def test_values_can_become_numbers_and_objects_can_opt_out() -> None:
    obj: JsonObject = {"spec": {"replicas": "${n}", "name": "${a}"}}
    assert substituted(obj, VARIABLES) == {"spec": {"replicas": 3, "name": "apple"}}
    for where in ("labels", "annotations"):
        out: JsonObject = {**obj, "metadata": {where: {"kustomize.toolkit.fluxcd.io/substitute": "disabled"}}}
        assert substituted(out, VARIABLES) is out


def test_texts_are_unchanged_without_variables() -> None:
    obj: JsonObject = {"script": "echo ${HOME}"}
    assert substituted(obj, {}) is obj
    plain: JsonObject = {"a": "b"}
    assert substituted(plain, VARIABLES) is plain


def test_values_cannot_grow_without_a_bound() -> None:
    large = {"a": "x" * (MAX_TEXT // 4)}
    assert len(substitute("${a}" * 4, large)) == MAX_TEXT
    with pytest.raises(SubstitutionError, match=f"more than {MAX_TEXT} characters"):
        substitute("${a}" * 5, large)
