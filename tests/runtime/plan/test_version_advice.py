"""A plan's advice about a package that is off: other versions of packages, from an index, with which the package would be on."""

from collections.abc import Mapping

import pytest
import trio

from tests.runtime.support.nodes import node
from tests.runtime.support.planned import Packages, inputs, spec
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.plan.plan import Plan, judged_plan
from wharfinger.runtime.plan.version_advice import MAX_ADVISED, with_versions
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.versions.package_index import PackageIndex, VersionDetails

DIGEST = "sha256:" + "a" * 64


def index_of(package: str, versions: Mapping[str, JsonObject]) -> PackageIndex:
    details = {version: VersionDetails(DIGEST, requirements=needs) for version, needs in versions.items()}
    return PackageIndex("", package, tuple(versions), details=details)


def advised(wanted: list[PackageSpec], nodes: list[Node], *indexes: PackageIndex) -> tuple[Plan, list[str]]:
    read: list[str] = []

    async def read_index(package: str) -> PackageIndex | None:
        read.append(package)
        return next((each for each in indexes if each.package == package), None)

    async def main() -> Plan:
        plan, bodies = await judged_plan(inputs(*wanted), Packages(*nodes).load, Facts())
        return await with_versions(plan, {each.id.name: each for each in wanted}, bodies, Facts(), read_index)

    return trio.run(main), read


def remedies(plan: Plan) -> dict[str, str]:
    return {
        each.name: each.explanation.remedy.partition("; these")[2] or each.explanation.remedy.rpartition("; ")[2]
        for each in plan.packages
        if each.explanation is not None
    }


def test_suitable_versions_in_the_folder_are_suggested() -> None:
    wanted = [spec("web.shop"), spec("data.db"), spec("other")]
    nodes = [node("web.shop", "data.db >=2"), node("data.db"), node("other", script=True)]
    plan, read = advised(wanted, nodes, index_of("data-db", {"2.1.0": {}, "1.0.0": {}}))
    assert remedies(plan) == {"web.shop": " versions would work: data.db 2.1.0 (now 1.0.0)"}
    assert sorted(read) == ["data-db", "web-shop"]


def test_a_lack_of_suitable_versions_is_reported() -> None:
    wanted, nodes = [spec("web.shop"), spec("data.db")], [node("web.shop", "data.db >=2"), node("data.db")]
    plan, _ = advised(wanted, nodes)
    assert "versions would work" not in str(remedies(plan))
    plan, _ = advised(wanted, nodes, index_of("data-db", {"1.0.0": {}, "0.9.0": {}}))
    assert remedies(plan) == {"web.shop": "no known versions of data.db, web.shop would work together"}


def test_no_versions_are_searched_for_packages_that_are_on() -> None:
    plan, read = advised([spec("data.db")], [node("data.db")])
    assert (remedies(plan), read) == ({}, [])


@pytest.mark.parametrize("count", [MAX_ADVISED + 2])
def test_the_number_of_searches_is_bounded(count: int) -> None:
    names = [f"web.shop{number:02}" for number in range(count)]
    plan, _ = advised(
        [spec("db"), *map(spec, names)],
        [node("db"), *(node(name, "db >=2") for name in names)],
        index_of("db", {"1.1.0": {}}),
    )
    said = [text for text in remedies(plan).values() if text.startswith("no known versions")]
    assert len(said) == MAX_ADVISED
