"""The arguments of the commands that write into a cluster: the package that they are about, and the kubeconfig."""

import argparse
from pathlib import Path


def add_package_name(parser: argparse.ArgumentParser) -> None:
    """Add the argument NAME of a package: ``args.name``. Its names complete from the daemon, see :func:`complete_names`."""
    name = parser.add_argument("name", metavar="NAME", help="NAMESPACE.NAME of an Application, or the name of a Module")
    complete_names(parser, name)


def complete_names(parser: argparse.ArgumentParser, action: argparse.Action) -> None:
    """Let argcomplete complete an argument by the default ``complete_name`` of the parser, if it has one.

    The composition root sets it, because the client of the daemon's socket is in `debug`, which `runtime` must not import.
    """
    if (completer := parser.get_default("complete_name")) is not None:
        vars(action)["completer"] = completer


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the cluster: ``args.kubeconfig`` and ``args.context``."""
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the cluster (default: $KUBECONFIG, ~/.kube/config, or in-cluster)",
    )
    parser.add_argument("--context", default="", help="context of the kubeconfig (default: its current context)")


def unknown_package(name: str) -> str:
    """Return the message for a name of which the cluster has no resource."""
    if "." in name:
        return f"{name}: there is no such Application; `wharfinger get packages` lists all"
    return f"{name}: there is no such Module, and an Application is named NAMESPACE.NAME; `wharfinger get packages` lists all"
