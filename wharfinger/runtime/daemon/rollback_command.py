"""``wharfinger rollback``: let a package return to a former revision.

The command writes the annotation of the resource with the rights of the user who runs it. The daemon finds the revision, and
reports in the status of the resource whether the package can return.
"""

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import ConnectionConfigError, load_connection
from wharfinger.cluster.api.errors import ClusterError, NotFoundError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.terminal_text import printable
from wharfinger.kube.times import format_exact_time
from wharfinger.runtime.resources.identity import IdentityError, package_id
from wharfinger.runtime.resources.resources import resource_key
from wharfinger.runtime.resources.upgrade_policy import FORMER, ROLLBACK, read_rollback_request


def add_rollback(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger rollback NAME [REVISION]`."""
    parser.description = (
        "Return a package to a former revision of its release: to the version, the settings and the patches of that revision. "
        "The package stays there until its resource changes. `helm history` lists the revisions, and `wharfinger why NAME` shows "
        "what the resource requests, and whether there is a way back. Exit code 0: requested; 1: cannot be requested; 2: wrong "
        "usage."
    )
    parser.add_argument("name", metavar="NAME", help="NAMESPACE.NAME of an Application, or the name of a Module")
    parser.add_argument(
        "revision",
        metavar="REVISION",
        nargs="?",
        default=FORMER,
        help="number of a revision (default: the newest one that was deployed with another version or other settings)",
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the cluster (default: $KUBECONFIG, ~/.kube/config, or in-cluster)",
    )
    parser.add_argument("--context", default="", help="context of the kubeconfig (default: its current context)")
    parser.set_defaults(handler=_rollback)


def _utc_now() -> datetime:
    return datetime.now(UTC)


async def request_rollback(
    client: ClusterClient, name: str, revision: str, now: Callable[[], datetime] = _utc_now
) -> str:
    """Request a rollback; return the value of the annotation, which differs each time.

    Raises IdentityError for a name that no package can have, and ClusterError.
    """
    text = f"{revision}@{format_exact_time(now())}"
    patch: JsonObject = {"metadata": {"annotations": {ROLLBACK: text}}}
    await client.merge_patch(resource_key(package_id(name)), patch)
    return text


def _rollback(args: argparse.Namespace) -> int:
    name, revision = cast("str", args.name), cast("str", args.revision)
    try:
        read_rollback_request({ROLLBACK: revision})
    except FormatError:
        return _failed(f"REVISION: expected the number of a revision or {FORMER}, found {printable(revision)!r:.80}", 2)

    async def run() -> str:
        connection = await trio.to_thread.run_sync(
            load_connection, cast("Path | None", args.kubeconfig), cast("str", args.context), abandon_on_cancel=True
        )
        async with open_client(connection) as client:
            return await request_rollback(client, name, revision)

    try:
        trio.run(run)
    except IdentityError as error:
        return _failed(printable(str(error)), 2)
    except NotFoundError:
        kind = "Application" if "." in name else "Module"
        return _failed(f"{printable(name)}: there is no such {kind}; `wharfinger get packages` lists all", 1)
    except (ClusterError, ConnectionConfigError) as error:
        return _failed(printable(str(error)), 1)
    where = "the former revision" if revision == FORMER else f"revision {revision}"
    sys.stdout.write(f"{name}: a rollback to {where} is requested; `wharfinger why {name}` shows its progress\n")
    return 0


def _failed(message: str, code: int) -> int:
    sys.stderr.write(f"error: {message}\n")
    return code
