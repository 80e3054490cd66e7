"""The options of ``wharfinger run`` about hooks: folders in addon-operator's layout, the steps that a restart repeats, and
the environment of hooks.
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from wharfinger.hooks.containment.cluster_access import CredentialsPolicy
from wharfinger.hooks.containment.hook_environment import add_environment_option
from wharfinger.hooks.containment.options import size_of
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.requirements import is_package_name
from wharfinger.runtime.lifecycle.restart_policy import Repeat
from wharfinger.runtime.resources.resources import CONFIG_MAP, is_object_name

_MODULES: Final = ("ADDON_OPERATOR_MODULES_DIR", "MODULES_DIR")
_CONFIG_MAP: Final = ("ADDON_OPERATOR_NAMESPACE", "ADDON_OPERATOR_CONFIG_MAP")
_GLOBAL: Final = ("ADDON_OPERATOR_GLOBAL_HOOKS_DIR", "GLOBAL_HOOKS_DIR")
"""The environment variables for the folder of global hooks: addon-operator's documents name the first, but its code reads the
second.
"""
MAX_WARM: Final = 64
"""The largest number of idle workers for one interpreter."""
LEAST_POOL_MEMORY: Final = 32 * 1024**2
"""The smallest memory limit of the pools, enough for some workers and the process that forks them."""


@dataclass(frozen=True, slots=True)
class AddonFolders:
    """The folders in addon-operator's layout that are to be installed, and the ConfigMap with their settings. The truth value
    of the object is False if there are no folders.
    """

    modules: tuple[Path, ...] = ()
    global_hooks: Path | None = None
    config_map: ObjectKey | None = None

    def __bool__(self) -> bool:
        """Return whether there is any folder with modules or global hooks."""
        return bool(self.modules or self.global_hooks)

    def folders(self) -> tuple[Path, ...]:
        """Return all folders that packages are read from."""
        return (*self.modules, *((self.global_hooks,) if self.global_hooks else ()))


def add_hooks(parser: argparse.ArgumentParser) -> None:
    """Add the options about hooks.

    They are ``--modules-dir``, ``--global-hooks-dir``, ``--config-map``, ``--on-startup``, ``--synchronization``,
    ``--hook-env``, ``--hook-credentials``, ``--warm-hooks`` and ``--pool-memory``.
    """
    folders = parser.add_argument_group(
        "addon-operator folders",
        "folders with modules and global hooks in the layout of addon-operator; the daemon keeps these modules installed",
    )
    folders.add_argument(
        "--modules-dir",
        action="append",
        default=[],
        metavar="DIR[:DIR]",
        help="folders that contain modules of addon-operator, one folder for each module; if several of them contain a module "
        f"of the same name, the first one is used (may be repeated; default: ${_MODULES[0]}, else ${_MODULES[1]}, else none)",
    )
    folders.add_argument(
        "--global-hooks-dir",
        default="",
        metavar="DIR",
        help=f"the folder of global hooks, which run before and after all packages (default: ${_GLOBAL[0]}, else "
        f"${_GLOBAL[1]}, else none)",
    )
    folders.add_argument(
        "--config-map",
        type=config_map_key,
        default=None,
        metavar="NAMESPACE/CONFIGMAP",
        help="the ConfigMap that contains the settings of these modules, and enables or disables them, in the format of "
        f"addon-operator (default: the ConfigMap ${_CONFIG_MAP[1]} in the namespace ${_CONFIG_MAP[0]}, if both variables "
        "are set)",
    )
    starts = parser.add_argument_group(
        "restarts",
        "which hooks run again after a restart of the daemon; the value 'layout' means 'always' for modules of "
        "addon-operator, and 'needed' for all other packages",
    )
    for option, what in (
        (
            "--on-startup",
            "when hooks run for onStartup; always: at each start of the daemon; needed: once for each version of the package",
        ),
        (
            "--synchronization",
            (
                "when hooks run for Synchronization, with all objects that they watch; always: at each start of the "
                "daemon; needed: only if these objects differ from those that the hook was last given"
            ),
        ),
    ):
        starts.add_argument(
            option,
            type=_repeat,
            default=Repeat.LAYOUT,
            metavar="|".join(Repeat),
            help=f"{what} (default: %(default)s)",
        )
    given = parser.add_argument_group(
        "environment of hooks",
        "hooks do not inherit the environment of the daemon: they get only variables that are harmless, and variables that "
        "--hook-env names",
    )
    add_environment_option(given)
    given.add_argument(
        "--hook-credentials",
        type=_policy,
        default=CredentialsPolicy.MODULES,
        metavar="|".join(CredentialsPolicy),
        help="which hooks get a KUBECONFIG with the daemon's credentials; modules: hooks of Modules, and global hooks; "
        "all: also hooks of Applications; none: no hooks (default: %(default)s)",
    )
    warm = parser.add_argument_group(
        "warm hooks", "Python interpreters that are started in advance, so that hooks start faster"
    )
    warm.add_argument(
        "--warm-hooks",
        type=_workers,
        default=0,
        metavar="N",
        help="keep N idle worker processes for each Python interpreter that hooks use. The interpreter takes about 20 MB of "
        "memory, and each worker 3 MB more. A hook that cannot use a worker is started as a new process. With this option, "
        "processes of hooks with `pool: persistent` are kept running, too (default: 0: each run is a new process)",
    )
    warm.add_argument(
        "--pool-memory",
        type=_pool_memory,
        default=0,
        metavar="SIZE",
        help="limit on the memory, such as 512Mi, that idle workers, their interpreters and hooks with `pool: persistent` "
        "use together. When the limit is reached, hooks are started as new processes, and idle workers are ended (default: "
        "a fifth of the memory of the machine or of the control group)",
    )


def addon_folders(args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> AddonFolders:
    """Return the folders of modules and of global hooks, as absolute paths, and the ConfigMap with their settings. If an option
    is missing, the environment variable for it is read. The variable for the ConfigMap is read only if there are folders.
    """
    named = cast("list[str]", args.modules_dir) or [_first(environment, _MODULES)]
    modules = tuple(Path(part).resolve() for text in named for part in text.split(":") if part)
    global_hooks = cast("str", args.global_hooks_dir) or _first(environment, _GLOBAL)
    config_map = cast("ObjectKey | None", args.config_map)
    if config_map is None and (modules or global_hooks):
        config_map = _config_map_of(environment)
    return AddonFolders(
        tuple(dict.fromkeys(modules)), Path(global_hooks).resolve() if global_hooks else None, config_map
    )


def folders_problem(folders: AddonFolders) -> str:
    """Return the problem with the folders; empty if there is no problem."""
    for path in folders.folders():
        if not path.is_dir():
            return f"{path}: not a folder; name an existing one (--modules-dir, --global-hooks-dir)"
    if folders.global_hooks is not None and not any(path.is_file() for path in folders.global_hooks.rglob("*")):
        return (
            f"--global-hooks-dir {folders.global_hooks}: expected hooks, found no file; leave the option out if "
            "there are no global hooks"
        )
    if folders.config_map is not None and not folders:
        return (
            "--config-map names the settings of modules and global hooks, but there is no folder of either; give "
            "--modules-dir or --global-hooks-dir"
        )
    return ""


def _workers(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= MAX_WARM:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:80]!r} is not a number from 0 to {MAX_WARM}")


def _pool_memory(text: str) -> int:
    found = size_of(text)
    if found is not None and found >= LEAST_POOL_MEMORY:
        return found
    raise argparse.ArgumentTypeError(f"{text[:80]!r} is not a size of at least 32Mi")


def config_map_key(text: str) -> ObjectKey:
    """Return the key of ``NAMESPACE/CONFIGMAP``. Raises ArgumentTypeError."""
    namespace, slash, name = text.partition("/")
    if not (slash and is_package_name(namespace) and is_object_name(name)):
        raise argparse.ArgumentTypeError(f"{text[:320]!r} is not NAMESPACE/CONFIGMAP")
    return ObjectKey(CONFIG_MAP, namespace, name)


def _config_map_of(environment: Mapping[str, str]) -> ObjectKey | None:
    """Return the ConfigMap that addon-operator's environment variables name; None if they name no ConfigMap, or if the name
    is invalid.
    """
    namespace, name = (environment.get(variable, "") for variable in _CONFIG_MAP)
    known = is_package_name(namespace) and is_object_name(name)
    return ObjectKey(CONFIG_MAP, namespace, name) if known else None


def _repeat(text: str) -> Repeat:
    try:
        return Repeat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not one of {', '.join(Repeat)}") from error


def _policy(text: str) -> CredentialsPolicy:
    try:
        return CredentialsPolicy(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not one of {', '.join(CredentialsPolicy)}") from error


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((environment[name] for name in names if environment.get(name)), "")
