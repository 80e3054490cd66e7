"""``wharfinger reconcile``, ``retry``, ``suspend`` and ``resume``: requests about one package, written into its resource.

The commands write with the rights of the user who runs them, because the debug socket is read-only.
"""

import argparse
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import ConnectionConfigError, load_connection
from wharfinger.cluster.api.errors import ClusterError, NotFoundError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.formats.terminal_text import printable
from wharfinger.kube.times import format_micro_time
from wharfinger.runtime.installing.command_arguments import (
    add_cluster,
    add_package_name,
    cluster_problem,
    unknown_package,
)
from wharfinger.runtime.resources.identity import IdentityError, package_id
from wharfinger.runtime.resources.resources import FORCED, REQUESTED, RESET, resource_key

_ANSWERED: Final = "`wharfinger why NAME` explains the result."
_EXIT: Final = (
    "Exit code 0: requested; 1: there is no such package, or the request to the cluster failed; 2: wrong usage."
)


def add_reconcile(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger reconcile NAME`."""
    parser.description = (
        "Request a complete reconciliation of a package now: of its source, its settings, and its objects in the cluster. "
        f"{_ANSWERED} {_EXIT}"
    )
    _add_arguments(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--force",
        dest="annotation",
        action="store_const",
        const=FORCED,
        help="also ask the registry which content the version has now, and run all hooks and apply all objects as if the "
        "package were new",
    )
    how.add_argument(
        "--reset",
        dest="annotation",
        action="store_const",
        const=RESET,
        help="also repeat one-time steps, such as the runs of onStartup hooks; forget the values that hooks have set; and "
        "allow new values for immutable settings",
    )
    parser.set_defaults(handler=_request, annotation=REQUESTED)


def add_retry(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger retry NAME`."""
    parser.description = (
        "Request another attempt at a failed package now, even if the package is parked until one of its inputs changes. "
        f"{_ANSWERED} {_EXIT}"
    )
    _add_arguments(parser)
    parser.set_defaults(handler=_request, annotation=REQUESTED)


def add_suspend(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger suspend NAME`."""
    parser.description = (
        "Suspend all work on a package until `wharfinger resume NAME`. The command sets spec.suspend of the package's "
        f"resource. Hooks of the package do not run, nothing is applied, and nothing is deleted. {_EXIT}"
    )
    _add_arguments(parser)
    parser.set_defaults(handler=_suspend, suspended=True)


def add_resume(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger resume NAME`."""
    parser.description = (
        "Resume the work on a suspended package. The command sets spec.suspend of the package's resource to false, and the "
        f"daemon then begins its work on the package again from the start. {_ANSWERED} {_EXIT}"
    )
    _add_arguments(parser)
    parser.set_defaults(handler=_suspend, suspended=False)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_package_name(parser)
    add_cluster(parser)


async def request(client: ClusterClient, name: str, annotation: str, now: datetime) -> None:
    """Set an annotation of a package's resource to a time; each new value is a request. Raises ClusterError."""
    key = resource_key(package_id(name))
    patch: JsonObject = {"metadata": {"annotations": {annotation: format_micro_time(now)}}}
    await client.merge_patch(key, patch)


async def suspend(client: ClusterClient, name: str, *, suspended: bool) -> bool:
    """Suspend a package, or resume it; return whether its resource was changed. Raises ClusterError."""
    key = resource_key(package_id(name))
    if bool(find(await client.get(key), "spec", "suspend")) == suspended:
        return False
    patch: JsonObject = {"spec": {"suspend": suspended}}
    await client.merge_patch(key, patch)
    return True


def _request(args: argparse.Namespace) -> int:
    name = cast("str", args.name)

    async def ask(client: ClusterClient) -> str:
        await request(client, name, cast("str", args.annotation), datetime.now(UTC))
        return f"requested; `wharfinger why {name}` explains the result"

    return _run(args, ask)


def _suspend(args: argparse.Namespace) -> int:
    name, suspended = cast("str", args.name), cast("bool", args.suspended)
    done = "suspended" if suspended else "resumed"

    async def ask(client: ClusterClient) -> str:
        return done if await suspend(client, name, suspended=suspended) else f"already {done}"

    return _run(args, ask)


def _run(args: argparse.Namespace, ask: Callable[[ClusterClient], Awaitable[str]]) -> int:
    """Run a request with a client of the cluster, print its answer, and return the exit code."""
    name = printable(cast("str", args.name))

    async def run() -> str:
        connection = await trio.to_thread.run_sync(
            load_connection, cast("Path | None", args.kubeconfig), cast("str", args.context), abandon_on_cancel=True
        )
        async with open_client(connection) as client:
            return await ask(client)

    try:
        answer = trio.run(run)
    except IdentityError as error:
        return _failed(printable(str(error)), 2)
    except NotFoundError:
        return _failed(unknown_package(name))
    except (ClusterError, ConnectionConfigError) as error:
        return _failed(cluster_problem(error))
    sys.stdout.write(f"{name}: {answer}\n")
    return 0


def _failed(message: str, code: int = 1) -> int:
    sys.stderr.write(f"error: {message}\n")
    return code
