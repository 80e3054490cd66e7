"""``wharfinger doctor``: examine whether the machine and the cluster have what the daemon needs, and print each finding
as soon as it is known.
"""

import argparse
import sys
from pathlib import Path
from typing import Final, assert_never, cast

import msgspec
import trio

from wharfinger.formats.encodable import write_text
from wharfinger.formats.option_values import path_option
from wharfinger.formats.terminal_text import printable
from wharfinger.runtime.daemon.doctor import AskDaemon, Examined, Finding, Verdict, examine
from wharfinger.runtime.paths import SOCKET_VARIABLE, STATE_DIR_WORDS, default_socket, default_state_dir

_TEXT: Final = "text"
_JSON: Final = "json"


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``wharfinger doctor``."""
    parser.description = (
        "Check whether this machine and the cluster have everything that the daemon needs: programs, the state folder, the "
        "kubeconfig, the API server and its clock, permissions, custom resource definitions, and the registries of "
        "PackageRepositories. If a daemon is running, check it, too. Each failure is shown with a remedy, and nothing is "
        "changed. Exit code 0: nothing failed, but there may be warnings; 1: something failed."
    )
    parser.add_argument(
        "--kubeconfig",
        type=path_option,
        default=None,
        metavar="FILE",
        help="kubeconfig of the cluster (default: the files in $KUBECONFIG, else ~/.kube/config, else, in a pod, the "
        "service account of the pod)",
    )
    parser.add_argument("--context", default="", help="context of the kubeconfig (default: its current context)")
    parser.add_argument(
        "--state-dir",
        type=path_option,
        default=None,
        metavar="DIR",
        help=f"the folder in which the daemon keeps its state (default: {STATE_DIR_WORDS})",
    )
    parser.add_argument(
        "--socket",
        type=path_option,
        default=None,
        metavar="FILE",
        help="debug socket of the daemon (default: with --state-dir, the socket in that folder; without that option, "
        f"${SOCKET_VARIABLE}, else the socket in the default state folder)",
    )
    parser.add_argument("--helm", default="helm", help="the Helm program, version 3 or 4 (default: %(default)s)")
    parser.add_argument("--worker-pools", action="store_true", help="also check what `run --worker-pools` needs")
    parser.add_argument("--admission", action="store_true", help="also check what `run --admission` needs")
    parser.add_argument(
        "--require-service-account",
        action="store_true",
        help="also check what `run --require-service-account` needs",
    )
    parser.add_argument("-o", "--output", choices=(_TEXT, _JSON), default=_TEXT, help="text (default) or json")
    parser.set_defaults(handler=run_doctor)


def run_doctor(args: argparse.Namespace) -> int:
    """Make the checks of `wharfinger doctor`, print the findings, and return the exit code. ``args.ask_daemon`` comes from the
    composition root.
    """
    named = cast("Path | None", args.state_dir)
    examined = Examined(
        kubeconfig=cast("Path | None", args.kubeconfig),
        context=args.context,
        state_dir=named or default_state_dir(),
        socket=cast("Path | None", args.socket) or default_socket(named),
        helm=args.helm,
        worker_pools=args.worker_pools,
        admission=args.admission,
        require_account=args.require_service_account,
    )
    findings: list[Finding] = []

    def tell(finding: Finding) -> None:
        findings.append(finding)
        if args.output == _TEXT:
            write_text(sys.stdout, finding_text(finding))

    trio.run(examine, examined, cast("AskDaemon", args.ask_daemon), tell)
    if args.output == _JSON:
        document = msgspec.json.encode([msgspec.to_builtins(finding) for finding in findings])
        write_text(sys.stdout, msgspec.json.format(document, indent=2).decode() + "\n")
    return 1 if any(finding.verdict is Verdict.FAILED for finding in findings) else 0


def finding_text(finding: Finding) -> str:
    """Return a finding as one line, and its remedy, if there is one, as a second line."""
    remedy = f"{'':8}remedy: {printable(finding.remedy)}\n" if finding.remedy else ""
    return f"{_word(finding.verdict):8}{finding.subject}: {printable(finding.message)}\n{remedy}"


def _word(verdict: Verdict) -> str:
    match verdict:
        case Verdict.OK:
            return "ok"
        case Verdict.WARNING:
            return "warning"
        case Verdict.FAILED:
            return "FAILED"
        case Verdict.SKIPPED:
            return "skipped"
        case _:
            assert_never(verdict)
