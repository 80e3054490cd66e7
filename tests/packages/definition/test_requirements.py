"""Requirements of packages. The names of required packages are resolved into the names that the scheduler uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import ShapeError
from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.packages.definition.requirements import (
    MAX_INSTANCE,
    NO_REQUIREMENTS,
    ApplicationNeeds,
    Dependency,
    DependencyGroup,
    DependsOn,
    Requirements,
    is_instance_name,
    is_package_name,
    package_of,
    resolved,
    with_depends_on,
)


def needs(name: str, constraint: str = "") -> Dependency:
    return Dependency(name, parse_constraint(constraint))


def group(name: str, *members: Dependency) -> DependencyGroup:
    return DependencyGroup(name, "", members)


def on(name: str, version: str = "", namespace: str = "") -> DependsOn:
    return DependsOn("Application" if namespace else "Module", namespace, name, parse_constraint(version))


def test_requirements_without_applications_need_no_resolution() -> None:
    wanted = Requirements(mandatory=(needs("ingress"),))
    assert resolved(wanted, "prod") is wanted


def test_required_applications_are_resolved_in_the_namespace_of_the_dependent() -> None:
    wanted = Requirements(
        platform=parse_constraint(">1"),
        mandatory=(needs("ingress"),),
        conditional=(needs("metrics", "^2"),),
        any_of=(group("storage", needs("ceph")),),
        applications=ApplicationNeeds(
            mandatory=(needs("db", "^3"), needs("shared/mail")),
            conditional=(needs("web.v2", "^1"),),
            any_of=(group("cache", needs("redis"), needs("shared/redis")),),
            none_of=(group("old", needs("shop")),),
        ),
    )
    assert resolved(wanted, "prod") == Requirements(
        platform=parse_constraint(">1"),
        mandatory=(needs("ingress"), needs("prod.db", "^3"), needs("shared.mail")),
        conditional=(needs("metrics", "^2"), needs("prod.web.v2", "^1")),
        any_of=(group("storage", needs("ceph")), group("cache", needs("prod.redis"), needs("shared.redis"))),
        none_of=(group("old", needs("prod.shop")),),
    )


def test_groups_of_modules_and_applications_get_distinct_names() -> None:
    wanted = Requirements(
        any_of=(group("a", needs("m")),),
        applications=ApplicationNeeds(
            any_of=(group("a (applications)", needs("x")), group("a", needs("y")), group("b", needs("z")))
        ),
    )
    assert [each.name for each in resolved(wanted, "prod").any_of] == [
        "a",
        "a (applications)",
        "a (applications) (applications)",
        "b",
    ]


@pytest.mark.parametrize(
    ("contradicting", "why"),
    [
        (
            ApplicationNeeds(mandatory=(needs("db"), needs("prod/db"))),
            r"in namespace prod: mandatory: prod\.db is named twice",
        ),
        (
            ApplicationNeeds(conditional=(needs("db", "1"), needs("prod/db", "2"))),
            r"conditional: prod\.db is named twice",
        ),
        (
            ApplicationNeeds(none_of=(group("g", needs("db"), needs("prod/db")),)),
            r"noneOf g: prod\.db is named twice; join its constraints",
        ),
        (
            ApplicationNeeds(mandatory=(needs("prod/db"),), none_of=(group("g", needs("db")),)),
            r"prod\.noneOf: prod\.db is also in mandatory",
        ),
    ],
)
def test_requirements_that_contradict_in_one_namespace_are_refused_there(
    contradicting: ApplicationNeeds, why: str
) -> None:
    wanted = Requirements(applications=contradicting)
    with pytest.raises(ShapeError, match=why):
        resolved(wanted, "prod")
    assert resolved(wanted, "test").applications is None


def test_one_application_may_be_in_two_groups() -> None:
    twice = ApplicationNeeds(any_of=(group("a", needs("db")), group("b", needs("prod/db"))))
    found = resolved(Requirements(applications=twice), "prod")
    assert [member.name for each in found.any_of for member in each.members] == ["prod.db", "prod.db"]


def test_dependencies_of_a_resource_are_mandatory_requirements() -> None:
    found = with_depends_on(NO_REQUIREMENTS, (on("db", "^3", "prod"), on("ingress")))
    assert found == Requirements(mandatory=(needs("prod.db", "^3"), needs("ingress")))
    assert with_depends_on(found, ()) is found


def test_constraints_of_package_and_resource_are_combined() -> None:
    wanted = Requirements(
        mandatory=(needs("a", ">=1"), needs("b", "1 || 2"), needs("c"), needs("d", "^1"), needs("e", "^1")),
        conditional=(needs("f", ">=1"), needs("g", ">=1")),
        any_of=(group("x", needs("h"), needs("i")),),
    )
    found = with_depends_on(
        wanted, (on("a", "<3"), on("b", ">=2"), on("c", "^1"), on("d"), on("e", "^1"), on("f", "<3"), on("h", "^1"))
    )
    assert [(each.name, each.constraint.text) for each in found.mandatory] == [
        ("a", ">=1, <3"),
        ("b", "(1 || 2) and (>=2)"),
        ("c", "^1"),
        ("d", "^1"),
        ("e", "^1"),
        ("f", ">=1, <3"),
        ("h", "^1"),
    ]
    # A conditional requirement becomes a mandatory one.
    assert found.conditional == (needs("g", ">=1"),)
    assert found.any_of == wanted.any_of
    assert [found.mandatory[1].constraint.allows(version) for version in ("1.5.0", "2.5.0", "3.0.0")] == [
        False,
        True,
        False,
    ]


def test_dependencies_cannot_be_added_to_unresolved_requirements() -> None:
    wanted = Requirements(applications=ApplicationNeeds(mandatory=(needs("db"),)))
    with pytest.raises(AssertionError):
        with_depends_on(wanted, (on("a"),))


@given(
    st.lists(st.sampled_from(["a", "b", "prod/a", "test/a", "prod/b"]), unique=True),
    st.lists(st.sampled_from(["a", "b", "c"]), unique=True),
    st.lists(st.builds(on, st.sampled_from("abc"), st.just("^1"), st.sampled_from(["", "prod", "test"])), unique=True),
)
def test_each_required_package_is_listed_once(
    applications: list[str], modules: list[str], depends_on: list[DependsOn]
) -> None:
    wanted = Requirements(
        mandatory=tuple(needs(name) for name in modules),
        applications=ApplicationNeeds(mandatory=tuple(needs(name) for name in applications)),
    )
    expected = {*modules, *(package_of(name, "prod") for name in applications), *(each.package for each in depends_on)}
    try:
        found = with_depends_on(resolved(wanted, "prod"), depends_on)
    except ShapeError:
        assert {"a", "prod/a"} <= set(applications) or {"b", "prod/b"} <= set(applications)
    else:
        assert sorted(each.name for each in found.mandatory) == sorted(expected)


def test_a_dependency_is_printed_with_kind_namespace_and_name() -> None:
    assert (str(on("db", "", "prod")), on("db", "", "prod").package) == ("Application prod/db", "prod.db")
    assert (str(on("ingress")), on("ingress").package) == ("Module ingress", "ingress")


@pytest.mark.parametrize("name", ["a", "web-2", "web.v2", "a" * MAX_INSTANCE])
def test_valid_instance_names_are_accepted(name: str) -> None:
    assert is_instance_name(name)


@pytest.mark.parametrize(
    "name", ["", "a" * (MAX_INSTANCE + 1), "-a", "a-", "a..b", ".a", "a.", "a.-b", "A", "a/b", "a\n"]
)
def test_invalid_instance_names_are_refused(name: str) -> None:
    assert not is_instance_name(name)


@pytest.mark.parametrize("name", ["a", "web-2", "2web", "a" * 63])
def test_valid_package_names_are_accepted(name: str) -> None:
    assert is_package_name(name)


@pytest.mark.parametrize("name", ["", "a" * 64, "-a", "a-", "A", "a_b", "a.b", "a\n", "ä"])
def test_invalid_package_names_are_refused(name: str) -> None:
    assert not is_package_name(name)
