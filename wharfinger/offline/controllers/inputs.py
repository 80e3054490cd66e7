"""The inputs of a release: a digest of everything that it is rendered from.

The digest is computed before the release's chart is fetched or rendered. So a comparison of two versions of a tree needs to
render only the releases whose digests differ. Two releases with the same inputs render to the same objects: the options of both
builds are the same, and a source outside of the tree is fetched once for both.
"""

from collections.abc import Iterable

from wharfinger.formats.json.value import JsonValue, checksum, find_str
from wharfinger.offline.controllers.controller import RunContext
from wharfinger.offline.controllers.gate import Gate
from wharfinger.offline.store.kinds import ARGO_APPLICATION, HELM_RELEASE, KUSTOMIZATION, SECRET, SOURCES
from wharfinger.offline.store.store import Stored
from wharfinger.runtime.fixpoint.model import Id

_ORDER_ONLY = frozenset({HELM_RELEASE, KUSTOMIZATION, ARGO_APPLICATION})
"""The kinds of objects for which a release only waits, because its ``dependsOn`` names them. It does not read their content."""


def inputs_digest(run: RunContext, stored: Stored, gate: Gate, more: Iterable[JsonValue]) -> str:
    """Return the digest of an object, of the objects that its gate has read, and of ``more``, such as digests of folders.

    The metadata of an object, such as its labels, does not count as an input.
    """
    read = {each for each in gate.reads if each.kind not in _ORDER_ONLY}
    read |= {secret for each in read if each.kind in SOURCES and (secret := _login_of(run, each)) is not None}
    objects: list[JsonValue] = [[str(each), _digest_of(run, each)] for each in sorted(read)]
    return checksum({"object": [str(stored.id), _content(stored)], "read": objects, "more": list(more)})


def _login_of(run: RunContext, source: Id) -> Id | None:
    """Return the Secret that a source uses to log in; None if the source names no Secret."""
    found = run.store.get(source)
    name = find_str(found.object, "spec", "secretRef", "name") if found is not None else ""
    return Id(SECRET, source.namespace, name) if name else None


def _digest_of(run: RunContext, who: Id) -> str:
    found = run.store.get(who)
    return "absent" if found is None else _content(found)


def _content(stored: Stored) -> str:
    return checksum({key: value for key, value in stored.object.items() if key != "metadata"})
