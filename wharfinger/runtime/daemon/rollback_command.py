"""``wharfinger rollback``: let a package return to a former revision.

The command writes an annotation of the resource with the rights of the user who runs it. The daemon finds the revision, and
reports in the status of the resource whether the package can return. If the release records already show that the package
cannot return, the command requests nothing.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import ConnectionConfigError, load_connection
from wharfinger.cluster.api.errors import ClusterError, ForbiddenError, NotFoundError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.records.release import Release, ReleaseRecordError
from wharfinger.cluster.records.release_store import ReleaseStore
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_int, find_str
from wharfinger.formats.terminal_text import printable
from wharfinger.kube.times import format_exact_time
from wharfinger.runtime.controllers.package_names import identity_of
from wharfinger.runtime.controllers.rollback_rules import NoTarget, find_target, was_deployed
from wharfinger.runtime.installing.command_arguments import (
    add_cluster,
    add_package_name,
    cluster_problem,
    unknown_package,
)
from wharfinger.runtime.resources.identity import IdentityError, package_id
from wharfinger.runtime.resources.resources import resource_key
from wharfinger.runtime.resources.upgrade_policy import FORMER, ROLLBACK, read_rollback_request

_SETTLED: Final = ("Ready", "RolledBack")
"""The states in which a package runs the revision that was deployed last."""


class NoRevisionError(Exception):
    """The package has no revision to return to; the message says why, and what to do."""


def add_rollback(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger rollback NAME [REVISION]`."""
    parser.description = (
        "Return a package to a former revision of its release: to the version, the settings, the spec.resourceRequests and "
        "the spec.patches of that revision. The package stays at this revision until its resource changes, or until "
        "`wharfinger retry NAME`. `helm history` lists the revisions. `wharfinger why NAME` shows whether the rollback was "
        "possible, and which version the resource requests. Exit code "
        "0: requested; 1: the rollback cannot be requested; 2: wrong usage."
    )
    add_package_name(parser)
    parser.add_argument(
        "revision",
        metavar="REVISION",
        nargs="?",
        default=FORMER,
        help="number of the revision (default: the newest deployed revision whose version or settings differ from the present "
        "ones)",
    )
    add_cluster(parser)
    parser.set_defaults(handler=_rollback)


def _utc_now() -> datetime:
    return datetime.now(UTC)


async def request_rollback(
    client: ClusterClient, name: str, revision: str, now: Callable[[], datetime] = _utc_now
) -> str:
    """Request a rollback with the annotation ROLLBACK of the package's resource. Return the value of the annotation, which is
    different for each request.

    Raises IdentityError for a name that no package can have, and ClusterError.
    """
    text = f"{revision}@{format_exact_time(now())}"
    patch: JsonObject = {"metadata": {"annotations": {ROLLBACK: text}}}
    await client.merge_patch(resource_key(package_id(name)), patch)
    return text


async def check_revision(client: ClusterClient, name: str, revision: int) -> None:
    """Check that the package can return to the revision ``revision``, or to any former revision if ``revision`` is 0. If the
    user may not read the records, the check is left to the daemon.

    Raises IdentityError, NoRevisionError, and ClusterError.
    """
    key = resource_key(package_id(name))
    obj = await client.get(key)
    identity = identity_of(key, obj)
    try:
        stored = await ReleaseStore(client, _utc_now).history(identity.release, identity.namespace)
    except (ForbiddenError, ReleaseRecordError):
        return
    history = [each.release for each in stored]
    target = find_target(history, revision) if history and revision else None
    if isinstance(target, NoTarget):
        raise NoRevisionError(target.why)
    why = _already_there(history, obj, revision) if revision else _without_former(name, history, obj)
    if why:
        raise NoRevisionError(why)


def _without_former(name: str, history: Sequence[Release], obj: JsonObject) -> str:
    """Return why there is no former revision, or "" if there may be one.

    A package with only one revision can return to that revision if its resource now requests another state, which no revision
    has yet.
    """
    deployed = [release.revision for release in history if was_deployed(release)]
    if not deployed:
        return f"no revision of the package was deployed yet; `wharfinger why {name}` explains its state"
    if len(deployed) > 1 or not _is_settled(obj):
        return ""
    return (
        f"there is no former revision: revision {deployed[0]} is the only one that was deployed, and the package runs it; to run "
        "another version or other settings, change its resource"
    )


def _already_there(history: Sequence[Release], obj: JsonObject, revision: int) -> str:
    """Return a message if the package already runs the revision; else ""."""
    newest = max((release.revision for release in history if was_deployed(release)), default=0)
    if newest != revision or not _is_settled(obj):
        return ""
    return f"the package already runs revision {revision}; `helm history` lists the other revisions"


def _is_settled(obj: JsonObject) -> bool:
    is_seen = find_int(obj, "status", "observedGeneration") >= find_int(obj, "metadata", "generation")
    return is_seen and find_str(obj, "status", "summary", "state") in _SETTLED


def _rollback(args: argparse.Namespace) -> int:
    name, revision = cast("str", args.name), cast("str", args.revision)
    try:
        asked = read_rollback_request({ROLLBACK: revision})
    except FormatError:
        asked = None
    if asked is None:
        return _failed(f"REVISION: expected the number of a revision or {FORMER}, found {printable(revision)!r:.80}", 2)

    async def run() -> str:
        connection = await trio.to_thread.run_sync(
            load_connection, cast("Path | None", args.kubeconfig), cast("str", args.context), abandon_on_cancel=True
        )
        async with open_client(connection) as client:
            await check_revision(client, name, asked.revision)
            return await request_rollback(client, name, revision)

    try:
        trio.run(run)
    except IdentityError as error:
        return _failed(printable(str(error)), 2)
    except NoRevisionError as error:
        return _failed(f"{printable(name)}: {printable(str(error))}", 1)
    except NotFoundError:
        return _failed(unknown_package(printable(name)), 1)
    except (ClusterError, ConnectionConfigError) as error:
        return _failed(cluster_problem(error), 1)
    where = "the former revision" if revision == FORMER else f"revision {revision}"
    sys.stdout.write(f"{name}: a rollback to {where} is requested; `wharfinger why {name}` shows its progress\n")
    return 0


def _failed(message: str, code: int) -> int:
    sys.stderr.write(f"error: {message}\n")
    return code
