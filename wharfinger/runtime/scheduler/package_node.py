"""The scheduler's node of a package, from its definition and its resource."""

from typing import Final

from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.definition.requirements import resolved, with_depends_on
from wharfinger.runtime.resources.identity import AppId, PackageId, is_global
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.scheduler.graph import Node, Verdict

GLOBAL_ORDER: Final = -1
"""The order of the Module ``global``, which is lower than any order that a package may have."""


def node_of(identity: PackageId, definition: Definition, wanted: Directives) -> Node:
    """Return the scheduler's node of a loaded package. Its requirements are those of the package, and those in
    ``spec.dependsOn`` of the resource.

    The Module ``global`` comes before all other packages.
    """
    on = isinstance(identity, AppId) or wanted.default is True
    return Node(
        name=identity.name,
        version=definition.version,
        requirements=with_depends_on(resolved(definition.requirements, identity.namespace), wanted.depends_on),
        order=GLOBAL_ORDER if is_global(identity) else definition.weight,
        floor=Verdict.ENABLE if on else Verdict.DISABLE,
        script=definition.enabled_script,
        subscriptions=definition.subscriptions,
        bundles=definition.bundles,
        declined=wanted.default is False,
        exclusive=definition.exclusive_group,
    )
