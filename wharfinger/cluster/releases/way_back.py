"""The changes of objects that the API server refuses, or that cannot be undone, as far as the objects themselves show. Pure.

An upgrade may make a change that cannot be undone: a PersistentVolumeClaim grows and cannot shrink, a ConfigMap becomes
immutable, a definition stores its objects in a new version. So before an upgrade, `one_way` judges whether its changes can be
undone. Before a rollback, `refusals` judges whether the live objects can be changed back. Before an upgrade, immutable fields
are ignored: the server would refuse the upgrade itself, and the object would stay as it was.
"""

import base64
from collections.abc import Iterator
from typing import Final

from wharfinger.cluster.crds.preflight import allows_unsafe, crd_problems
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, find
from wharfinger.formats.quantity import parse_quantity
from wharfinger.kube.resource import kind_of

_CLAIM: Final = ("spec", "resources", "requests", "storage")
_FIXED: Final[dict[tuple[str, str], tuple[tuple[str, ...], ...]]] = {
    ("apps", "Deployment"): (("spec", "selector"),),
    ("apps", "DaemonSet"): (("spec", "selector"),),
    ("apps", "StatefulSet"): (
        ("spec", "selector"),
        ("spec", "serviceName"),
        ("spec", "podManagementPolicy"),
        ("spec", "volumeClaimTemplates"),
    ),
    ("batch", "Job"): (("spec", "selector"), ("spec", "template"), ("spec", "completionMode")),
    ("rbac.authorization.k8s.io", "RoleBinding"): (("roleRef",),),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (("roleRef",),),
    ("storage.k8s.io", "StorageClass"): (("provisioner",), ("parameters",), ("reclaimPolicy",)),
    ("", "PersistentVolumeClaim"): (("spec", "accessModes"), ("spec", "storageClassName"), ("spec", "volumeMode")),
    ("", "Secret"): (("type",),),
}
"""The fields that cannot be changed, by group and kind."""


def refusals(present: JsonObject, wanted: JsonObject, *, manager: str = "") -> tuple[str, ...]:
    """Return why the object ``present`` cannot be changed to ``wanted``; () if no reason is known.

    A field that ``wanted`` does not have counts as unchanged. ``manager`` is the name under which objects are applied.
    """
    return tuple(_refusals(present, wanted, manager))


def one_way(before: JsonObject, after: JsonObject, *, manager: str = "") -> tuple[str, ...]:
    """Return why a change from ``before`` to ``after`` cannot be undone; () if it can be undone, or if the change itself is
    refused.
    """
    if refusals(before, after, manager=manager):
        return ()
    return refusals(after, before, manager=manager)


def _refusals(present: JsonObject, wanted: JsonObject, manager: str) -> Iterator[str]:
    version, kind = kind_of(wanted)
    group = version.partition("/")[0] if "/" in version else ""
    if (group, kind) == ("apiextensions.k8s.io", "CustomResourceDefinition"):
        yield from _of_definition(present, wanted, manager)
        return
    for path in _FIXED.get((group, kind), ()):
        if _differs(find(present, *path), find(wanted, *path)):
            yield f"{'.'.join(path)} cannot be changed"
    if (group, kind) == ("", "PersistentVolumeClaim"):
        yield from _of_claim(present, wanted)
    found = _data(present)
    if group == "" and kind in ("ConfigMap", "Secret") and present.get("immutable") is True:
        if wanted.get("immutable") is not True:
            yield "it is immutable, and cannot become mutable again"
        elif any(found.get(name) != value for name, value in _data(wanted).items()):
            yield "it is immutable, so its data cannot be changed"


def _data(obj: JsonObject) -> JsonObject:
    """Return the data in the form that the API server stores: ``stringData`` is encoded, and overrides ``data``."""
    texts = find(obj, "stringData")
    encoded = {
        name: base64.b64encode(text.encode()).decode()
        for name, text in (texts.items() if isinstance(texts, dict) else ())
        if isinstance(text, str)
    }
    stored: JsonObject = {name: obj[name] for name in ("data", "binaryData") if name in obj}
    if encoded:
        data = find(obj, "data")
        stored["data"] = {**(data if isinstance(data, dict) else {}), **encoded}
    return stored


def _of_claim(present: JsonObject, wanted: JsonObject) -> Iterator[str]:
    sizes = [find(obj, *_CLAIM) for obj in (present, wanted)]
    have, want = (parse_quantity(str(size)) if isinstance(size, str | int) else None for size in sizes)
    if have is not None and want is not None and want < have:
        yield f"it has {sizes[0]} and cannot shrink to {sizes[1]}"


def _of_definition(present: JsonObject, wanted: JsonObject, manager: str) -> Iterator[str]:
    if allows_unsafe(wanted):
        return
    try:
        yield from (str(problem) for problem in crd_problems(present, wanted, manager=manager))
    except ShapeError as error:
        yield f"it cannot be read: {error}"


def _differs(present: JsonValue, wanted: JsonValue) -> bool:
    """Return whether ``wanted`` demands another value than ``present``. Fields that only the API server's defaults add do not
    differ.
    """
    if wanted is None:
        return False
    if isinstance(present, dict) and isinstance(wanted, dict):
        return any(_differs(present.get(name), value) for name, value in wanted.items())
    if isinstance(present, list) and isinstance(wanted, list):
        pairs = zip(present, wanted, strict=False)
        return len(present) != len(wanted) or any(_differs(old, new) for old, new in pairs)
    if present == wanted:
        return False
    have, want = (_amount(value) for value in (present, wanted))
    return have is None or have != want


def _amount(value: JsonValue) -> object:
    """Return a quantity as a number, because the API server stores ``1024Mi`` as ``1Gi``; None for anything else."""
    return parse_quantity(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
