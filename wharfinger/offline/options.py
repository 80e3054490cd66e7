"""The options that all offline commands share, and their reader."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.merge_patch import overlaid
from wharfinger.formats.option_values import path_option
from wharfinger.kube.names import is_label
from wharfinger.offline.controllers.controller import RunOptions
from wharfinger.offline.orchestrator.filter import Filter, FilterError, parse_filter
from wharfinger.offline.orchestrator.orchestrator import DEFAULT_CONCURRENCY, Config
from wharfinger.offline.orchestrator.single import PackageRequest
from wharfinger.offline.orchestrator.toolbox import ToolOptions, find_program
from wharfinger.offline.sources.retry import RetryPolicy
from wharfinger.offline.store.identity import DEFAULT_NAMESPACE
from wharfinger.packages.author.package_check import read_given_settings
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.registry.docker_logins import default_file
from wharfinger.packages.rendering.helm_command import KUBE_VERSION
from wharfinger.packages.settings.values import MAX_VALUES
from wharfinger.runtime.daemon.engine import ENGINE, NO_ENGINE
from wharfinger.runtime.resources.application_scope import ApplicationScope

KUBECTL: Final = "kubectl"
_HIGHEST: Final = 64


class OptionError(Exception):
    """An option is wrong, or a program that it names is missing."""


@dataclass(frozen=True, slots=True)
class OfflineOptions:
    """The options of an offline command, once read."""

    config: Config
    tools: ToolOptions
    settings: JsonObject
    name: str
    progress: bool = True
    """If False, no progress is shown, not even on a terminal."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths that are built together."""
        return (self.config.path, *self.config.others)

    def without_filters(self) -> "OfflineOptions":
        """Return the same options without filters, so that everything is built."""
        return replace(self, config=replace(self.config, filters=()))

    def of(self, paths: Sequence[Path]) -> "OfflineOptions":
        """Return the same options for other paths."""
        return replace(self, config=replace(self.config, path=paths[0], others=tuple(paths[1:])))

    def package(self, path: Path) -> PackageRequest:
        """Return the request to build the package at a path."""
        return PackageRequest(path, self.settings, self.name, self.config.namespace, self.config.limit)


def add_path(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the paths of the tree."""
    parser.add_argument(
        "paths",
        type=path_option,
        nargs="+",
        metavar="PATH",
        help="a chart (folder or archive), a package's folder, or a file or folder of manifests (Flux, Argo CD and "
        "Wharfinger). The manifests of several paths form one tree, and the order of the paths does not matter",
    )


def add_filter(parser: argparse.ArgumentParser) -> None:
    """Add the argument ``--filter``, which limits a build to some objects."""
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="FILTER",
        help="include only the objects that match this filter: KIND, KIND/NAME, NAMESPACE/KIND/NAME (such as "
        "apps/HelmRelease/web), or KEY=VALUE[,KEY=VALUE...] with the keys kind, namespace, name, label and path. "
        "Everything that these objects need is built, too (may be repeated; then an object must match one of the filters)",
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all offline commands share."""
    parser.add_argument(
        "--values",
        type=path_option,
        action="append",
        default=[],
        metavar="FILE",
        help="a YAML or JSON file with the values of a chart, or the settings of a package (may be repeated; later files "
        "override earlier ones)",
    )
    parser.add_argument(
        "--name",
        default="",
        metavar="NAME",
        help="the name of the release of a chart or a package (default: the name of the chart or the package)",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        default=DEFAULT_NAMESPACE,
        metavar="NAMESPACE",
        help="the namespace of objects whose manifests name no namespace (default: the namespace %(default)s)",
    )
    parser.add_argument(
        "--root",
        type=path_option,
        metavar="FOLDER",
        help="the folder to which the spec.path of each Kustomization is relative (default: derived from the "
        "Kustomization that `flux bootstrap` wrote, if the tree contains it; else the git repository that contains "
        "PATH; else PATH)",
    )
    parser.add_argument(
        "--packages",
        type=path_option,
        metavar="FOLDER",
        help="take packages from this folder, and not from their PackageRepositories; the folder contains, for each package, "
        "a folder or an OCI image layout with the name of the package",
    )
    parser.add_argument(
        "--kubernetes-version",
        default=KUBE_VERSION,
        metavar="VERSION",
        help="the version of Kubernetes that templates see (default: %(default)s)",
    )
    parser.add_argument(
        "--api-versions",
        default="",
        metavar="LIST",
        help="additional API versions that templates see, separated by commas",
    )
    parser.add_argument(
        "--allow-missing-secrets",
        action="store_true",
        help="leave out the values that come from Secrets outside of the tree (default: a Secret that is not in "
        "the tree is a failure)",
    )
    parser.add_argument(
        "--allow-missing-crds",
        action="store_true",
        help="if a ResourceSet depends on a custom resource definition that is not in the tree, assume that the definition "
        "exists",
    )
    parser.add_argument(
        "--application-scope",
        choices=[scope.value for scope in ApplicationScope],
        default=ApplicationScope.NAMESPACE.value,
        help="the objects that the chart of an Application may change: those in the namespace of the Application, or those in "
        "the whole cluster; use the value that your daemon uses (default: %(default)s)",
    )
    parser.add_argument(
        "--no-progress",
        action="store_true",
        help="show no progress (default: progress is shown if stderr is a terminal)",
    )
    _add_programs(parser)


def _add_programs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("programs and network")
    group.add_argument(
        "--helm", default="helm", metavar="PROGRAM", help="the Helm program that renders charts (default: %(default)s)"
    )
    group.add_argument(
        "--kubectl",
        default=KUBECTL,
        metavar="PROGRAM",
        help="the kubectl program, which builds kustomizations with `kubectl kustomize`; it is not needed if the chart engine "
        "(--engine) is used (default: %(default)s)",
    )
    group.add_argument(
        "--engine",
        default="",
        metavar="PROGRAM",
        help="the chart engine: a program that renders charts, and builds kustomizations, in place of helm and kubectl; "
        f"{NO_ENGINE!r}: use helm and kubectl (default: {ENGINE}, if it is found in $PATH)",
    )
    group.add_argument(
        "--offline", action="store_true", help="use no network; a source fails if it would have to be downloaded"
    )
    group.add_argument(
        "--cache-dir",
        type=path_option,
        default=default_cache(),
        metavar="FOLDER",
        help="the folder in which sources and renders are cached (default: the folder wharfinger in $XDG_CACHE_HOME or "
        "~/.cache)",
    )
    group.add_argument(
        "--concurrency",
        type=_count,
        default=DEFAULT_CONCURRENCY,
        metavar="N",
        help="limit on sources, releases and Kustomizations that are processed at the same time (default: %(default)s)",
    )
    group.add_argument(
        "--attempts",
        type=_count,
        default=RetryPolicy().attempts,
        metavar="N",
        help="limit on attempts to fetch a source; a further attempt is made only after a transient error (default: "
        "%(default)s)",
    )


def read_options(args: argparse.Namespace) -> OfflineOptions:
    """Read the options. Raises OptionError."""
    paths, namespace = cast("list[Path]", args.paths), cast("str", args.namespace)
    for path in paths:
        if not path.exists():
            raise OptionError(f"{path}: does not exist; name a chart, a package or a folder of manifests")
    if not is_label(namespace):
        raise OptionError(f"--namespace {namespace[:80]!r}: cannot be a namespace")
    helm = _program(args.helm, "--helm")
    kubectl = find_program(KUBECTL) if args.kubectl == KUBECTL else _program(args.kubectl, "--kubectl")
    engine = None if args.engine == NO_ENGINE else find_program(args.engine or ENGINE)
    if engine is None and args.engine not in {"", NO_ENGINE}:
        raise OptionError(f"--engine {args.engine}: no such program; build it with `make engine`")
    packages = cast("Path | None", args.packages)
    if packages is not None and not packages.is_dir():
        raise OptionError(f"--packages {packages}: not a folder; name an existing one")
    versions = tuple(each.strip() for each in cast("str", args.api_versions).split(",") if each.strip())
    options = RunOptions(
        args.kubernetes_version,
        versions,
        allow_missing_secrets=bool(args.allow_missing_secrets),
        allow_missing_crds=bool(args.allow_missing_crds),
    )
    return OfflineOptions(
        config=Config(
            path=paths[0],
            others=tuple(paths[1:]),
            filters=_filters(cast("list[str]", vars(args).get("filter", []))),
            options=options,
            root=cast("Path | None", args.root),
            namespace=namespace,
            concurrency=cast("int", args.concurrency),
            retries=RetryPolicy(attempts=cast("int", args.attempts)),
            applications_reach_cluster=args.application_scope == ApplicationScope.CLUSTER,
        ),
        tools=ToolOptions(
            helm=helm,
            kubectl=kubectl,
            cache=cast("Path", args.cache_dir),
            engine=engine,
            packages=packages,
            docker_config=default_file(),
            network=not args.offline,
        ),
        settings=_settings(cast("list[Path]", args.values)),
        name=cast("str", args.name),
        progress=not args.no_progress,
    )


def default_cache() -> Path:
    """Return the folder for caches of this user."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "wharfinger"


def _filters(texts: list[str]) -> tuple[Filter, ...]:
    try:
        return tuple(map(parse_filter, texts))
    except FilterError as error:
        raise OptionError(f"--filter {error}") from error


def _settings(files: list[Path]) -> JsonObject:
    """Return the merged values of all files; later files win."""
    merged: JsonObject = {}
    for path in files:
        try:
            with path.open("rb") as file:
                merged = overlaid(merged, read_given_settings(file.read(MAX_VALUES + 1), str(path), 0).settings)
        except OSError as error:
            raise OptionError(f"--values {path}: cannot be read: {error.strerror}") from error
        except ArtifactError as error:
            raise OptionError(f"--values {error}") from error
    return merged


def _program(name: str, option: str) -> Path:
    found = find_program(name)
    if found is None:
        raise OptionError(f"no {name!r} on PATH; install it, or name it with {option}")
    return found


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _HIGHEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_HIGHEST}")
    return int(text)
