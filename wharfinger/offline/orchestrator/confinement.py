"""The confinement of Applications to their namespaces, by the rules that the daemon enforces before it writes anything.

An Application may have only objects of its own namespace, unless the tree contains its Namespace with the label
``wharfinger.dev/cluster-scope: allowed``, or the daemon is run with ``--application-scope cluster``. The daemon would not apply
an Application with other objects, so the Application fails in an offline run, too.
"""

from collections.abc import Mapping
from dataclasses import replace

from wharfinger.cluster.objects.scope import ALLOWED, CLUSTER_SCOPE_LABEL, CLUSTER_SCOPED, MAX_NAMED, remedy
from wharfinger.formats.json.value import find_str
from wharfinger.formats.listing import listed
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.orchestrator.result import Failure, Manifest, Result
from wharfinger.offline.orchestrator.scopes import Scopes
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.kinds import APPLICATION
from wharfinger.runtime.fixpoint.model import Id


def confined(result: Result, tree: Tree) -> Result:
    """Check that each Application has objects in its own namespace only, unless its namespace allows more. In the returned
    result, an Application that breaks this rule has a failure in place of its objects.
    """
    objects = result.objects
    scopes = Scopes(each.object for each in objects)
    allowed = {
        each.id.name
        for each in objects
        if each.id.kind == "Namespace" and find_str(each.object, "metadata", "labels", CLUSTER_SCOPE_LABEL) == ALLOWED
    }
    failed: dict[Id, Failure] = {}
    for who, made in result.manifests.items():
        if who.kind != APPLICATION or who.namespace in allowed:
            continue
        outside = [each for each in made if _is_outside(each, who.namespace, scopes)]
        if outside:
            place = tree.declared[who].place if who in tree.declared else None
            failed[who] = Failure(who, _message(outside, who.namespace, scopes), place)
    return _without(result, failed) if failed else result


def _without(result: Result, failed: Mapping[Id, Failure]) -> Result:
    return replace(
        result,
        manifests={who: made for who, made in result.manifests.items() if who not in failed},
        failed=dict(sorted({**result.failed, **failed}.items())),
    )


def _is_outside(manifest: Manifest, namespace: str, scopes: Scopes) -> bool:
    namespaced = scopes.is_namespaced(manifest.object)
    if namespaced is None:  # a kind that neither Kubernetes nor the tree defines
        return manifest.id.namespace not in {"", namespace}
    return not namespaced or manifest.id.namespace != namespace


def _message(outside: list[Manifest], namespace: str, scopes: Scopes) -> str:
    named = (
        f"{shown(each.id)}{CLUSTER_SCOPED if scopes.is_namespaced(each.object) is False else ''}" for each in outside
    )
    verb = "is" if len(outside) == 1 else "are"
    return (
        f"{listed(named, MAX_NAMED)} {verb} outside of the namespace {namespace}, to which an Application is confined; "
        f"{remedy(namespace)}"
    )
