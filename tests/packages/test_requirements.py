"""What a package needs, in both spellings."""

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonValue
from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.formats.yaml_reader import read_yaml
from wharfinger.packages.requirements import (
    MAX_ENTRIES,
    NO_REQUIREMENTS,
    Dependency,
    DependencyGroup,
    Requirements,
    is_package_name,
    read_requirements,
)


def read(text: str, *, legacy: bool = False) -> Requirements:
    return read_requirements(read_yaml(text, what="test"), "requirements", legacy=legacy)


def needs(name: str, constraint: str = "") -> Dependency:
    return Dependency(name, parse_constraint(constraint))


@pytest.mark.parametrize(
    "text", ["", "{}", "{modules: {}}", "{modules: }", "{kubernetes: , platform: ''}", "{modules: {anyOf: }}"]
)
def test_nothing_is_needed(text: str) -> None:
    assert read(text) == NO_REQUIREMENTS


def test_the_long_form() -> None:
    found = read("""
kubernetes: {constraint: ">=1.30"}
deckhouse: {constraint: "~1.60 || ^2"}
modules:
  mandatory: [{name: ingress, constraint: ">=1.2, <2"}, {name: dns}]
  conditional: [{name: metrics, constraint: "^2"}]
  anyOf:
  - {name: storage, description: " classes ", modules: [{name: ceph, constraint: ">1"}, {name: nfs}]}
  - {name: archive, modules: [{name: nfs}]}
  noneOf: [{name: storage, modules: [{name: old-ingress}]}]
""")
    assert found == Requirements(
        kubernetes=parse_constraint(">=1.30"),
        platform=parse_constraint("~1.60 || ^2"),
        mandatory=(needs("ingress", ">=1.2, <2"), needs("dns")),
        conditional=(needs("metrics", "^2"),),
        any_of=(
            DependencyGroup("storage", "classes", (needs("ceph", ">1"), needs("nfs"))),
            DependencyGroup("archive", "", (needs("nfs"),)),
        ),
        none_of=(DependencyGroup("storage", "", (needs("old-ingress"),)),),
    )


def test_the_short_form() -> None:
    found = read("""
kubernetes: ">=1.30"
platform: "1.x"
modules: {ingress: ">=1.2", metrics: " ^2  !optional ", dns: "", log: , trace: "!optional"}
""")
    assert found == Requirements(
        kubernetes=parse_constraint(">=1.30"),
        platform=parse_constraint("1.x"),
        mandatory=(needs("ingress", ">=1.2"), needs("dns"), needs("log")),
        conditional=(needs("metrics", "^2"), needs("trace")),
    )


def test_a_module_may_be_called_like_a_bucket() -> None:
    assert read("modules: {mandatory: '>1'}").mandatory == (needs("mandatory", ">1"),)


def test_only_module_yaml_asks_for_a_bootstrapped_cluster() -> None:
    assert read("{bootstrapped: true, kubernetes: '>1'}", legacy=True).kubernetes == parse_constraint(">1")
    with pytest.raises(FormatError, match=r"requirements\.bootstrapped: unknown key"):
        read("{bootstrapped: true}")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "requirements: expected an object, found a list"),
        ("{kubernets: '>1'}", r"requirements\.kubernets: unknown key; did you mean 'kubernetes'"),
        ("{kubernetes: 1.30}", r"requirements\.kubernetes: expected an object, found a number"),
        (
            "{kubernetes: {constrain: '1'}}",
            r"requirements\.kubernetes\.constrain: unknown key; did you mean 'constraint'",
        ),
        ("{kubernetes: {constraint: 1.30}}", r"requirements\.kubernetes\.constraint: expected a string.*in quotes"),
        ("{kubernetes: 'new'}", r"requirements\.kubernetes: version constraint 'new'"),
        ("{platform: '>1', deckhouse: '>1'}", r"requirements\.deckhouse: the same as platform"),
        ("{modules: []}", r"requirements\.modules: expected an object"),
        ("{modules: {a: '>1', b: [x]}}", r"requirements\.modules\.a: unknown key; known are mandatory"),
        ("{modules: {mandatroy: [{name: a}]}}", r"modules\.mandatroy: unknown key; did you mean 'mandatory'"),
        ("{modules: {a: 1.5, b: '1'}}", r"modules\.a: expected a string, found a number; put it in quotes"),
        ("{modules: {a: 'x y z'}}", r"modules\.a: version constraint"),
        ("{modules: {A_b: '1'}}", r"modules\.A_b: 'A_b' cannot be a module"),
        ("{modules: {'': '1'}}", r"modules\.: required"),
        ("{modules: {mandatory: 5}}", r"modules\.mandatory: expected a list, found an integer"),
        ("{modules: {mandatory: [a]}}", r"modules\.mandatory\[0\]: expected an object, found a string"),
        ("{modules: {mandatory: [{}]}}", r"modules\.mandatory\[0\]\.name: required"),
        ("{modules: {mandatory: [{name: a, version: '1'}]}}", r"mandatory\[0\]\.version: unknown key"),
        ("{modules: {mandatory: [{name: a}, {name: a}]}}", r"mandatory\[1\]\.name: a is named twice"),
        ("{modules: {mandatory: [{name: a, constraint: '>>1'}]}}", r"mandatory\[0\]\.constraint: version constraint"),
        ("{modules: {conditional: [{name: a}]}}", r"conditional\[0\]\.constraint: required for a"),
        ("{modules: {anyOf: [{modules: [{name: a}]}]}}", r"anyOf\[0\]\.name: required"),
        ("{modules: {anyOf: [{name: g}]}}", r"anyOf\[0\]\.modules: at least one"),
        ("{modules: {noneOf: [{name: g, modules: []}]}}", r"noneOf\[0\]\.modules: at least one"),
        (
            "{modules: {noneOf: [{name: g, modules: [{name: a}]}, {name: g, modules: [{name: b}]}]}}",
            r"noneOf\[1\]\.name: a second group 'g' in noneOf",
        ),
        (
            "{modules: {anyOf: [{name: g, modules: [{name: a}, {name: a}]}]}}",
            r"anyOf\[0\]\.modules\[1\]\.name: a is named",
        ),
        (
            "{modules: {mandatory: [{name: a}], conditional: [{name: a, constraint: '1'}]}}",
            r"modules\.conditional: a is in mandatory too",
        ),
        (
            "{modules: {mandatory: [{name: a}], anyOf: [{name: g, modules: [{name: a}]}]}}",
            r"anyOf: a is in mandatory too",
        ),
        (
            "{modules: {conditional: [{name: a, constraint: '1'}], anyOf: [{name: g, modules: [{name: a}]}]}}",
            r"anyOf: a is in conditional too",
        ),
        (
            "{modules: {mandatory: [{name: a}], noneOf: [{name: g, modules: [{name: a}]}]}}",
            r"noneOf: a is in mandatory too",
        ),
        (
            "{modules: {anyOf: [{name: g, modules: [{name: a}]}], noneOf: [{name: g, modules: [{name: a}]}]}}",
            r"noneOf: a is in anyOf too",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_path(text: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        read(text)


def test_lists_have_an_end() -> None:
    many: list[JsonValue] = [{"name": f"m{number}"} for number in range(MAX_ENTRIES + 1)]
    with pytest.raises(FormatError, match=r"mandatory: more than"):
        read_requirements({"modules": {"mandatory": many}}, "requirements")
    groups: list[JsonValue] = [{"name": f"g{number}", "modules": [{"name": "a"}]} for number in range(MAX_ENTRIES + 1)]
    with pytest.raises(FormatError, match=r"anyOf: more than"):
        read_requirements({"modules": {"anyOf": groups}}, "requirements")
    with pytest.raises(FormatError, match=r"modules: more than"):
        read_requirements({"modules": {f"m{number}": "" for number in range(MAX_ENTRIES + 1)}}, "requirements")
    assert len(read_requirements({"modules": {"mandatory": many[1:]}}, "requirements").mandatory) == MAX_ENTRIES


@pytest.mark.parametrize("name", ["a", "web-2", "2web", "a" * 63])
def test_names(name: str) -> None:
    assert is_package_name(name)


@pytest.mark.parametrize("name", ["", "a" * 64, "-a", "a-", "A", "a_b", "a.b", "a\n", "ä"])
def test_what_is_no_name(name: str) -> None:
    assert not is_package_name(name)
