"""The versions of packages in repositories as nodes of the scheduler, and the search for versions with which a package can be on.

The requirements of a version are those in the index of its package. Versions without details in the index (old versions, and
versions whose details are only in the files of the package) cannot be judged, and are left out. The index of a package is read
only when the search needs the package, so requests are made only for packages that take part in a conflict.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.version_constraint import parse_constraint
from wharfinger.packages.definition.requirements import Requirements, resolved, with_depends_on
from wharfinger.packages.definition.requirements_reader import read_requirements
from wharfinger.runtime.resources.identity import ModuleId
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.state import Graph
from wharfinger.runtime.scheduler.version_search import SearchResult, find_versions
from wharfinger.runtime.versions.package_index import PackageIndex, VersionDetails

MAX_PACKAGES: Final = 12
"""The limit on the number of packages whose versions are read for one search."""

OtherVersions: TypeAlias = Callable[[str], Awaitable[Sequence[Node]]]
"""A function that returns a node for each version of a package in its repository, the newest first; () if the versions are
not known.
"""


def needs_of(spec: PackageSpec, details: VersionDetails) -> Requirements:
    """Return the requirements that a version would have if it were installed for a resource. Raises FormatError."""
    of_module = isinstance(spec.id, ModuleId)
    needs = read_requirements(details.requirements, "requirements", of_module=of_module)
    if details.kubernetes and needs.kubernetes is None:
        needs = replace(needs, kubernetes=parse_constraint(details.kubernetes))
    return with_depends_on(resolved(needs, spec.id.namespace), spec.directives.depends_on)


def nodes_of(node: Node, spec: PackageSpec, index: PackageIndex) -> tuple[Node, ...]:
    """Return a node for each version whose details are in the index, as the version would be installed for a resource; the newest
    version first.
    """
    found: list[Node] = []
    for version in index.versions:
        details = index.details.get(version)
        if details is None or details.unreadable or (details.kind and details.kind != spec.id.kind):
            continue
        try:
            found.append(replace(node, version=version, requirements=needs_of(spec, details)))
        except FormatError:
            continue  # a version whose requirements cannot be read is not suggested
    return tuple(found)


async def search_versions(
    graph: Graph, name: str, others: OtherVersions, wanted: Node | None = None
) -> SearchResult | None:
    """Return versions of packages with which the package ``name`` can be on. With ``wanted``, this package has the version
    ``wanted``.

    Return None in the same cases as :func:`~wharfinger.runtime.scheduler.version_search.find_versions`. The versions of at most
    MAX_PACKAGES packages are read. If the search needs more, the result names the packages that were not read.
    """
    known: dict[str, Sequence[Node]] = {}
    while True:
        missing: set[str] = set()

        def candidates(each: str, missing: set[str] = missing) -> Sequence[Node]:
            if each not in known:
                missing.add(each)
            return known.get(each, ())

        stop = trio.from_thread.check_cancelled  # a large search takes seconds
        search = partial(find_versions, graph, name, candidates, wanted=wanted, between=stop)
        result = await trio.to_thread.run_sync(search)
        room = MAX_PACKAGES - len(known)
        if (result is not None and result.changes) or not missing:
            return result
        if room <= 0:
            unread = tuple(sorted(missing))
            return (
                SearchResult((), complete=False, tried=unread, unread=unread)
                if result is None
                else replace(result, unread=unread)
            )
        for each in sorted(missing)[:room]:
            known[each] = await others(each)
