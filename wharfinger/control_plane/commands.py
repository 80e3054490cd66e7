"""The command ``wharfinger control-plane``.

The modules of the server are imported only when it starts, so that ``--help`` stays quick.
"""

import argparse
import logging
import signal
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from wharfinger.formats.option_values import path_option
from wharfinger.kube.chaos_options import add_chaos
from wharfinger.kube.embedded_extra import missing_libraries
from wharfinger.kube.version_option import add_kubernetes_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from wharfinger.control_plane.serving import Address, Faults
    from wharfinger.control_plane.storage.interface import Storage


def add_control_plane(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the handler of ``wharfinger control-plane``."""
    from wharfinger.control_plane.access.kubeconfig_file import default_path  # noqa: PLC0415 - see the module's docstring

    parser.description = (
        "Serve an embedded Kubernetes control plane, which kubectl, helm and the daemon can use. Its state is in memory, "
        "and is lost when the command stops, unless --data names a file for the state."
    )
    parser.add_argument(
        "--listen",
        default="127.0.0.1:0",
        metavar="ADDRESS:PORT",
        help="the address to listen on; port 0: any free port (default: %(default)s)",
    )
    parser.add_argument(
        "--data",
        type=path_option,
        metavar="FILE",
        help="keep the state in this file, and load it at the next start (default: in memory only); clients can continue "
        "after a restart if --token-file and a port in --listen are given as well",
    )
    parser.add_argument(
        "--kubeconfig",
        type=path_option,
        default=default_path(),
        metavar="PATH",
        help="the kubeconfig file to write, which only you can read (default: embedded/kubeconfig in "
        "$WHARFINGER_STATE_DIR, or else in the folder wharfinger of $XDG_STATE_HOME or ~/.local/state)",
    )
    parser.add_argument(
        "--token-file",
        type=path_option,
        metavar="PATH",
        help="use the token in this file; if it does not exist, create it with a new token (default: a new token at "
        "each start)",
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="allow --listen to name an address that other machines can reach",
    )
    parser.add_argument(
        "--tls",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="--tls (default): serve over TLS, with a certificate authority that is kept in the folder tls beside the "
        "kubeconfig. --no-tls: serve over plain HTTP; the server's address in the kubeconfig then contains the token, and "
        "some clients refuse such an address",
    )
    parser.add_argument(
        "--until-stdin-ends",
        action="store_true",
        help="also stop when standard input ends. If standard input is a pipe from a parent process, the control plane then "
        "stops together with this process",
    )
    parser.add_argument(
        "--pod-commands",
        type=path_option,
        metavar="FOLDER",
        help="run the commands of kubectl exec on this machine, as your user. Each Pod has its own folder below FOLDER, in "
        "which its commands run. Without this option, such commands are refused, because Pods are only simulated",
    )
    add_kubernetes_version(parser, "")
    add_chaos(parser, "")
    parser.set_defaults(handler=_control_plane)


def faults_problem(rules: str | None) -> str:
    """Return the error in the rules of ``--chaos``, or ""."""
    from wharfinger.control_plane.faults.rule_reader import FaultRuleError, read_rules  # noqa: PLC0415

    try:
        if rules is not None:
            read_rules(rules)
    except (FaultRuleError, OSError) as error:
        return f"--chaos: {error}"
    return ""


def _faults(args: argparse.Namespace) -> "Faults":
    from wharfinger.control_plane.faults.rule_reader import read_rules  # noqa: PLC0415
    from wharfinger.control_plane.serving import Faults  # noqa: PLC0415

    return Faults(() if args.chaos is None else read_rules(args.chaos), args.chaos_seed)


def _log_faults() -> None:
    """Set up logging so that each injected fault prints a line on standard error."""
    log = logging.getLogger("wharfinger.control_plane.faults")
    log.handlers[:] = [logging.StreamHandler()]
    log.setLevel(logging.INFO)
    log.propagate = False


def _control_plane(args: argparse.Namespace) -> int:
    if problem := missing_libraries():
        return _fail(problem)
    from wharfinger.control_plane.kubernetes_version import choose  # noqa: PLC0415

    choose(args.kubernetes_version)  # before the modules that read its tables are imported
    from wharfinger.control_plane.access.kubeconfig_file import kept_token, new_token  # noqa: PLC0415
    from wharfinger.control_plane.serving import parse_address  # noqa: PLC0415
    from wharfinger.kube.kubeconfig import check_replaceable  # noqa: PLC0415

    try:
        address = parse_address(args.listen)
    except ValueError as error:
        return _fail(f"--listen: {error}", code=2)
    if not address.loopback and not args.allow_remote:
        return _fail(
            f"--listen {args.listen}: other machines could reach it; listen on 127.0.0.1, or add --allow-remote", code=2
        )
    try:
        check_replaceable(args.kubeconfig)
    except ValueError as error:
        return _fail(f"--kubeconfig: {error}")
    except OSError as error:
        return _fail(f"--kubeconfig: {error}; give the path of a file that this user can read, or of a new file")
    try:
        token = new_token() if args.token_file is None else kept_token(args.token_file)
    except (OSError, ValueError) as error:
        return _fail(f"--token-file: {error}; give a file that holds one token, or a path at which it can be created")
    if problem := faults_problem(args.chaos):
        return _fail(problem, code=2)
    if args.chaos is not None:
        _log_faults()
    lifeline = sys.stdin.fileno() if args.until_stdin_ends else None
    serve = partial(
        _run, address, args.kubeconfig, token, lifeline=lifeline, faults=_faults(args), tls=args.tls,
        command_folder=args.pod_commands,
    )  # fmt: skip
    return _serve(serve, args.data)


def _run(
    address: "Address",
    kubeconfig: Path,
    token: str,
    storage: "Storage | None",
    *,
    lifeline: int | None,
    faults: "Faults",
    tls: bool,
    command_folder: Path | None,
) -> None:
    import trio  # noqa: PLC0415

    from wharfinger.control_plane.serving import run_until_stopped  # noqa: PLC0415

    def print_line(line: str) -> None:
        print(line, flush=True)

    serve = partial(
        run_until_stopped, storage=storage, lifeline=lifeline, faults=faults, tls=tls, command_folder=command_folder
    )
    trio.run(partial(serve, address, kubeconfig, token, print_line))


def _serve(run: "Callable[[Storage | None], None]", data: Path | None) -> int:
    from wharfinger.control_plane.serving import ControlPlaneStartError  # noqa: PLC0415
    from wharfinger.control_plane.storage.interface import StorageError  # noqa: PLC0415
    from wharfinger.control_plane.storage.sqlite import open_sqlite_storage  # noqa: PLC0415

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with nullcontext() if data is None else open_sqlite_storage(data) as storage:
            run(storage)
            for number in before:
                # The server has stopped: a signal while the data file is being closed must not kill the process.
                signal.signal(number, signal.SIG_IGN)
    except StorageError as error:
        return _fail(str(error))
    except ControlPlaneStartError as error:
        return _fail(str(error))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _fail(message: str, *, code: int = 1) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code
