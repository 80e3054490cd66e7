"""The check whether a CustomResourceDefinition may be replaced without losing stored data or refusing accepted objects.

Helm never upgrades definitions, since an upgrade may do unnoticed damage: an API server accepts a definition whose schema
drops a field, and the field is removed from an object the next time the object is written. So every upgrade is checked before
it is made, as in OLM v1 and Carvel's kapp. The check refuses the changes that these two programs refuse, and some further ones:

* the scope, or a name by which objects and clients know the kind, changes;
* a version is removed that objects may still be stored in (``status.storedVersions``);
* conversion between several versions is removed;
* a subresource is removed that controllers write;
* a version that is served or stored accepts less than before (:mod:`~wharfinger.cluster.crds.narrowing`).

Pure. :mod:`wharfinger.cluster.releases.preflight` calls this check and refuses the release. Authors who know that their upgrade
does no harm set :data:`ALLOW_UNSAFE` on the new definition.
"""

from dataclasses import dataclass
from itertools import islice
from typing import Final

from wharfinger.cluster.crds.narrowing import CrdRule, narrowings
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str

ALLOW_UNSAFE: Final = "wharfinger.dev/allow-unsafe-crd-upgrade"
"""An annotation of a new definition. If its value is ``"true"``, the definition replaces the old one, even if there are
problems that would otherwise prevent this.
"""
MAX_PROBLEMS: Final = 20
"""The largest number of reported problems; users do not read more."""


@dataclass(frozen=True, slots=True)
class CrdProblem:
    """One reason why the upgrade of a CRD would be unsafe.

    ``message`` names the version and the path, such as ``v1 .spec.size: maximum was 10, and is 5``.
    """

    rule: CrdRule
    message: str

    def __str__(self) -> str:
        """Return the message, followed by the name of the rule, which the documentation explains."""
        return f"{self.message} ({self.rule})"


def allows_unsafe(wanted: JsonObject) -> bool:
    """Return whether an annotation of the new definition permits an unsafe upgrade."""
    return find_str(wanted, "metadata", "annotations", ALLOW_UNSAFE).strip().lower() == "true"


def crd_problems(live: JsonObject, wanted: JsonObject, *, manager: str = "wharfinger") -> tuple[CrdProblem, ...]:
    """Return the reasons why ``wanted`` must not be applied over ``live``; at most MAX_PROBLEMS, the gravest first.

    ``manager`` is the manager that applies ``wanted``: an apply keeps fields that other managers own and ``wanted`` does not
    contain. Raises ShapeError.
    """
    problems = [*_names(live, wanted), *_stored(live, wanted), *_conversion(live, wanted, manager)]
    versions = _versions(wanted)
    for name, version in _versions(live).items():
        after = versions.get(name)
        if after is None or not (_is_used(name, version, live) and _is_used(name, after, live)):
            continue
        problems += _subresources(name, version, after)
        problems += [
            CrdProblem(found.rule, f"{name} {found.path or 'the object'}: {found.what}")
            for found in islice(narrowings(_schema(version), _schema(after)), MAX_PROBLEMS)
        ]
    return tuple(problems[:MAX_PROBLEMS])


def _names(live: JsonObject, wanted: JsonObject) -> list[CrdProblem]:
    was, now = find_str(live, "spec", "scope"), find_str(wanted, "spec", "scope")
    found = [CrdProblem(CrdRule.SCOPE, f"the scope was {was}, and is {now}")] if was != now else []
    for path in (("group",), ("names", "plural"), ("names", "kind"), ("names", "listKind")):
        before, after = _name(live, path), _name(wanted, path)
        if before != after:
            found.append(CrdProblem(CrdRule.NAMES, f"{'.'.join(path)} was {before}, and is {after}"))
    return found


def _name(crd: JsonObject, path: tuple[str, ...]) -> str:
    found = find_str(crd, "spec", *path)
    return found or (find_str(crd, "spec", "names", "kind") + "List" if path[-1] == "listKind" else "")


def _stored(live: JsonObject, wanted: JsonObject) -> list[CrdProblem]:
    gone = [name for name in _stored_versions(live) if name not in _versions(wanted)]
    return [
        CrdProblem(
            CrdRule.STORED_VERSION,
            f"{name} was removed, but objects may still be stored in it: write each of them once, and remove {name} "
            "from status.storedVersions",
        )
        for name in gone
    ]


def _stored_versions(live: JsonObject) -> list[str]:
    told = [name for name in find_list(live, "status", "storedVersions") if isinstance(name, str)]
    return told or [name for name, version in _versions(live).items() if find(version, "storage") is True]


def _conversion(live: JsonObject, wanted: JsonObject, manager: str) -> list[CrdProblem]:
    if find_str(live, "spec", "conversion", "strategy") != "Webhook" or len(_versions(wanted)) < 2:
        return []
    if find(wanted, "spec", "conversion") is None and _conversion_is_others(live, manager):
        return []
    if find_str(wanted, "spec", "conversion", "strategy", default="None") == "Webhook":
        return []
    return [
        CrdProblem(
            CrdRule.CONVERSION,
            "a webhook converted objects between versions; without the webhook, only their apiVersion would change",
        )
    ]


def _conversion_is_others(live: JsonObject, manager: str) -> bool:
    """Return whether the live conversion was set by anything other than an apply of ``manager``.

    It may have been set by another manager, such as a certificate injector, or by a patch of ``manager``, which adds the
    webhooks of a package's hooks. Such a conversion is kept unless the new definition contains a conversion.
    """
    owners = [
        "" if find_str(entry, "operation") == "Update" else find_str(entry, "manager")
        for entry in find_list(live, "metadata", "managedFields")
        if find(entry, "fieldsV1", "f:spec", "f:conversion", "f:strategy") is not None
    ]
    return any(owner != manager for owner in owners)


def _subresources(name: str, version: JsonValue, after: JsonValue) -> list[CrdProblem]:
    return [
        CrdProblem(CrdRule.SUBRESOURCE, f"{name}: its subresource {one} was removed, but other programs write it")
        for one in ("status", "scale")
        if find(version, "subresources", one) is not None and find(after, "subresources", one) is None
    ]


def _versions(crd: JsonObject) -> dict[str, JsonObject]:
    return {find_str(one, "name"): as_object(one, "a version") for one in find_list(crd, "spec", "versions")}


def _is_used(name: str, version: JsonObject, live: JsonObject) -> bool:
    """Return whether this version is served or stored."""
    return find(version, "served") is True or find(version, "storage") is True or name in _stored_versions(live)


def _schema(version: JsonObject) -> JsonObject:
    return find_object(version, "schema", "openAPIV3Schema")
