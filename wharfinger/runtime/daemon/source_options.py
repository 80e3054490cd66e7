"""The options of the daemon for the download of packages: mirrors, token files, and the proxies that environment variables
name.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from wharfinger.formats.option_values import path_option
from wharfinger.formats.proxies import NO_PROXIES, Proxies
from wharfinger.packages.errors import RegistryError
from wharfinger.packages.network.proxies import read_proxies
from wharfinger.packages.sources.registry_rules import NO_RULES, RegistryRules, RulesFileError, read_registry_rules


class SourceOptionsError(Exception):
    """An option or the environment is wrong; the daemon does not start."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The proxies, the rules about registries, and the folders in which token files may be."""

    proxies: Proxies = NO_PROXIES
    rules: RegistryRules = NO_RULES
    tokens: tuple[Path, ...] = ()


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add ``--registry-tokens`` and ``--registries-conf``."""
    parser.add_argument(
        "--registry-tokens",
        type=path_option,
        action="append",
        default=[],
        metavar="DIR",
        help="allow PackageRepositories to log in to registries with token files below this folder (may be repeated)",
    )
    parser.add_argument(
        "--registries-conf",
        type=path_option,
        default=None,
        metavar="FILE",
        help="file with mirrors of registries, and with rewrite rules for prefixes of references, in the format of "
        "containers-registries.conf(5)",
    )


def source_options(args: argparse.Namespace, environ: Mapping[str, str]) -> SourceOptions:
    """Return the options, with the proxies from the environment variables. Blocking. Raises SourceOptionsError."""
    tokens = cast("list[Path]", args.registry_tokens)
    for path in tokens:
        if not path.is_dir():
            raise SourceOptionsError(f"--registry-tokens {path}: not a folder; name an existing one")
    file = cast("Path | None", args.registries_conf)
    try:
        rules = NO_RULES if file is None else read_registry_rules(file)
        return SourceOptions(read_proxies(environ), rules, tuple(path.resolve() for path in tokens))
    except RulesFileError as error:
        raise SourceOptionsError(f"--registries-conf {error}") from error
    except RegistryError as error:
        raise SourceOptionsError(str(error)) from error
