"""The work of `wharfinger install` and `uninstall` in a cluster: apply or delete resources, wait for the daemon, and clean up.

Every request is made with the rights of the user who runs the command. The command writes resources, and the daemon does the
work that they require. So if the command is interrupted after it has written them, the daemon continues.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, ForbiddenError, NotFoundError
from wharfinger.cluster.objects.ownership import RELEASE_NAME
from wharfinger.cluster.objects.scope import ALLOWED, CLUSTER_SCOPE_LABEL
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
)
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.installing.made_objects import CARRIED_FOR, INSTALL, MADE_BY, Made, carried_for, made_objects
from wharfinger.runtime.installing.target import InRegistry, Target
from wharfinger.runtime.resources.application_scope import NAMESPACE
from wharfinger.runtime.resources.resources import APPLICATION, MODULE, PACKAGE_REPOSITORY

FIELD_MANAGER: Final = "wharfinger-install"
_READY: Final = "Ready"

Report = Callable[[str], None]
"""A function that shows one line of progress."""


class InstallError(Exception):
    """The command has failed; the message has the reason and a remedy."""


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """A package to install as an Application in a namespace."""

    target: Target
    namespace: str
    name: str
    settings: JsonObject
    repository: str = ""
    cluster_scope: bool = False
    """True to allow the Applications of the namespace to have objects in the whole cluster."""
    create_namespace: bool = False
    """True to create the namespace if it does not exist."""

    @property
    def key(self) -> ObjectKey:
        """The key of the Application."""
        return ObjectKey(APPLICATION, self.namespace, self.name)


async def request(client: ClusterClient, wanted: InstallRequest, report: Report) -> int:
    """Create the resources of a package; return the generation of its Application. Raises InstallError, ClusterError."""
    for resource in (APPLICATION, PACKAGE_REPOSITORY):  # checked before any object is created
        await client.resource_type(resource.api_version, resource.kind)
    await _check_namespace(client, wanted, report)
    if wanted.cluster_scope:
        labels: JsonObject = {CLUSTER_SCOPE_LABEL: ALLOWED}
        await client.merge_patch(ObjectKey(NAMESPACE, "", wanted.namespace), {"metadata": {"labels": labels}})
        report(f"namespace {wanted.namespace}: its Applications may change objects in the whole cluster")
    repository = wanted.repository or await _known_repository(client, wanted.target)
    made = made_objects(wanted.target, wanted.namespace, wanted.name, wanted.settings, repository)
    await _carry(client, made, report)
    applied = await client.apply(made.application, field_manager=FIELD_MANAGER)
    report(f"application {wanted.namespace}/{wanted.name}: requested")
    return find_int(applied, "metadata", "generation")


async def _check_namespace(client: ClusterClient, wanted: InstallRequest, report: Report) -> None:
    """Create the namespace if it is missing and ``wanted.create_namespace`` is true. Raises ClusterError, and InstallError if
    the namespace is missing and ``wanted.create_namespace`` is false.
    """
    try:
        await client.get(ObjectKey(NAMESPACE, "", wanted.namespace))
    except ForbiddenError:
        return  # a user who may not read the namespace may still have rights in it
    except NotFoundError as error:
        if not wanted.create_namespace:
            text = f"there is no namespace {wanted.namespace}; correct the name, or create the namespace with --create-namespace"
            raise InstallError(text) from error
        try:
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": wanted.namespace}})
        except ConflictError:
            return  # somebody else has created the namespace meanwhile
        report(f"namespace {wanted.namespace}: created")


async def wait_ready(client: ClusterClient, wanted: InstallRequest, generation: int, report: Report) -> JsonObject:
    """Wait until the Application is Ready, and return it; report each change of its state.

    Raises ClusterError, and InstallError if the Application cannot become Ready without a change, or its state cannot be read.
    There is no time limit.
    """
    selector = f"metadata.name={wanted.name}"
    async with open_informer(client, APPLICATION, wanted.namespace, field_selector=selector) as informer:
        outcome = await _refusal(informer, wanted.key) or await _outcome(informer, wanted.key, generation, report)
    if isinstance(outcome, str):  # raised here, because a nursery of the informer would wrap it
        raise InstallError(outcome)
    return outcome


async def _refusal(informer: Informer, key: ObjectKey) -> str:
    """Wait for the informer's first list. Return an error message if the user may not list the Application, otherwise ""."""
    try:
        await informer.wait_first_list()
    except ForbiddenError as error:
        why = f"`wharfinger why {key.namespace}.{key.name}`"
        return f"the request was made, but the state of the package cannot be read: {error}; the daemon continues; see {why}"
    except (ClusterError, ShapeError):
        await informer.wait_synced()  # wait until a retry of the informer succeeds
    return ""


async def _outcome(informer: Informer, key: ObjectKey, generation: int, report: Report) -> JsonObject | str:
    """Wait until the Application is Ready, and return it; or return the reason why it cannot become Ready without a change."""
    last = ""
    with informer.changes() as changes:
        while True:
            obj = informer.get(key)
            if obj is None:
                return "the Application was deleted meanwhile; install it again"
            if find_int(obj, "status", "observedGeneration") >= generation:
                state, message = (find_str(obj, "status", "summary", field) for field in ("state", "message"))
                told = f"{state}: {message}" if message else state
                if told != last:
                    report(told)
                    last = told
                if state == _READY:
                    return obj
                if _is_stalled(obj):
                    return _advice(obj, message)
            await changes.wait()


async def clean_up(client: ClusterClient, wanted: InstallRequest) -> None:
    """Delete the PackageRepositories that earlier commands made for archives of this Application, except for the
    PackageRepository that is in use. The cluster then deletes the Secrets of these repositories. Raises ClusterError.

    If the user may not list PackageRepositories, nothing is deleted.
    """
    made = made_objects(wanted.target, wanted.namespace, wanted.name, wanted.settings, wanted.repository)
    with suppress(ForbiddenError):
        await _drop_carried(client, wanted.namespace, wanted.name, keep=find_str(made.repository, "metadata", "name"))


async def reachable(client: ClusterClient, wanted: InstallRequest, obj: JsonObject) -> list[str]:
    """Return a line for each address at which an installed package can be reached. Services are left out if the user may not
    list them. Raises ClusterError.
    """
    urls = [
        f"{find_str(each, 'url')}  {find_str(each, 'description')}".rstrip()
        for each in find_list(obj, "status", "urls")
    ]
    service = await client.resource_type("v1", "Service")
    lines: list[str] = []
    try:
        services = (await client.list(service, wanted.namespace)).items
    except ForbiddenError:
        return urls
    for each in services:
        if find(each, "metadata", "annotations", RELEASE_NAME) == wanted.name:
            name = find_str(each, "metadata", "name")
            ports = ", ".join(_port(port) for port in find_list(each, "spec", "ports"))
            lines.append(f"service {name}.{wanted.namespace}.svc: {ports or 'no port'}")
    return [*urls, *sorted(lines)]


async def remove(
    client: ClusterClient, namespace: str, name: str, report: Report, *, limit_s: float = math.inf
) -> None:
    """Delete an Application, wait until it is gone, and delete the PackageRepository and the Secrets that `install` made for it.

    Raises NotFoundError, InstallError, ClusterError, and TooSlowError if the removal was requested but not complete after
    ``limit_s``.
    """
    key = ObjectKey(APPLICATION, namespace, name)
    obj = await client.get(key)
    await client.delete(key)
    report(f"application {namespace}/{name}: removal requested")
    with trio.fail_after(limit_s):
        await _wait_gone(client, key, obj, report)
        with suppress(ForbiddenError):  # a user who may not list repositories has probably made none
            await _drop_carried(client, namespace, name)
            await _drop_repository(client, find_str(obj, "spec", "packageRepositoryName"))


async def _wait_gone(client: ClusterClient, key: ObjectKey, obj: JsonObject, report: Report) -> None:
    """Wait until an Application is gone, and report its state; ``obj`` is the Application before its removal. Raises
    InstallError.
    """
    last = find_str(
        obj, "status", "summary", "message"
    )  # a message that the Application already had before the removal is not reported
    selector = f"metadata.name={key.name}"
    async with open_informer(client, APPLICATION, key.namespace, field_selector=selector) as informer:
        refusal = await _refusal(informer, key)
        with informer.changes() as changes:
            while not refusal and (found := informer.get(key)) is not None:
                message = find_str(found, "status", "summary", "message")
                if message and message != last:
                    report(message)
                    last = message
                await changes.wait()
    if refusal:  # raised here, because a nursery of the informer would wrap it
        raise InstallError(refusal)


async def _drop_carried(client: ClusterClient, namespace: str, name: str, *, keep: str = "") -> None:
    selector = f"{CARRIED_FOR}={carried_for(namespace, name)}"
    for each in (await client.list(PACKAGE_REPOSITORY, label_selector=selector)).items:
        if (found := find_str(each, "metadata", "name")) != keep:
            await _delete(client, ObjectKey(PACKAGE_REPOSITORY, "", found))


async def _drop_repository(client: ClusterClient, name: str) -> None:
    """Delete a repository that `install` made, unless another package uses it."""
    key = ObjectKey(PACKAGE_REPOSITORY, "", name)
    try:
        found = await client.get(key) if name else {}
    except NotFoundError:
        return
    if find(found, "metadata", "labels", MADE_BY) != INSTALL:
        return
    users = [*(await client.list(APPLICATION)).items, *(await client.list(MODULE)).items]
    if not any(find(each, "spec", "packageRepositoryName") == name for each in users):
        await _delete(client, key)


async def _known_repository(client: ClusterClient, target: Target) -> str:
    """Return the name of a PackageRepository that has the address of a target; "" if no repository has this address, or if
    the target is not in a registry.
    """
    if not isinstance(target, InRegistry):
        return ""
    for each in (await client.list(PACKAGE_REPOSITORY)).items:
        registry = find_object(each, "spec", "registry")
        scheme = find_str(registry, "scheme", default="HTTPS").upper()
        if (find(registry, "repo"), scheme) == (str(target.address), target.address.scheme.upper()):
            return find_str(each, "metadata", "name")
    return ""


async def _carry(client: ClusterClient, made: Made, report: Report) -> None:
    """Apply the PackageRepository of a package, and then the Secrets with the package's archive, which the cluster deletes
    together with the repository.

    The repository comes first, so that no Secrets are left behind if the user may not create a repository.
    """
    if made.repository is None:
        return
    applied = await client.apply(made.repository, field_manager=FIELD_MANAGER)
    name = find_str(applied, "metadata", "name")
    owner: JsonObject = {
        "apiVersion": PACKAGE_REPOSITORY.api_version,
        "kind": PACKAGE_REPOSITORY.kind,
        "name": name,
        "uid": find_str(applied, "metadata", "uid"),
    }
    owners: list[JsonValue] = [owner]
    for each in made.secrets:
        metadata: JsonObject = {**find_object(each, "metadata"), "ownerReferences": owners}
        await client.apply({**each, "metadata": metadata}, field_manager=FIELD_MANAGER)
    report(f"package repository {name}: applied")


async def _delete(client: ClusterClient, key: ObjectKey) -> None:
    try:
        await client.delete(key)
    except NotFoundError:
        return


def _is_stalled(obj: JsonObject) -> bool:
    return any(
        find(each, "type") == "Stalled" and find(each, "status") == "True"
        for each in find_list(obj, "status", "conditions")
    )


def _advice(obj: JsonObject, message: str) -> str:
    tip = find_str(obj, "status", "summary", "tip")
    if CLUSTER_SCOPE_LABEL in message or CLUSTER_SCOPE_LABEL in tip:
        return (
            f"{message}; the package uses objects outside of its namespace: if you trust it, run the command again "
            "with --cluster-scope"
        )
    return f"{message}; {tip}" if tip else message


def _port(port: JsonValue) -> str:
    number, name = find(port, "port"), find(port, "name")
    return f"{number} ({name})" if isinstance(name, str) and name else str(number)
