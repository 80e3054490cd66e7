"""Nodes for other versions of a package, and the search that reads these versions on demand."""

import time
from collections.abc import Callable, Sequence

import pytest
import trio

from tests.runtime.scheduler.test_version_search import graph_of
from tests.runtime.support.nodes import node
from tests.runtime.support.planned import spec
from wharfinger.runtime.repositories import version_nodes
from wharfinger.runtime.repositories.version_nodes import MAX_PACKAGES, nodes_of, search_versions
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.versions.package_index import PackageIndex, VersionDetails

DIGEST = "sha256:" + "a" * 64


def test_only_versions_with_valid_details_become_nodes() -> None:
    details = {
        "4.0.0": VersionDetails(DIGEST, kubernetes=">=1.30"),
        "3.0.0": VersionDetails(DIGEST, kind="Module"),
        "2.0.0": VersionDetails(DIGEST, requirements={"kubernetes": 3}),
        "1.0.0": VersionDetails(DIGEST, kind="Application"),
    }
    index = PackageIndex("default", "shop", ("5.0.0", *details), details=details)
    found = nodes_of(node("web.shop", order=7), spec("web.shop"), index)
    assert [(each.name, each.version, each.order) for each in found] == [
        ("web.shop", "4.0.0", 7),
        ("web.shop", "1.0.0", 7),
    ]
    assert str(found[0].requirements.kubernetes) == ">=1.30"


class Read:
    """A reader of package versions, which lists the packages that were read."""

    def __init__(self, *nodes: Node) -> None:
        self.nodes = nodes
        self.names: list[str] = []

    async def __call__(self, name: str) -> Sequence[Node]:
        self.names.append(name)
        return [each for each in self.nodes if each.name == name]


async def test_only_packages_in_the_conflict_are_read() -> None:
    graph = graph_of(node("db"), node("api", "db"), node("shop", "api >=2"), node("other", "db"))
    read = Read(node("api", "db >=2", version="2.0.0"), node("db", version="2.0.0"))
    result = await search_versions(graph, "shop", read)
    assert result is not None
    assert [str(each) for each in result.changes] == ["api 2.0.0 (now 1.0.0)", "db 2.0.0 (now 1.0.0)"]
    assert sorted(read.names) == ["api", "db", "shop"]


async def test_the_number_of_packages_read_is_limited() -> None:
    names = [f"p{number:02}" for number in range(2 * MAX_PACKAGES)]
    graph = graph_of(*map(node, names), node("shop", *(f"{name} >=2" for name in names)))
    read = Read()
    result = await search_versions(graph, "shop", read)
    assert result is not None
    assert (result.changes, result.complete) == ((), False)
    assert not set(result.unread) & set(read.names)
    assert len(read.names) == MAX_PACKAGES
    assert result.text.startswith("no set of versions that work together was found; other versions of p")
    assert await search_versions(graph, "p00", read) is None


async def test_a_search_without_a_result_names_unread_packages() -> None:
    """A version of an unread package might work, even if all versions of the read packages were tried without success."""
    names = [f"p{number:02}" for number in range(MAX_PACKAGES + 1)]
    graph = graph_of(*map(node, names), node("shop", *(f"{name} >=2" for name in names)))
    read = Read(*(node(name, version="2.0.0") for name in names))
    result = await search_versions(graph, "shop", read)
    assert result is not None
    assert result.changes == ()
    assert result.unread
    assert "no known versions" not in result.text


async def test_a_cancelled_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_arguments: object, between: Callable[[], None], **_others: object) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            between()
        raise AssertionError("the search goes on")

    monkeypatch.setattr(version_nodes, "find_versions", endless)
    with trio.move_on_after(0.01) as patience:
        await search_versions(graph_of(node("shop")), "shop", Read())
    assert patience.cancelled_caught
