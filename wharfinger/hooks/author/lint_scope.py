"""A check for objects that an Application may have only if a label of its namespace or an option of the daemon allows them.

This module knows the scope of built-in kinds. Custom kinds count as namespaced. CRDs in the chart are cluster-scoped, so they are
reported.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from wharfinger.cluster.api.errors import ReleaseError
from wharfinger.cluster.objects.ownership import flattened
from wharfinger.cluster.objects.scope import ALLOWED, CLUSTER_SCOPE_LABEL
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.listing import listed
from wharfinger.hooks.author.lint_sources import PACKAGE, LintFinding, finding
from wharfinger.kube.cluster_scoped import CLUSTER_SCOPED
from wharfinger.kube.resource import kind_of, name_of, namespace_of, split_api_version
from wharfinger.packages.author.package_check import Severity
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.definition.package_file import PackageType
from wharfinger.packages.rendering.renderer import Rendered

MAX_NAMED: Final = 5


def lint_scope(definition: Definition, rendered: Rendered, namespace: str) -> list[LintFinding]:
    """Return a warning that names the objects outside of the namespace, if there are any.

    A package that may be installed as a Module is not checked.
    """
    if definition.type is not PackageType.APPLICATION:
        return []
    hooks = tuple(hook for hook in rendered.hooks if hook not in rendered.tests)
    found = list(dict.fromkeys(_outside([*rendered.crds, *rendered.objects, *hooks], namespace)))
    if not found:
        return []
    message = (
        f"its chart has {listed(found, MAX_NAMED)} outside of the namespace of its Application; they are refused "
        f"unless the namespace has the label {CLUSTER_SCOPE_LABEL}={ALLOWED}, or the package declares type: Module and is "
        "installed as a Module"
    )
    return [finding(PACKAGE, 0, Severity.WARNING, message)]


def _outside(objects: Iterable[JsonObject], namespace: str) -> Iterator[str]:
    try:
        flat = flattened(objects)
    except ReleaseError:
        return  # reported by the rendering
    for obj in flat:
        api_version, kind = kind_of(obj)
        if (split_api_version(api_version)[0], kind) in CLUSTER_SCOPED:
            yield f"{kind} {name_of(obj)}"
        elif namespace_of(obj) not in ("", namespace):
            yield f"{kind} {namespace_of(obj)}/{name_of(obj)}"
