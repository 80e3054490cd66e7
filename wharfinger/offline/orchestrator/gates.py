"""The check, at the end of a run, whether the daemon's own gates would let each package be on.

The daemon does not apply a package whose requirements are not met. So the manifests of such a package are left out of the result,
and a failure gives the reason. If the requirements of the package name a package that failed, the failure lists that package as
a blocker (`Failure.blockers`).
"""

from collections.abc import Mapping
from dataclasses import replace

from wharfinger.offline.controllers.package import Loaded
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.orchestrator.result import Failure, Result
from wharfinger.offline.store.kinds import APPLICATION, MODULE
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.errors import ArtifactNotFoundError
from wharfinger.runtime.fixpoint.converge import converge
from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.plan.bodies import Judged, PlanBodies, Refused
from wharfinger.runtime.resources.identity import AppId, PackageId, package_id
from wharfinger.runtime.scheduler.rules import Facts


async def judged(result: Result, loaded: Mapping[Id, Loaded], facts: Facts, tree: Tree) -> Result:
    """Return the result with a failure for each package that would not be on, and without the manifests of these packages."""
    built = {who: each for who, each in loaded.items() if who not in result.failed}
    definitions = {(each.spec.package, each.spec.version): each.definition for each in built.values()}

    async def load(package: str, version: str) -> Definition:
        found = definitions.get((package, version))
        if found is None:
            raise ArtifactNotFoundError(f"{package} {version} was not read")
        return found

    bodies = PlanBodies((each.spec for each in built.values()), facts, load)
    await converge(bodies, bodies.seeds, limit=1)
    failed: dict[Id, Failure] = {}
    for who, each in sorted(built.items()):
        finding = bodies.findings[each.spec.id.name]
        if isinstance(finding, Judged) and finding.decision.on and not finding.held_by:
            continue
        message, named = _message(finding), _names(finding)
        place = tree.declared[who].place if who in tree.declared else None
        off = tuple(
            sorted(other for name in named if (other := node_of(package_id(name))) in result.failed or other in failed)
        )
        failed[who] = Failure(who, message, place, off)
    if not failed:
        return result
    return replace(
        result,
        manifests={who: made for who, made in result.manifests.items() if who not in failed},
        failed=dict(sorted({**result.failed, **failed}.items())),
    )


def _message(finding: Judged | Refused) -> str:
    if isinstance(finding, Refused):
        return finding.message
    return f"waits for {finding.held_by}" if finding.held_by else finding.decision.message


def _names(finding: Judged | Refused) -> list[str]:
    return sorted(finding.node.names()) if isinstance(finding, Judged) else []


def node_of(identity: PackageId) -> Id:
    """Return the id of the node that builds a package."""
    if isinstance(identity, AppId):
        return Id(APPLICATION, identity.namespace, identity.instance)
    return Id(MODULE, "", identity.name)
