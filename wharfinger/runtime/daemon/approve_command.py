"""``wharfinger approve``: approve the update of a package to a version that waits for approval.

The command writes an annotation of the resource with the rights of the user who runs it, because the debug socket is read-only.
"""

import argparse
import sys
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import ConnectionConfigError, load_connection
from wharfinger.cluster.api.errors import ClusterError, NotFoundError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.formats.terminal_text import printable
from wharfinger.packages.errors import AddressError
from wharfinger.packages.registry.address import tag_of_version
from wharfinger.runtime.installing.command_arguments import (
    add_cluster,
    add_package_name,
    cluster_problem,
    unknown_package,
)
from wharfinger.runtime.resources.identity import IdentityError, package_id
from wharfinger.runtime.resources.resources import resource_key
from wharfinger.runtime.versions.version_policy import APPROVED

EXIT_NOTHING: Final = 3


class NothingToApproveError(Exception):
    """No version of the package waits for approval."""


def add_approve(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger approve NAME [VERSION]`."""
    parser.description = (
        "Approve an update that waits for approval. Only a package that follows a version range or a channel can have such an "
        "update. The command sets an annotation on the package's resource. `wharfinger why NAME` shows the version "
        "that waits. The approval is valid only for this version. If spec.update.mode is 'windows', the daemon installs an "
        f"approved version even while no window is open. Exit code 0: approved; {EXIT_NOTHING}: no version waits for approval; "
        "1: there is no such package, or the request to the cluster failed; 2: wrong usage."
    )
    add_package_name(parser)
    parser.add_argument(
        "version",
        metavar="VERSION",
        nargs="?",
        default="",
        help="the version to approve (default: the version that waits for approval)",
    )
    add_cluster(parser)
    parser.set_defaults(handler=_approve)


async def approve(client: ClusterClient, name: str, version: str) -> str:
    """Approve a version, and return it; "" approves the version that waits for approval. Raises ClusterError or
    NothingToApproveError.
    """
    key = resource_key(package_id(name))
    obj = await client.get(key)
    if find_str(obj, "spec", "packageVersion"):
        raise NothingToApproveError("the package has an exact version, which needs no approval")
    if not version:
        version = find_str(obj, "status", "update", "pending")
        if not version:
            raise NothingToApproveError(
                find_str(obj, "status", "update", "message")
                or "the package has an exact version, which needs no approval"
            )
    patch: JsonObject = {"metadata": {"annotations": {APPROVED: version}}}
    await client.merge_patch(key, patch)
    return version


def _approve(args: argparse.Namespace) -> int:
    name, version = cast("str", args.name), cast("str", args.version)
    try:
        tag_of_version(version or "0.0.0")
    except AddressError as error:
        return _failed(f"VERSION: {error}", 2)

    async def run() -> str:
        connection = await trio.to_thread.run_sync(
            load_connection, cast("Path | None", args.kubeconfig), cast("str", args.context), abandon_on_cancel=True
        )
        async with open_client(connection) as client:
            return await approve(client, name, version)

    try:
        approved = trio.run(run)
    except NothingToApproveError as error:
        return _failed(f"{name}: no version waits for approval: {printable(str(error))}", EXIT_NOTHING)
    except IdentityError as error:
        return _failed(printable(str(error)), 2)
    except NotFoundError:
        return _failed(unknown_package(printable(name)), 1)
    except (ClusterError, ConnectionConfigError) as error:
        return _failed(cluster_problem(error), 1)
    sys.stdout.write(f"{name}: version {printable(approved)} is approved\n")
    return 0


def _failed(message: str, code: int) -> int:
    sys.stderr.write(f"error: {message}\n")
    return code
