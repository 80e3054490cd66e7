"""Stand-ins for Secrets that only a cluster has, because an operator makes them there. Pure.

==================  ======================================================================================================
ExternalSecret      of external-secrets.io: the Secret in ``spec.target``, with the keys of ``spec.data`` or of the template
SealedSecret        of bitnami.com: the Secret in ``spec.template``, with the keys of ``spec.encryptedData``
Certificate         of cert-manager.io: the Secret in ``spec.secretName``, with a certificate and its key
==================  ======================================================================================================

A stand-in has a placeholder such as ``..PLACEHOLDER_password..`` for each key that is known. It is put into the object
store, so that nodes can read it, but is not printed. A Secret of the tree with the same name replaces it.
"""

from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_list, find_object, find_str
from wharfinger.offline.discovery.documents import placeholder
from wharfinger.offline.store.identity import group_of, kind_id

ANNOTATION: Final = "offline.wharfinger.dev/made-by"
EXTERNAL_SECRET: Final = "ExternalSecret.external-secrets.io"  # noqa: S105 - a kind
SEALED_SECRET: Final = "SealedSecret.bitnami.com"  # noqa: S105 - a kind
CERTIFICATE: Final = "Certificate.cert-manager.io"
MAKERS: Final = frozenset({EXTERNAL_SECRET, SEALED_SECRET, CERTIFICATE})
_KINDS: Final = frozenset(each.partition(".")[0] for each in MAKERS)
_OF_CERTIFICATES: Final = ("ca.crt", "tls.crt", "tls.key")


def may_have_stand_in(obj: JsonObject) -> bool:
    """Return whether an operator may make a Secret from an object, so that the Secret needs a stand-in. This is a cheap check
    of the object's kind, without the group.
    """
    return obj.get("kind") in _KINDS


def stand_in(obj: JsonObject, namespace: str) -> JsonObject | None:
    """Return the stand-in for the Secret that an operator makes from an object; None if no operator makes a Secret from it.

    ``namespace`` is the object's namespace.
    """
    kind = kind_id(group_of(find_str(obj, "apiVersion")), find_str(obj, "kind"))
    if kind not in MAKERS:
        return None
    try:
        own = find_str(obj, "metadata", "name")
        if kind == EXTERNAL_SECRET:
            name, keys = find_str(obj, "spec", "target", "name", default=own), _external_keys(obj)
        elif kind == SEALED_SECRET:
            name = find_str(obj, "spec", "template", "metadata", "name", default=own)
            keys = {*find_object(obj, "spec", "encryptedData"), *find_object(obj, "spec", "template", "data")}
        else:
            name, keys = find_str(obj, "spec", "secretName"), {*_OF_CERTIFICATES}
    except FormatError:
        return None  # a server would refuse the object, which `wharfinger check` reports
    if not name:
        return None
    texts: JsonObject = {key: placeholder(key) for key in sorted(keys)}
    annotations: JsonObject = {ANNOTATION: f"{kind.partition('.')[0]} {own}"}
    metadata: JsonObject = {"name": name, "namespace": namespace, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": texts}


def is_stand_in(obj: JsonObject) -> bool:
    """Return whether an object is a stand-in."""
    return bool(find_str(obj, "metadata", "annotations", ANNOTATION))


def _external_keys(obj: JsonObject) -> set[str]:
    """Return the keys that an ExternalSecret names; the keys of ``dataFrom`` are unknown, because only the external store
    has them.
    """
    template = find_object(obj, "spec", "target", "template")
    keys = {*find_object(template, "data")}
    if keys and find_str(template, "mergePolicy", default="Replace") == "Replace":
        return keys
    return keys | {name for each in find_list(obj, "spec", "data") if (name := find_str(each, "secretKey"))}
