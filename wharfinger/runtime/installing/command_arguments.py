"""The arguments of the commands that write into a cluster: the package that they are about, and the kubeconfig."""

import argparse

from wharfinger.cluster.api.errors import UnreachableError
from wharfinger.formats.option_values import path_option
from wharfinger.formats.terminal_text import printable


def add_package_name(parser: argparse.ArgumentParser) -> None:
    """Add the argument NAME of a package: ``args.name``. The shell completes the names of the daemon's packages; see
    :func:`complete_names`.
    """
    name = parser.add_argument("name", metavar="NAME", help="NAMESPACE.NAME of an Application, or the name of a Module")
    complete_names(parser, name)


def complete_names(parser: argparse.ArgumentParser, action: argparse.Action) -> None:
    """Make argcomplete complete an argument with the function in the parser's default ``complete_name``, if it is set.

    The composition root sets that default, because the client of the daemon's socket is in `debug`, which `runtime` must not
    import.
    """
    if (completer := parser.get_default("complete_name")) is not None:
        vars(action)["completer"] = completer


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the cluster: ``args.kubeconfig`` and ``args.context``."""
    parser.add_argument(
        "--kubeconfig",
        type=path_option,
        metavar="FILE",
        help="kubeconfig of the cluster (default: the files in $KUBECONFIG, else ~/.kube/config, else, in a pod, the "
        "service account of the pod)",
    )
    parser.add_argument("--context", default="", help="context of the kubeconfig (default: its current context)")


def cluster_problem(error: Exception) -> str:
    """Return the message about a failed request to the API server, with a remedy if the server does not answer."""
    remedy = (
        "; check that the cluster runs, or name another with --kubeconfig"
        if isinstance(error, UnreachableError)
        else ""
    )
    return printable(f"{error}{remedy}")


def unknown_package(name: str) -> str:
    """Return the message for a package name if the cluster has no resource of this name."""
    if "." in name:
        return f"{name}: there is no such Application; `wharfinger get packages` lists all packages"
    return (
        f"{name}: there is no such Module; give the name of an Application as NAMESPACE.NAME; `wharfinger get "
        "packages` lists all packages"
    )
