"""The parameters of a policy: objects that a binding selects by name or by selector (``paramRef``)."""

from wharfinger.control_plane.catalog.catalog import Catalog, Served
from wharfinger.control_plane.catalog.conversions import shown
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.label_selectors import selects
from wharfinger.control_plane.objects.lenient_fields import part, text_map
from wharfinger.control_plane.objects.strategy import ClusterView
from wharfinger.formats.json.value import JsonObject


class ConfigurationError(Exception):
    """A policy cannot be evaluated, because the configuration of the policy or of its binding is wrong."""


def parameter_kind(policy: JsonObject, catalog: Catalog) -> Served | None:
    """Return the kind of a policy's parameters; None if the policy has no parameters.

    Raises ConfigurationError if the kind is not served.
    """
    wanted = part(policy, "spec", "paramKind")
    if wanted is None:
        return None
    group, _, version = text(wanted, "apiVersion").rpartition("/")
    kind = catalog.find_kind(group, text(wanted, "kind"))
    served = None if kind is None else catalog.find(group, version, kind.plural)
    if served is None:
        shown_kind = f"{group}/{version}, Kind={text(wanted, 'kind')}"
        raise ConfigurationError(f"failed to find resource referenced by paramKind: '{shown_kind}'")
    return served


def parameters(
    served: Served | None, binding: JsonObject, namespace: str, view: ClusterView
) -> list[JsonObject | None]:
    """Return the parameters of a policy, which is evaluated once for each of them.

    An item that is None means an evaluation without a parameter. Raises ConfigurationError.
    """
    reference = part(binding, "spec", "paramRef")
    if served is None or reference is None:
        return [None]
    kind, own, name = served.kind, text(reference, "namespace"), text(reference, "name")
    if own and not kind.namespaced:
        raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if kind.namespaced and not (own or namespace):
        why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        raise ConfigurationError(why)
    where = (own or namespace) if kind.namespaced else ""
    found: list[JsonObject]
    group, plural = kind.collection.group, kind.collection.plural
    if name:
        held = view.object(group, plural, where, name)
        found = [] if held is None else [held]
    else:
        selector = part(reference, "selector")
        candidates = view.objects(group, plural, where)
        found = [item for item in candidates if selects(selector, text_map(item, "metadata", "labels"))]
    if not found and text(reference, "parameterNotFoundAction") == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [{**shown(served, item), "kind": kind.kind} for item in found]
