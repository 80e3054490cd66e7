"""Shell completion: ``wharfinger completion SHELL``, and the completion of package names for commands that write into a
cluster.

These commands are in `runtime`. The package names come from the running daemon, and the client that requests them is in `debug`,
which `runtime` must not import. So this module connects the commands with the names.
"""

import argparse
import sys
from collections.abc import Mapping
from typing import Final, Protocol


class Completer(Protocol):
    """A function that argcomplete calls to complete an argument; it gets further keyword arguments, which are not used here."""

    def __call__(self, prefix: str, parsed_args: argparse.Namespace, **others: object) -> list[str]:
        """Return the values that begin with ``prefix``."""
        ...


def add_completion(parser: argparse.ArgumentParser, program: str) -> None:
    """Add the arguments of `wharfinger completion SHELL`."""
    parser.description = (
        "Print a script with which your shell completes the commands and options of wharfinger, and the names of the "
        'packages of the running daemon. For bash, add `eval "$(wharfinger completion bash)"` to ~/.bashrc; for fish, add '
        "`wharfinger completion fish | source` to config.fish."
    )
    shells = ("bash", "zsh", "fish", "tcsh", "powershell")
    parser.add_argument("shell", choices=shells, metavar="SHELL", help=f"your shell: {', '.join(shells)}")
    parser.set_defaults(handler=_print_script, program=program)


def _print_script(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415 - only this command needs it

    sys.stdout.write(f"{shellcode([str(args.program)], shell=str(args.shell))}\n")
    return 0


def _complete_name(prefix: str, parsed_args: argparse.Namespace, **_others: object) -> list[str]:
    from wharfinger.debug.client.name_completion import complete_name  # noqa: PLC0415 - only at the Tab key

    return complete_name(prefix, parsed_args)


def _complete_instance(prefix: str, parsed_args: argparse.Namespace, **_others: object) -> list[str]:
    from wharfinger.debug.client.name_completion import complete_instance  # noqa: PLC0415 - only at the Tab key

    return complete_instance(prefix, parsed_args)


COMPLETERS: Final[Mapping[str, Completer]] = {
    **dict.fromkeys(("reconcile", "retry", "suspend", "resume", "approve", "rollback"), _complete_name),
    "uninstall": _complete_instance,
}
"""The functions that complete the argument NAME. The keys are names of commands."""
