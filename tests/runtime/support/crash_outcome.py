"""The final state after an operation, without the times and numbers that differ between two equal runs.

It contains the objects of a namespace (without Events and Pods of ReplicaSets), the stored and the deployed packages in a state
folder, and the journal.
"""

import base64
import re
from contextlib import closing
from pathlib import Path
from typing import cast

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.records.release import SECRET_TYPE, from_secret
from wharfinger.formats.json.value import JsonObject, JsonValue, decode_json, find_int, find_object, find_str
from wharfinger.kube.resource import kind_of, name_of
from wharfinger.process.journal_file import JournalFile
from wharfinger.process.ledger import ProcessLedger
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.lifecycle.package_state import STATE_KEY, STATE_TYPE

CHANCE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
"""A pattern of a time, or of a uid."""
APPLICATION = "wharfinger.dev/v1alpha1 Application app"
OF_THE_MOMENT = frozenset({"resourceVersion", "modifiedAt", "createdAt", "wharfinger.dev/fence"})


async def outcome(client: ClusterClient, state: Path) -> JsonObject:
    """Return the decoded objects of the namespace ``default``, the stored and the deployed packages, and the last daemon's
    journal.
    """
    with closing(JournalFile(state / "journal.db")) as file:
        operations: list[JsonValue] = [str(entry) for entry in Journal(file).entries()]
        groups: list[JsonValue] = [str(entry) for entry in ProcessLedger(file).entries()]
        warnings: list[JsonValue] = [*file.warnings]
    return {
        "objects": tidied(await _objects(client)),
        "deployed": {path.name: str(path.readlink()) for path in sorted((state / "deployed").iterdir())},
        "trees": [path.name for path in sorted((state / "store" / "trees").iterdir())],
        "unfinished": [path.name for path in sorted((state / "store" / "tmp").iterdir())],
        "operations": operations,
        "process groups": groups,
        "warnings": warnings,
    }


_LEFT_OUT = {"Binding", "LocalSubjectAccessReview", "Event"}
"""Namespaced kinds that cannot be listed, and Events, whose number and names depend on chance."""


async def _objects(client: ClusterClient) -> JsonObject:
    found: JsonObject = {}
    for served in await client.api_versions():
        api_version, _, kind = served.rpartition("/")
        if served.count("/") < 2 and api_version != "v1":
            continue  # a group and its version, without a kind
        resource = await client.resource_type(api_version, kind)
        if resource.namespaced and kind not in _LEFT_OUT:
            for obj in (await client.list(resource, "default")).items:
                if find_str(obj, "metadata", "generateName"):
                    continue  # a Pod of a ReplicaSet, whose content follows from the ReplicaSet except for the name
                found[" ".join([*kind_of(obj), name_of(obj)])] = settled(decoded(obj))
    return found


def tidied(objects: JsonObject) -> JsonObject:
    """Return the objects as they will be some time later, when all deployed revisions except the newest one are marked as
    superseded.
    """
    records = [find_object(obj, "data", "release") for obj in objects.values() if _is_release(obj)]
    newest = max((find_int(one, "version") for one in records if _status(one) == "deployed"), default=0)

    def of(obj: JsonValue) -> JsonValue:
        if not isinstance(obj, dict) or not _is_release(obj):
            return obj
        release = find_object(obj, "data", "release")
        if _status(release) != "deployed" or find_int(release, "version") == newest:
            return obj
        metadata = find_object(obj, "metadata")
        labels: JsonObject = {**find_object(metadata, "labels"), "status": "superseded"}
        info: JsonObject = {**find_object(release, "info"), "status": "superseded"}
        return {**obj, "metadata": {**metadata, "labels": labels}, "data": {"release": {**release, "info": info}}}

    return {name: of(obj) for name, obj in objects.items()}


def _is_release(obj: JsonValue) -> bool:
    return isinstance(obj, dict) and find_str(obj, "type") == SECRET_TYPE


def _status(release: JsonObject) -> str:
    return find_str(release, "info", "status")


def decoded(obj: JsonObject) -> JsonObject:
    """Return an object with its compressed or encoded data decoded."""
    match find_str(obj, "type") if obj.get("kind") == "Secret" else "":
        case str() as kind if kind == SECRET_TYPE:
            return {**obj, "data": {"release": from_secret(obj).document}}
        case str() as kind if kind == STATE_TYPE:
            data = base64.b64decode(find_str(obj, "data", STATE_KEY))
            return {**obj, "data": {STATE_KEY: decode_json(data, max_bytes=1_000_000, what=STATE_KEY)}}
        case _:
            return obj


def settled(value: JsonValue) -> JsonValue:
    """Return a document without times, uids, resource versions and the daemon's fence."""
    if isinstance(value, dict):
        return {CHANCE.sub("…", key): settled(one) for key, one in value.items() if key not in OF_THE_MOMENT}
    if isinstance(value, list):
        return [settled(one) for one in value]
    return CHANCE.sub("…", value) if isinstance(value, str) else value


def interrupted(found: JsonObject) -> bool:
    """Return whether the release has a revision that was interrupted."""
    return any(find_str(one, "info", "description").startswith("interrupted") for one in _releases(found).values())


def without_history(found: JsonObject) -> JsonObject:
    """Return the final state without revision numbers, and with only the deployed revision of the release."""
    objects, releases = find_object(found, "objects"), _releases(found)
    (deployed,) = [one for one in releases.values() if find_str(one, "info", "status") == "deployed"]
    application = find_object(objects, APPLICATION)
    status = find_object(application, "status")
    release = find_object(status, "release")
    assert release["revision"] == deployed["version"]
    states = {name: obj for name, obj in objects.items() if find_str(obj, "type") == STATE_TYPE}
    return {
        **found,
        "release": {key: deployed[key] for key in ("config", "chart", "manifest", "hooks")},
        "objects": {
            **{name: obj for name, obj in objects.items() if name not in releases},
            **{name: _without_revision(obj, find_int(deployed, "version")) for name, obj in states.items()},
            APPLICATION: {**application, "status": {**status, "release": {**release, "revision": 0}}},
        },
    }


def _without_revision(state: JsonValue, newest: int) -> JsonValue:
    """Return the state of a package with its revision number set to 0. Check that it is at most ``newest``."""
    obj, document = cast("JsonObject", state), find_object(state, "data", STATE_KEY)
    assert 0 <= find_int(document, "revision") <= newest
    return {**obj, "data": {STATE_KEY: {**document, "revision": 0}}}


def _releases(found: JsonObject) -> dict[str, JsonObject]:
    """Return the decoded release documents by the names of their Secrets."""
    objects = find_object(found, "objects")
    return {
        name: find_object(obj, "data", "release")
        for name, obj in objects.items()
        if find_str(obj, "type") == SECRET_TYPE
    }


def differences(found: JsonValue, wanted: JsonValue, path: str = "") -> list[str]:
    """Return each difference between two documents: its path and the two values."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return [
            line
            for key in sorted(found.keys() | wanted.keys())
            for line in differences(found.get(key), wanted.get(key), f"{path}/{key}")
        ]
    if isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        return [
            line
            for index, pair in enumerate(zip(found, wanted, strict=True))
            for line in differences(*pair, f"{path}/{index}")
        ]
    return [] if found == wanted else [f"{path}: {found!r}, and undisturbed {wanted!r}"]
