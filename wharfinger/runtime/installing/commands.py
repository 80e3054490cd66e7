"""``wharfinger install`` and ``wharfinger uninstall``: their arguments, output and exit codes."""

import argparse
import math
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, cast

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import ConnectionConfigError, load_connection
from wharfinger.cluster.api.errors import ClusterError, NotFoundError, UnknownKindError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import find_list
from wharfinger.formats.option_values import time_option
from wharfinger.formats.terminal_text import printable
from wharfinger.packages.definition.requirements import is_instance_name
from wharfinger.packages.errors import PackageError
from wharfinger.runtime.installing.command_arguments import add_cluster, cluster_problem, complete_names
from wharfinger.runtime.installing.installation import (
    InstallError,
    InstallRequest,
    clean_up,
    reachable,
    remove,
    request,
    wait_ready,
)
from wharfinger.runtime.installing.made_objects import read_settings
from wharfinger.runtime.installing.target import read_target

EXIT_LATE: Final = 3
TIMEOUT_S: Final = 600.0


def add_install(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger install TARGET`."""
    parser.description = (
        "With your own rights, create an Application, and wait until the daemon has installed the package. TARGET is a "
        "folder or a chart archive on this machine, which the command copies into Secrets for the daemon; or "
        "oci://HOST/PATH/NAME[:VERSION]; or NAME[@VERSION|RANGE], a package of an existing PackageRepository. For a folder or "
        "an archive, or if no PackageRepository has the address HOST/PATH yet, the command also creates a PackageRepository. "
        "To change the package, run the command again. "
        f"Exit code 0: the package is Ready; {EXIT_LATE}: it is not Ready within --timeout, but the daemon continues; 1: "
        "the package cannot be installed."
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="./chart, web-1.2.3.tgz, oci://HOST/PATH/NAME[:VERSION] or NAME[@VERSION|RANGE]",
    )
    parser.add_argument("--name", metavar="NAME", help="name of the Application (default: the package's name)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a value of the package's settings, such as web.replicas=2 (may be repeated)",
    )
    parser.add_argument(
        "--repository",
        default="",
        metavar="NAME",
        help="the PackageRepository that has the package, if TARGET is not a folder or an archive (default: for "
        "oci://HOST/PATH/NAME, a PackageRepository with the address HOST/PATH; otherwise the PackageRepository named "
        "default)",
    )
    parser.add_argument(
        "--cluster-scope",
        action="store_true",
        help="label the namespace, so that its Applications may change objects in the whole cluster",
    )
    parser.add_argument(
        "--create-namespace",
        action="store_true",
        help="create the namespace if it does not exist; `wharfinger uninstall` does not delete it",
    )
    parser.add_argument("--no-wait", action="store_true", help="do not wait until the package is Ready")
    _add_common(parser)
    parser.set_defaults(handler=_install)


def add_uninstall(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger uninstall NAME`."""
    parser.description = (
        "With your own rights, delete an Application, and wait until the daemon has removed the package. Then delete the "
        "PackageRepository, if `wharfinger install` created it and no other package uses it. "
        "Exit code 0: the Application is gone; "
        f"{EXIT_LATE}: it is not gone within --timeout, but the daemon continues; 1: there is no such Application, or it "
        "cannot be deleted."
    )
    complete_names(parser, parser.add_argument("name", metavar="NAME", help="name of the Application"))
    _add_common(parser)
    parser.set_defaults(handler=_uninstall)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n",
        "--namespace",
        default="default",
        metavar="NS",
        help="namespace of the Application (default: the namespace %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=time_option,
        default=TIMEOUT_S,
        metavar="TIME",
        help="longest time to wait, such as 90s or 5m; a number without a unit means seconds (default: %(default)g)",
    )
    add_cluster(parser)


async def install(client: ClusterClient, wanted: InstallRequest, *, wait: bool, limit_s: float = math.inf) -> list[str]:
    """Install a package, and return one line for each address at which it can be reached; an empty list without ``wait``.

    Raises InstallError, ClusterError, and TooSlowError if the package was requested but is not ready after ``limit_s``.
    """
    generation = await request(client, wanted, _report)
    if not wait:
        return []
    with trio.fail_after(limit_s):
        obj = await wait_ready(client, wanted, generation, _report)
        await clean_up(client, wanted)
        for warning in find_list(obj, "status", "warnings"):
            _report(f"warning: {warning}")
        return await reachable(client, wanted, obj)


def _install(args: argparse.Namespace) -> int:
    namespace = cast("str", args.namespace)
    try:
        settings = read_settings(cast("list[str]", args.set))
        target = read_target(cast("str", args.target))
    except (FormatError, PackageError) as error:
        return _failed(str(error), 2)
    name = cast("str | None", args.name) or target.name.rpartition("/")[2]
    if not is_instance_name(name):
        return _failed(
            f"--name {name!r:.100}: expected a name of lower-case letters, digits, '-' and '.', at most 53 characters",
            2,
        )
    wanted = InstallRequest(
        target,
        namespace,
        name,
        settings,
        cast("str", args.repository),
        cast("bool", args.cluster_scope),
        cast("bool", args.create_namespace),
    )

    async def work(client: ClusterClient) -> None:
        lines = await install(client, wanted, wait=not args.no_wait, limit_s=cast("float", args.timeout))
        for line in lines:
            sys.stdout.write(f"{printable(line)}\n")

    return _run(args, work, f"{namespace}/{name}")


def _uninstall(args: argparse.Namespace) -> int:
    namespace, name = cast("str", args.namespace), cast("str", args.name)

    async def work(client: ClusterClient) -> None:
        try:
            await remove(client, namespace, name, _report, limit_s=cast("float", args.timeout))
        except NotFoundError as error:
            if f'"{name}" not found' not in error.message:  # the API server does not serve the kind
                raise
            raise InstallError(f"there is no such Application; {_meant(name)}") from error
        sys.stdout.write(f"{namespace}/{name}: removed\n")

    return _run(args, work, f"{namespace}/{name}")


def _meant(name: str) -> str:
    """Return a hint for a name that no Application has. Perhaps the user gave NAMESPACE.NAME, as most other commands expect."""
    namespace, _, rest = name.partition(".")
    if rest:
        return f"did you mean `wharfinger uninstall {rest} -n {namespace}`?"
    return "`wharfinger get packages` lists all packages"


def _run(args: argparse.Namespace, work: Callable[[ClusterClient], Awaitable[None]], what: str) -> int:
    """Do the work with a client of the cluster, print an error if it fails, and return the exit code."""

    async def run() -> None:
        connection = await trio.to_thread.run_sync(
            load_connection, cast("Path | None", args.kubeconfig), cast("str", args.context), abandon_on_cancel=True
        )
        async with open_client(connection) as client:
            await work(client)

    try:
        trio.run(run)
    except trio.TooSlowError:
        why = f"`wharfinger why {what.replace('/', '.')}`"
        return _failed(f"{what}: not done in time; the daemon continues; see {why}", EXIT_LATE)
    except InstallError as error:
        return _failed(f"{what}: {error}", 1)
    except NotFoundError as error:
        return _failed(f"{error}; check the name, the namespace, and that the daemon has installed its CRDs", 1)
    except UnknownKindError as error:
        return _failed(f"{error}; start the daemon, which installs its CustomResourceDefinitions", 1)
    except (ClusterError, ConnectionConfigError) as error:
        return _failed(cluster_problem(error), 1)
    except KeyboardInterrupt:
        return _failed(
            f"{what}: interrupted; if the request was already written, the daemon continues to work on it", 1
        )
    return 0


def _report(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")
    sys.stderr.flush()


def _failed(message: str, code: int) -> int:
    sys.stderr.write(f"error: {printable(message)}\n")
    return code
