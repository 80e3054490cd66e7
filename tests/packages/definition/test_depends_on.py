"""The field ``spec.dependsOn``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.definition.depends_on import MAX_DEPENDS_ON, depends_on_checksum, read_depends_on
from wharfinger.packages.definition.requirements import DependsOn, is_instance_name, is_package_name


def read(text: str, *, own: str = "prod.web", namespace: str = "prod") -> tuple[DependsOn, ...]:
    return read_depends_on(read_yaml(text, what="test"), own=own, namespace=namespace)


@pytest.mark.parametrize("text", ["", "[]", "null"])
def test_an_absent_or_empty_list_has_no_dependencies(text: str) -> None:
    assert read(text) == ()


def test_dependencies_of_an_application_are_read() -> None:
    assert read("""
- {kind: Application, name: db, version: "^3"}
- {kind: Application, namespace: shared, name: db}
- {kind: Module, name: ingress, version: ">=1.2, <2"}
""") == (
        DependsOn("Application", "prod", "db", parse_constraint("^3")),
        DependsOn("Application", "shared", "db", parse_constraint("")),
        DependsOn("Module", "", "ingress", parse_constraint(">=1.2, <2")),
    )


def test_a_module_must_give_the_namespace_of_an_application() -> None:
    assert read("[{kind: Application, namespace: shared, name: web.v2}]", own="ingress", namespace="") == (
        DependsOn("Application", "shared", "web.v2", parse_constraint("")),
    )
    with pytest.raises(
        FormatError, match=r"dependsOn\[0\]\.namespace: required, since a Module has no namespace of its own"
    ):
        read("[{kind: Application, name: web}]", own="ingress", namespace="")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", r"^spec\.dependsOn: expected a list, found an object"),
        ("[a]", r"^spec\.dependsOn\[0\]: expected an object, found a string"),
        ("[{kind: Module, nam: a}]", r"dependsOn\[0\]\.nam: unknown key; did you mean 'name'"),
        (
            "[{kind: Module, name: a, constraint: '1'}]",
            r"dependsOn\[0\]\.constraint: unknown key; known keys: kind, name",
        ),
        ("[{name: a}]", r"dependsOn\[0\]\.kind: '' is neither Application nor Module"),
        ("[{kind: module, name: a}]", r"dependsOn\[0\]\.kind: 'module' is neither Application nor Module"),
        ("[{kind: Module}]", r"dependsOn\[0\]\.name: required"),
        ("[{kind: Module, name: 5}]", r"dependsOn\[0\]\.name: expected a string, found an integer; put it in quotes"),
        ("[{kind: Module, name: a.b}]", r"dependsOn\[0\]\.name: 'a\.b' cannot be the name of a Module"),
        ("[{kind: Application, name: a/b}]", r"dependsOn\[0\]\.name: 'a/b' cannot be the name of an Application"),
        (
            "[{kind: Module, name: a, namespace: b}]",
            r"dependsOn\[0\]\.namespace: a Module has no namespace; leave it out",
        ),
        ("[{kind: Application, name: a, namespace: B}]", r"dependsOn\[0\]\.namespace: 'B' cannot be a namespace"),
        (
            "[{kind: Module, name: a, version: 1.5}]",
            r"dependsOn\[0\]\.version: expected a string, found a number; put it in",
        ),
        ("[{kind: Module, name: a, version: new}]", r"dependsOn\[0\]\.version: version constraint 'new'"),
        (
            "[{kind: Module, name: a}, {kind: Module, name: a}]",
            r"dependsOn\[1\]: Module a is listed twice; join its versions",
        ),
        (
            "[{kind: Application, name: a}, {kind: Application, name: a, namespace: prod}]",
            r"dependsOn\[1\]: Application prod/a is listed twice",
        ),
        (
            "[{kind: Application, name: web}]",
            r"dependsOn\[0\]: this names the Application itself; a package cannot depend on itself",
        ),
        ("[{kind: Application, name: web, namespace: prod}]", r"dependsOn\[0\]: this names the Application itself"),
    ],
)
def test_invalid_dependencies_are_refused_with_their_path(text: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        read(text)


def test_a_module_that_depends_on_itself_is_refused() -> None:
    with pytest.raises(FormatError, match=r"dependsOn\[0\]: this names the Module itself"):
        read("[{kind: Module, name: web}]", own="web", namespace="")
    assert read("[{kind: Module, name: web}]")[0].package == "web"


def test_the_number_of_dependencies_is_limited() -> None:
    many: list[JsonValue] = [{"kind": "Module", "name": f"m{number}"} for number in range(MAX_DEPENDS_ON + 1)]
    assert len(read_depends_on(many[1:], own="a", namespace="")) == MAX_DEPENDS_ON
    with pytest.raises(FormatError, match=f"expected at most {MAX_DEPENDS_ON} entries, found {MAX_DEPENDS_ON + 1}"):
        read_depends_on(many, own="a", namespace="")


def test_the_checksum_ignores_order_and_spelling() -> None:
    assert depends_on_checksum(()) == ""
    one = read("[{kind: Module, name: a}, {kind: Application, name: b, version: '1'}]")
    other = read("[{kind: Application, name: b, namespace: prod, version: ' 1 '}, {kind: Module, name: a, version: }]")
    assert one != other
    assert depends_on_checksum(one) == depends_on_checksum(other)
    assert depends_on_checksum(one) != depends_on_checksum(one[:1])
    assert depends_on_checksum(one) != depends_on_checksum(
        read("[{kind: Module, name: a}, {kind: Application, name: b}]")
    )


KEYS = st.sampled_from(["kind", "name", "namespace", "version"])
WORDS = st.sampled_from(["Application", "Module", "web", "prod", "db", ">=1", "", "A b"])
ENTRIES = st.dictionaries(KEYS, WORDS | st.none() | st.integers() | st.text(max_size=5), max_size=4)


@given(st.lists(ENTRIES, max_size=4), st.sampled_from(["prod.web", "web"]))
def test_any_list_is_read_or_refused(entries: list[dict[str, str | int | None]], own: str) -> None:
    document: list[JsonValue] = [dict(entry) for entry in entries]
    try:
        found = read_depends_on(document, own=own, namespace="prod" if "." in own else "")
    except FormatError as error:
        assert "dependsOn" in str(error)
        return
    assert own not in {each.package for each in found}
    assert len({each.package for each in found}) == len(found)
    assert all(is_package_name(each.namespace) and is_instance_name(each.name) for each in found if each.namespace)
