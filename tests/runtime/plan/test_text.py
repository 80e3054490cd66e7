"""The output of a plan, for people and for programs."""

import json

from tests.runtime.support.nodes import module, node
from tests.runtime.support.planned import planned, spec
from wharfinger.formats.json.value import as_object, find, find_object
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.runtime.plan.plan import Plan, PlannedPackage, PlanState
from wharfinger.runtime.plan.text import plan_json, plan_text, plan_yaml, printable
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.why.remedies import of_absence, of_version

FACTS = Facts("1.31", edition="ee", bundle="Default")


def mixed() -> Plan:
    nodes = [
        node("web.shop", "data.db >=2", "ingress"),
        node("data.db", version="1.4.0"),
        module("ingress", order=10, script=True),
        node("web.blog", "ingress", "web.api"),
        node("web.api"),
        module("old"),
    ]
    specs = [spec(each.name, version=each.version, enabled=each.name != "old") for each in nodes]
    return planned(specs, nodes)


def test_a_plan_is_printed_as_a_table_with_reasons() -> None:
    assert plan_text(mixed()) == (
        "TURN   TIER   NAME       KIND          PACKAGE    VERSION   STATE     AFTER\n"
        "1      10     ingress    Module        ingress    1.0.0     on\n"
        "2      999    data.db    Application   data-db    1.4.0     on\n"
        "3      999    web.api    Application   web-api    1.0.0     on\n"
        "4      999    web.blog   Application   web-blog   1.0.0     on        ingress, web.api\n"
        "-      -      old        Module        old        1.0.0     off\n"
        "-      -      web.shop   Application   web-shop   1.0.0     blocked\n"
        "\n"
        "old stays off: DynamicallyDisabled: the package is disabled; enable it to install it again\n"
        "\n"
        "web.shop would not be on: DependencyVersionMismatch: dependency data.db (>=2) is not met by version 1.4.0\n"
        f"  remedy: {of_version('data.db', '>=2', 'web.shop')}\n"
        "\n"
        "ingress: its enabled script was not run\n"
        "\n"
        "1 of 5 wanted packages would not be on\n"
    )


def test_causes_are_printed_down_to_the_root() -> None:
    nodes = [node("web.shop", "data.db"), node("data.db", "storage")]
    assert plan_text(planned([spec(each.name) for each in nodes], nodes)).splitlines()[4:12] == [
        "data.db would not be on: DependencyNotEnabled: dependency storage is not installed",
        "  storage is not installed: there is no resource of that name",
        f"  remedy: {of_absence('storage', '', 'data.db')}",
        "",
        "web.shop would not be on: DependencyNotEnabled: dependency data.db is not enabled",
        "  data.db needs storage",
        "  storage is not installed: there is no resource of that name",
        f"  remedy: {of_absence('storage', '', 'data.db')}",
    ]


def test_the_last_line_summarizes_the_plan() -> None:
    assert plan_text(Plan(())) == "no package is wanted\n"
    assert plan_text(Plan((), left_alone=1)).splitlines()[1:] == [
        "1 document ignored (of another kind, or being deleted)"
    ]
    one = planned([spec("db")], [module("db")])
    assert plan_text(one).endswith("\nall wanted packages would be on: 1 package in 1 tier\n")
    off = planned([spec("db", enabled=False)], [module("db")])
    assert plan_text(off).endswith("\nno package is wanted\n")


def test_other_causes_are_printed_after_the_remedy() -> None:
    nodes = [node("web.shop", "data.db", kubernetes=">=1.30")]
    text = plan_text(planned([spec("web.shop")], nodes, Facts("1.28")))
    assert "  also: web.shop needs data.db\n" in text


def test_long_lists_of_dependencies_are_shortened() -> None:
    nodes = [*(module(f"m{number}") for number in range(8)), node("web.shop", *(f"m{number}" for number in range(8)))]
    assert "m0, m1, m2, m3, m4 and 3 more\n" in plan_text(planned([spec(each.name) for each in nodes], nodes))


def test_the_json_document_has_all_details() -> None:
    document = json.loads(plan_json(mixed(), FACTS))
    assert document["converges"] is False
    assert document["order"] == ["ingress", "data.db", "web.api", "web.blog"]
    assert document["facts"] == {
        "kubernetes": "1.31",
        "platform": "",
        "bootstrapped": True,
        "edition": "ee",
        "bundle": "Default",
    }
    assert document["packages"]["web.blog"] == {
        "kind": "Application",
        "package": "web-blog",
        "version": "1.0.0",
        "place": "web.blog.yaml, document 1",
        "state": "on",
        "reason": "EnabledByDefault",
        "turn": 4,
        "tier": 999,
        "after": ["ingress", "web.api"],
    }
    shop = document["packages"]["web.shop"]
    assert shop["causes"] == [
        {"subject": "web.shop", "state": "needs data.db (>=2)", "message": "data.db has version 1.4.0"}
    ]
    assert shop["remedy"].startswith("set spec.packageVersion of applications.wharfinger.dev db")
    assert document["packages"]["ingress"]["notes"] == ["its enabled script was not run"]


def test_yaml_and_json_have_the_same_content() -> None:
    plan = mixed()
    assert read_yaml(plan_yaml(plan, FACTS), what="plan") == json.loads(plan_json(plan, FACTS))
    assert plan_yaml(plan, FACTS).startswith("converges: false\n")


def test_an_order_of_zero_is_printed() -> None:
    plan = planned([spec("db")], [module("db", order=0)])
    document = as_object(read_yaml(plan_yaml(plan, FACTS), what="plan"), "plan")
    assert find(document, "packages", "db", "tier") == 0
    assert "1      0      db" in plan_text(plan)


def test_control_characters_in_a_plan_are_escaped() -> None:
    evil = PlannedPackage("db", "Module", "db", "1", "a\x1b[2J", PlanState.BLOCKED, "X", "red \x1b[31m\u202e\nline")
    plan = Plan((evil,))
    assert "db would not be on: X: red  [31m  line\n" in plan_text(plan)
    for document in (plan_json(plan, FACTS), plan_yaml(plan, FACTS)):
        assert document.replace("\n", "").isprintable()
        found = find_object(as_object(read_yaml(document, what="plan"), ""), "packages", "db")
        assert found["message"] == evil.message
    assert printable("a\tb") == "a b"
