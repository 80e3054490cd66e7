"""Requirements in the forms in which package files write them."""

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue, ShapeError
from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.definition.requirements import (
    NO_REQUIREMENTS,
    ApplicationNeeds,
    Dependency,
    DependencyGroup,
    Requirements,
)
from wharfinger.packages.definition.requirements_reader import (
    MAX_DESCRIPTION,
    MAX_ENTRIES,
    MAX_GROUP_NAME,
    constraint_at,
    read_requirements,
)


def read(text: str, *, legacy: bool = False, of_module: bool = False) -> Requirements:
    return read_requirements(read_yaml(text, what="test"), "requirements", legacy=legacy, of_module=of_module)


def needs(name: str, constraint: str = "") -> Dependency:
    return Dependency(name, parse_constraint(constraint))


@pytest.mark.parametrize(
    "text", ["", "{}", "{modules: {}}", "{modules: }", "{kubernetes: , platform: ''}", "{modules: {anyOf: }}"]
)
def test_absent_or_empty_requirements_are_none(text: str) -> None:
    assert read(text) == NO_REQUIREMENTS


def test_requirements_in_the_long_form_are_read() -> None:
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


def test_requirements_in_the_short_form_are_read() -> None:
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


def test_required_applications_are_read_in_the_long_form() -> None:
    found = read("""
modules: {mandatory: [{name: database}]}
applications:
  mandatory: [{name: database, constraint: "^3"}, {name: shared/mail}, {name: web.v2}]
  conditional: [{name: metrics, constraint: "^2"}]
  anyOf: [{name: cache, description: " any ", applications: [{name: redis}, {name: shared/valkey, constraint: ">8"}]}]
  noneOf: [{name: old, applications: [{name: shared/shop}]}]
""")
    assert found.mandatory == (needs("database"),)
    assert found.applications == ApplicationNeeds(
        mandatory=(needs("database", "^3"), needs("shared/mail"), needs("web.v2")),
        conditional=(needs("metrics", "^2"),),
        any_of=(DependencyGroup("cache", "any", (needs("redis"), needs("shared/valkey", ">8"))),),
        none_of=(DependencyGroup("old", "", (needs("shared/shop"),)),),
    )


@pytest.mark.parametrize("text", ["{applications: }", "{applications: {}}", "{applications: {mandatory: []}}"])
def test_empty_lists_of_applications_are_no_requirements(text: str) -> None:
    assert read(text, of_module=True) == NO_REQUIREMENTS


def test_a_module_must_give_the_namespace_of_an_application() -> None:
    written = "applications: {mandatory: [{name: prod/web}], anyOf: [{name: g, applications: [{name: %s}]}]}"
    found = read(written % "prod/db", of_module=True).applications
    assert found is not None
    assert found.mandatory == (needs("prod/web"),)
    with pytest.raises(
        FormatError, match=r"anyOf\[0\]\.applications\[0\]\.name: db: a Module has no namespace.*namespace/db"
    ):
        read(written % "db", of_module=True)


def test_an_invalid_constraint_is_refused_with_its_path() -> None:
    assert constraint_at("", "a") == parse_constraint("")
    with pytest.raises(FormatError, match=r"^spec\.x: version constraint"):
        constraint_at(">>", "spec.x")


def test_a_module_may_have_the_name_of_a_requirements_key() -> None:
    assert read("modules: {mandatory: '>1'}").mandatory == (needs("mandatory", ">1"),)


def test_only_module_yaml_may_require_a_bootstrapped_cluster() -> None:
    assert read("{bootstrapped: true, kubernetes: '>1'}", legacy=True).kubernetes == parse_constraint(">1")
    with pytest.raises(FormatError, match=r"requirements\.bootstrapped: unknown key"):
        read("{bootstrapped: true}")


def test_module_yaml_cannot_require_applications() -> None:
    with pytest.raises(FormatError, match=r"requirements\.applications: unknown key"):
        read("{applications: {}}", legacy=True)


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
        ("{platform: '>1', deckhouse: '>1'}", r"requirements\.deckhouse: means the same as platform"),
        ("{modules: []}", r"requirements\.modules: expected an object"),
        ("{modules: {a: '>1', b: [x]}}", r"requirements\.modules\.a: unknown key; known keys: mandatory"),
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
            r"modules\.conditional: a is also in mandatory",
        ),
        (
            "{modules: {mandatory: [{name: a}], anyOf: [{name: g, modules: [{name: a}]}]}}",
            r"anyOf: a is also in mandatory",
        ),
        (
            "{modules: {conditional: [{name: a, constraint: '1'}], anyOf: [{name: g, modules: [{name: a}]}]}}",
            r"anyOf: a is also in conditional",
        ),
        (
            "{modules: {mandatory: [{name: a}], noneOf: [{name: g, modules: [{name: a}]}]}}",
            r"noneOf: a is also in mandatory",
        ),
        (
            "{modules: {anyOf: [{name: g, modules: [{name: a}]}], noneOf: [{name: g, modules: [{name: a}]}]}}",
            r"noneOf: a is also in anyOf",
        ),
        ("{applications: []}", r"requirements\.applications: expected an object"),
        ("{applications: {db: '>1'}}", r"applications\.db: unknown key; known keys: mandatory"),
        ("{application: {}}", r"requirements\.application: unknown key; did you mean 'applications'"),
        ("{applications: {mandatory: [{}]}}", r"applications\.mandatory\[0\]\.name: required"),
        ("{applications: {mandatory: [{name: A}]}}", r"mandatory\[0\]\.name: 'A' cannot be an application; write"),
        ("{applications: {mandatory: [{name: a/b/c}]}}", r"'a/b/c' cannot be an application"),
        ("{applications: {mandatory: [{name: /b}]}}", r"'/b' cannot be an application"),
        ("{applications: {mandatory: [{name: a/}]}}", r"'a/' cannot be an application"),
        ("{applications: {mandatory: [{name: a.b/c}]}}", r"'a\.b/c' cannot be an application"),
        (f"{{applications: {{mandatory: [{{name: {'a' * 54}}}]}}}}", r"cannot be an application"),
        ("{applications: {mandatory: [{name: a}, {name: a}]}}", r"mandatory\[1\]\.name: a is named twice"),
        ("{applications: {conditional: [{name: a}]}}", r"conditional\[0\]\.constraint: required for a"),
        (
            "{applications: {anyOf: [{name: g, modules: [{name: a}]}]}}",
            r"anyOf\[0\]\.modules: unknown key; known keys:",
        ),
        ("{modules: {anyOf: [{name: g, applications: [{name: a}]}]}}", r"anyOf\[0\]\.applications: unknown key"),
        ("{applications: {anyOf: [{name: g}]}}", r"anyOf\[0\]\.applications: at least one"),
        (
            "{applications: {mandatory: [{name: a}], noneOf: [{name: g, applications: [{name: a}]}]}}",
            r"applications\.noneOf: a is also in mandatory; keep it in one of the two",
        ),
    ],
)
def test_invalid_requirements_are_refused_with_their_path(text: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        read(text)


def test_the_length_of_lists_is_limited() -> None:
    many: list[JsonValue] = [{"name": f"m{number}"} for number in range(MAX_ENTRIES + 1)]
    with pytest.raises(FormatError, match=r"mandatory: more than"):
        read_requirements({"modules": {"mandatory": many}}, "requirements")
    groups: list[JsonValue] = [{"name": f"g{number}", "modules": [{"name": "a"}]} for number in range(MAX_ENTRIES + 1)]
    with pytest.raises(FormatError, match=r"anyOf: more than"):
        read_requirements({"modules": {"anyOf": groups}}, "requirements")
    with pytest.raises(FormatError, match=r"modules: more than"):
        read_requirements({"modules": {f"m{number}": "" for number in range(MAX_ENTRIES + 1)}}, "requirements")
    assert len(read_requirements({"modules": {"mandatory": many[1:]}}, "requirements").mandatory) == MAX_ENTRIES
    apps: JsonValue = {"mandatory": [{"name": f"n/a{number}"} for number in range(MAX_ENTRIES + 1)]}
    with pytest.raises(FormatError, match=r"applications\.mandatory: more than"):
        read_requirements({"applications": apps}, "requirements")


@pytest.mark.parametrize("kind", ["modules", "applications"])
@pytest.mark.parametrize("bucket", ["anyOf", "noneOf"])
def test_group_names_and_descriptions_are_limited(kind: str, bucket: str) -> None:
    def group(name: int, description: int) -> JsonValue:
        entry: JsonValue = {"name": "n" * name, "description": "d" * description, kind: [{"name": "a"}]}
        return {kind: {bucket: [entry]}}

    read_requirements(group(MAX_GROUP_NAME, MAX_DESCRIPTION), "r")
    with pytest.raises(
        ShapeError, match=rf"^r\.{kind}\.{bucket}\[0\]\.name: expected at most 100 characters, found 900000"
    ) as caught:
        read_requirements(group(900_000, 0), "r")
    assert len(str(caught.value)) < 200
    with pytest.raises(ShapeError, match=rf"{bucket}\[0\]\.description: expected at most 300 characters, found 301"):
        read_requirements(group(1, MAX_DESCRIPTION + 1), "r")
