"""The environment of hooks: the variables on an allow-list, and the variables that options name. Pure.

The daemon may have inherited any variables from the user or the systemd unit that started it, such as cloud credentials or the
``KUBECONFIG`` of another cluster. Hooks must not get these. A hook gets only three groups of variables: those that describe the
machine (PASSED, PASSED_PREFIX and PROXIES); those that ``--hook-env`` names; and those that the daemon sets for the run, such as
the variables of the hook contract (`RunFolder.variables`). The daemon also sets ``KUBECONFIG`` to a file for its own cluster
(:mod:`wharfinger.hooks.containment.cluster_access`), unless ``--hook-env`` sets another one.

The address of a proxy may contain a name and a password. A proxy variable with such an address is passed on only if
``--hook-env`` names it.
"""

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from wharfinger.hooks import shell_library
from wharfinger.process.environment import child_environment

KUBECONFIG: Final = "KUBECONFIG"
HOME: Final = "HOME"
NO_HOME: Final = "/nonexistent"
"""The value of HOME for a program that has no folder of its own, such as a hook that only prints its configuration."""
PASSED: Final = (
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TZDIR",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    shell_library.FRAMEWORK_DIR,
)
PASSED_PREFIX: Final = "LC_"
PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
"""The proxy variables, which exist in capital and in small letters."""
_DIRECT: Final = ("NO_PROXY", "no_proxy")
_OF_A_CLUSTER: Final = ("KUBE", "HELM_KUBE")
"""The prefixes of the names of variables that select a cluster. Such a variable is passed on only if an option gives its full
name; a pattern never matches it.
"""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")
_ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class AskedVariable:
    """One use of ``--hook-env``. ``name`` is a name, or a prefix of names if ``is_prefix`` is true.

    If ``value`` is None, hooks get the value that the variable has in the daemon's environment.
    """

    name: str
    value: str | None = field(default=None, repr=False)
    is_prefix: bool = False

    @property
    def shown(self) -> str:
        """Return the name of the variable, without its value."""
        return f"{self.name}{_ANY}" if self.is_prefix else self.name

    def matches(self, name: str) -> bool:
        """Return whether this use of ``--hook-env`` names a variable of the daemon's environment."""
        if not self.is_prefix:
            return name == self.name
        return name.startswith(self.name) and not name.startswith(_OF_A_CLUSTER)


@dataclass(frozen=True, slots=True)
class HookEnvironment:
    """The variables that every hook gets, and warnings about them for the user who started the daemon."""

    variables: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()


def asked_variable(text: str) -> AskedVariable:
    """Parse ``NAME``, ``NAME=VALUE``, ``PREFIX*`` or ``*``. Raises ArgumentTypeError."""
    name, sign, value = text.partition("=")
    is_prefix = not sign and name.endswith(_ANY)
    if is_prefix:
        name = name.removesuffix(_ANY)
    if "\0" in value or not (_NAME.fullmatch(name) or (is_prefix and not name)):
        raise argparse.ArgumentTypeError(f"{text.partition('=')[0][:80]!r} is not NAME, NAME=VALUE, PREFIX* or *")
    return AskedVariable(name, value if sign else None, is_prefix)


def add_environment_option(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """Add the option ``--hook-env``."""
    parser.add_argument(
        "--hook-env",
        type=asked_variable,
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="NAME passes this environment variable to hooks, and NAME=VALUE sets it for hooks. NAME* passes all variables "
        "that begin with NAME, and a lone * passes all variables; neither passes variables that select a cluster (may be "
        "repeated; default: only variables without secrets, such as PATH, the language and the time zone)",
    )


def hook_environment(environ: Mapping[str, str], asked: Sequence[AskedVariable] = ()) -> HookEnvironment:
    """Return the variables that hooks get from ``environ``, the environment of the daemon.

    ``asked``: variables that are passed on or set in addition.
    """
    environ = child_environment(environ)
    variables = {name: value for name, value in environ.items() if name in PASSED or name.startswith(PASSED_PREFIX)}
    variables.setdefault("PATH", os.defpath)
    warnings = []
    for name, value in _proxies(environ):
        if not _has_credentials(name, value):
            variables[name] = value
        elif not any(one.matches(name) for one in asked):
            warnings.append(
                f"{name} contains a user name or a password, so hooks do not get it; pass it on with --hook-env {name}"
            )
    for one in asked:
        found = (
            {one.name: one.value}
            if one.value is not None
            else {name: environ[name] for name in environ if one.matches(name)}
        )
        if not found:
            warnings.append(
                f"--hook-env {one.shown}: the daemon has no such variable to pass on to hooks; set it, or leave the option out"
            )
        variables |= found
    return HookEnvironment({**shell_library.environment(variables), **variables}, tuple(warnings))


def reach_directly(variables: Mapping[str, str], host: str) -> dict[str, str]:
    """Return a copy of ``variables``. If they set a proxy, ``host`` is added to NO_PROXY in the copy.

    ``host`` is the host of the API server if the daemon reaches it without a proxy, because hooks must not use a proxy either;
    otherwise it is empty.
    """
    if not host or not any(variables.get(name) for name, _ in _proxies(variables) if name not in _DIRECT):
        return dict(variables)
    # Some programs read only one of the two variables. If only one is set, its value is used for both.
    known = next((hosts for name in _DIRECT if (hosts := variables.get(name))), "")
    excepted = {name: _with_host(variables.get(name) or known, host) for name in _DIRECT}
    return {**variables, **excepted}


def _proxies(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in PROXIES:
        for spelling in (name, name.lower()):
            if spelling in environ:
                yield spelling, environ[spelling]


def _has_credentials(name: str, value: str) -> bool:
    return name not in _DIRECT and "@" in value


def _with_host(hosts: str, host: str) -> str:
    known = [each.strip() for each in hosts.split(",") if each.strip()]
    return ",".join(known if host in known else [*known, host])
