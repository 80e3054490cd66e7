"""``wharfinger run``: the daemon in the foreground."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import trio

from wharfinger.cluster.api.connection import ConnectionConfigError
from wharfinger.cluster.embedded import EmbeddedError
from wharfinger.cluster.lease.lease import LeaseLostError
from wharfinger.formats.option_values import path_option
from wharfinger.hooks import shell_library
from wharfinger.hooks.containment.hook_environment import AskedVariable
from wharfinger.hooks.containment.options import ContainmentError, add_containment_options, containment_of
from wharfinger.kube.chaos_options import add_chaos
from wharfinger.kube.resource import ObjectKey
from wharfinger.kube.version_option import DEFAULT as DEFAULT_KUBERNETES
from wharfinger.kube.version_option import add_kubernetes_version
from wharfinger.packages.errors import StoreError
from wharfinger.packages.registry.verified_blob import LeastSpeed
from wharfinger.process.allocator import return_freed_memory
from wharfinger.process.errors import LedgerError
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.admission.endpoint import AdmissionAddressError
from wharfinger.runtime.controllers.state_dir import StartError
from wharfinger.runtime.daemon.admission_options import add_admission, admission_endpoint
from wharfinger.runtime.daemon.config import HOOK_TIMEOUT_S, DaemonConfig
from wharfinger.runtime.daemon.daemon import ServeInspector, ServeMetrics, run_daemon
from wharfinger.runtime.daemon.engine import ENGINE, NO_ENGINE
from wharfinger.runtime.daemon.hook_options import add_hooks, addon_folders, config_map_key, folders_problem
from wharfinger.runtime.daemon.leadership import LEASE_S
from wharfinger.runtime.daemon.logs import LogFormat, set_up_logging
from wharfinger.runtime.daemon.service_manager import service_manager
from wharfinger.runtime.daemon.source_options import SourceOptionsError, add_sources, source_options
from wharfinger.runtime.daemon.traces import add_traces, trace_options
from wharfinger.runtime.lifecycle.journal import JournalError
from wharfinger.runtime.paths import (
    SOCKET_VARIABLE,
    STATE_DIR_WORDS,
    default_socket,
    default_state_dir,
    too_long_socket,
)
from wharfinger.runtime.plan.platform_options import add_platform, platform_problem
from wharfinger.runtime.recording.flight_log import DEFAULT_BYTES
from wharfinger.runtime.resources.application_scope import ApplicationScope
from wharfinger.runtime.resources.apply_options import add_apply, apply_options
from wharfinger.runtime.shards.ownership import MAIN, SHARD_LABEL, shard_problem

_LIMITS = {
    "work": "limit on downloads, loads, renders and hook runs, all together",
    "downloads": "limit on packages that are downloaded at the same time",
    "renders": "limit on charts that are rendered at the same time",
    "hooks": "limit on hooks that run at the same time",
    "loads": "limit on packages that are unpacked and read at the same time",
    "api": "limit on requests to the API server that run at the same time for the work on packages",
}
GRACE_S = 30.0
FORCED_EXIT = 1
_MIB = 1024 * 1024
OF_MAIN = ("admission", "worker_pools", "modules_dir", "global_hooks_dir")
"""The options about features that are not divided among shards, so only the main daemon may have these options."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``wharfinger run``."""
    parser.description = (
        "Run the daemon in the foreground until SIGTERM or Ctrl-C. The daemon watches Applications and Modules, and keeps "
        "their packages installed. A second signal stops the daemon immediately. Exit code 0: a clean stop; 1: a forced "
        "stop, a failed start, or a fatal error, such as the loss of the Lease; 2: wrong usage."
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
        help=f"the debug socket to serve (default: ${SOCKET_VARIABLE}, else run/debug.sock in the state folder)",
    )
    parser.add_argument("--helm", default="helm", help="the Helm program, version 3 or 4 (default: %(default)s)")
    parser.add_argument(
        "--engine",
        default="",
        metavar="PROGRAM",
        help="the chart engine: a program that renders charts in place of helm; "
        f"{NO_ENGINE!r}: start a helm process for each render (default: {ENGINE}, if it is found in $PATH)",
    )
    parser.add_argument(
        "--grace",
        type=_seconds,
        default=GRACE_S,
        metavar="SECONDS",
        help="longest time for a clean stop; after it, the stop is forced (default: %(default)g)",
    )
    parser.add_argument(
        "--embedded",
        action="store_true",
        help="start an embedded control plane, keep its data in the state folder, and manage its packages; no cluster is "
        "needed",
    )
    parser.add_argument(
        "--local-packages",
        type=path_option,
        action="append",
        default=[],
        metavar="DIR",
        help="allow PackageRepositories to take packages from folders, OCI image layouts and git repositories below this "
        "folder on this machine (may be repeated)",
    )
    add_sources(parser)
    parser.add_argument(
        "--no-tls",
        action="store_true",
        help="with --embedded: serve over plain HTTP; the server's address in the kubeconfig then contains the token, and "
        "some clients refuse such an address",
    )
    add_kubernetes_version(parser, "with --embedded: ")
    add_chaos(parser, "with --embedded: ")
    _add_facts(parser)
    parser.add_argument(
        "--hook-timeout",
        type=_seconds,
        default=HOOK_TIMEOUT_S,
        metavar="SECONDS",
        help="longest time for a run of a hook; a run that takes longer is stopped (default: %(default)g)",
    )
    parser.add_argument(
        "--application-scope",
        type=_scope,
        default=ApplicationScope.NAMESPACE,
        metavar="|".join(ApplicationScope),
        help="the objects that an Application's chart may write and look up. namespace: the objects of its own namespace, "
        "or of the whole cluster if the namespace has the label wharfinger.dev/cluster-scope=allowed. cluster: the objects "
        "of the whole cluster, for a daemon that serves one tenant (default: %(default)s)",
    )
    parser.add_argument(
        "--require-service-account",
        action="store_true",
        help="refuse an Application or a Module without a service account. The account is named by "
        "spec.serviceAccountName, or by the label wharfinger.dev/service-account=NAME of the namespace (default: the "
        "daemon acts with its own rights for a package without an account)",
    )
    parser.add_argument(
        "--worker-pools",
        action="store_true",
        help="manage WorkerPools and WorkerClaims: keep idle pods ready, and assign them to claims (default: the daemon "
        "ignores both kinds)",
    )
    add_hooks(parser)
    add_containment_options(parser)
    parser.add_argument(
        "--metrics-address",
        default="",
        metavar="HOST:PORT",
        help="serve /metrics, /metrics/hooks, /healthz, /livez and /readyz on this address, without a login (default: only "
        "on the debug socket)",
    )
    add_admission(parser)
    _add_limits(parser)
    retry = parser.add_argument_group(
        "retries",
        "pauses between retries of a failed task; they grow up to --retry-max, and are varied at random by up to half",
    )
    retry.add_argument(
        "--retry-first",
        type=_seconds,
        default=BackoffPolicy().initial_s,
        metavar="SECONDS",
        help="pause before the first retry (default: %(default)g)",
    )
    retry.add_argument(
        "--retry-max",
        type=_seconds,
        default=BackoffPolicy().max_s,
        metavar="SECONDS",
        help="longest pause between two retries (default: %(default)g)",
    )
    add_apply(parser)
    parser.add_argument(
        "--shard",
        type=_shard,
        default=MAIN,
        metavar="NAME",
        help=f"manage only the Applications of one shard, that is, those in namespaces with the label {SHARD_LABEL}=NAME. "
        "Each shard needs a daemon of its own, which holds a Lease of its own (default: manage the Modules, and all "
        "Applications that belong to no shard)",
    )
    parser.add_argument(
        "--lease-duration",
        type=_lease_seconds,
        default=LEASE_S,
        metavar="SECONDS",
        help="time after which a daemon on standby takes over a Lease that was not renewed; use the same time for all "
        "daemons of a cluster (default: %(default)g)",
    )
    parser.add_argument(
        "--flight-recorder",
        type=path_option,
        default=None,
        metavar="DIR",
        help="write all decisions, without secrets, to a log in this folder, which `wharfinger history`, `why --at` and "
        "`replay` can read (default: keep only the latest decisions, in memory)",
    )
    parser.add_argument(
        "--flight-recorder-size",
        type=_mib,
        default=DEFAULT_BYTES // _MIB,
        metavar="MIB",
        help="size limit of the log of --flight-recorder; when it is reached, the oldest entries are deleted (default: "
        "%(default)s)",
    )
    add_traces(parser)
    parser.add_argument(
        "--log-format",
        choices=[form.value for form in LogFormat],
        default=LogFormat.TEXT.value,
        help="format of the log on stderr; text: a line for each message; colour: text in colors; json: an object for each "
        "message (default: %(default)s)",
    )
    parser.add_argument(
        "--log-level",
        choices=["debug", "info", "warning", "error"],
        default="info",
        help="lowest level of the messages in the log (default: %(default)s)",
    )
    parser.set_defaults(handler=run)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    limits = parser.add_argument_group(
        "limits",
        "limits on work that is done at the same time. Namespaces, and the packages of each namespace, share the limits "
        "fairly. One namespace can use only a part of each limit, and one registry only a part of --max-downloads, so work "
        "that hangs does not delay the work of others.",
    )
    defaults, least = SlotLimits(), LeastSpeed()
    for name, what in _LIMITS.items():
        limits.add_argument(
            f"--max-{name}",
            type=_count,
            default=getattr(defaults, name),
            metavar="N",
            help=f"{what} (default: %(default)s)",
        )
    limits.add_argument(
        "--max-namespace-share",
        type=_percent,
        default=defaults.namespace_share,
        metavar="PERCENT",
        help="largest part of each of these limits that one namespace, or all Modules together, may use (default: "
        "%(default)s)",
    )
    limits.add_argument(
        "--max-registry-share",
        type=_percent,
        default=defaults.source_share,
        metavar="PERCENT",
        help="largest part of --max-downloads that downloads from one registry may use (default: %(default)s)",
    )
    limits.add_argument(
        "--download-least-speed",
        type=_kib_per_s,
        default=least.bytes_per_s / 1024,
        metavar="KIB",
        help="lowest allowed speed of a download, in KiB/s; a download that is slower during --download-window is stopped, "
        "and retried later (default: %(default)g)",
    )
    limits.add_argument(
        "--download-window",
        type=_seconds,
        default=least.window_s,
        metavar="SECONDS",
        help="time over which the speed is measured for --download-least-speed (default: %(default)g)",
    )


def _add_facts(parser: argparse.ArgumentParser) -> None:
    """Add the options about the cluster that packages are installed in."""
    facts = parser.add_argument_group(
        "facts",
        "facts about the cluster and its platform; the requirements of packages are compared with them. If a version is not "
        "known, each requirement on it counts as not met. A platform is a product, such as Deckhouse, that packages may "
        "require in a certain version.",
    )
    add_platform(facts)
    facts.add_argument(
        "--bootstrapped-by",
        type=config_map_key,
        default=None,
        metavar="NAMESPACE/CONFIGMAP",
        help="the ConfigMap whose existence shows that the cluster is bootstrapped; until it exists, packages of the "
        "default order, 999 (all Applications, and Modules whose files set no order), stay off (default: the cluster counts "
        "as bootstrapped)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the daemon. ``args.serve_inspector``, ``serve_metrics`` and ``chaos_problem`` come from the composition root."""
    set_up_logging(LogFormat(args.log_format), args.log_level)
    os.umask(0o077)  # only the daemon's own user may read its files
    helm = shutil.which(args.helm)
    if helm is None:
        return _failed(f"no {args.helm!r} on PATH; install Helm 3.14 or newer, or name it with --helm")
    engine = None if args.engine == NO_ENGINE else shutil.which(args.engine or ENGINE)
    if engine is None and args.engine not in ("", NO_ENGINE):
        return _failed(f"no {args.engine!r} on PATH; build the engine with `make engine`, or leave out --engine")
    state_dir = cast("Path | None", args.state_dir) or default_state_dir()
    named_socket = cast("Path | None", args.socket) or _socket_variable()
    socket = (named_socket or default_socket(state_dir)).resolve()
    kubeconfig = cast("Path | None", args.kubeconfig)
    if args.embedded and (kubeconfig is not None or args.context):
        return _failed("--embedded starts its own cluster; leave out --kubeconfig and --context", code=2)
    given = {
        "--chaos": args.chaos is not None,
        "--no-tls": args.no_tls,
        "--kubernetes-version": args.kubernetes_version != DEFAULT_KUBERNETES,
    }
    if not args.embedded and (option := next((name for name, is_given in given.items() if is_given), "")):
        return _failed(f"{option} is used only with --embedded; add --embedded, or leave {option} out", code=2)
    if args.chaos is not None and (problem := cast("Callable[[str], str]", args.chaos_problem)(args.chaos)):
        return _failed(problem, code=2)
    folders = addon_folders(args)
    if problem := _socket_problem(socket) or _wrong_options(args) or folders_problem(folders):
        return _failed(problem, code=2)
    try:
        containment = containment_of(
            args, state_dir=state_dir.resolve(), socket=socket, extra_binds=shell_library.binds()
        )
        sources = source_options(args, os.environ)
    except (ContainmentError, SourceOptionsError) as error:
        return _failed(str(error), code=2)
    traces = trace_options(cast("str", args.otlp_endpoint), os.environ)
    if traces.problem:
        return _failed(traces.problem, code=2)
    try:
        endpoint = admission_endpoint(args)
    except AdmissionAddressError as error:
        return _failed(str(error), code=2)
    # All paths are made absolute, because helm runs in another folder.
    config = DaemonConfig(
        kubeconfig=kubeconfig.resolve() if kubeconfig else None,
        context=args.context,
        state_dir=state_dir.resolve(),
        socket=socket,
        helm=Path(helm).absolute(),
        engine=None if engine is None else Path(engine).absolute(),
        grace_s=args.grace,
        embedded=args.embedded,
        embedded_options=_embedded_options(args),
        local_packages=tuple(path.resolve() for path in cast("list[Path]", args.local_packages)),
        sources=sources,
        platform_version=args.platform_version,
        edition=args.edition,
        bundle=args.bundle,
        bootstrapped_by=cast("ObjectKey | None", args.bootstrapped_by),
        hook_timeout_s=args.hook_timeout,
        folders=folders,
        on_startup=args.on_startup,
        synchronization=args.synchronization,
        containment=containment,
        hook_env=tuple(cast("list[AskedVariable]", args.hook_env)),
        hook_credentials=args.hook_credentials,
        warm_hooks=args.warm_hooks,
        worker_pools=args.worker_pools,
        pool_memory=args.pool_memory,
        application_scope=args.application_scope,
        require_account=args.require_service_account,
        admission=endpoint,
        metrics_address=args.metrics_address,
        traces=traces.wanted,
        otlp_endpoint=traces.endpoint,
        slots=SlotLimits(
            **{name: getattr(args, f"max_{name}") for name in _LIMITS},
            source_share=args.max_registry_share,
            namespace_share=args.max_namespace_share,
        ),
        least_speed=LeastSpeed(args.download_least_speed * 1024, args.download_window),
        backoff=BackoffPolicy(initial_s=args.retry_first, max_s=args.retry_max),
        applying=apply_options(args),
        shard=args.shard,
        lease_s=args.lease_duration,
        flight_recorder=None if args.flight_recorder is None else cast("Path", args.flight_recorder).resolve(),
        flight_recorder_bytes=args.flight_recorder_size * _MIB,
    )
    serve = cast("ServeInspector", args.serve_inspector)
    serve_metrics = cast("ServeMetrics", args.serve_metrics)
    return_freed_memory()
    try:
        clean = trio.run(run_daemon, config, serve, service_manager(), serve_metrics)
    except* (
        StartError,
        ConnectionConfigError,
        EmbeddedError,
        LeaseLostError,
        LedgerError,
        JournalError,
        StoreError,
    ) as group:
        return_code = _failed(_first_message(group))
    else:
        return_code = 0 if clean else FORCED_EXIT
    return return_code


def _wrong_options(args: argparse.Namespace) -> str:
    """Return the problem with the options; empty if there is no problem."""
    for path in cast("list[Path]", args.local_packages):
        if not path.is_dir():
            return f"--local-packages {path}: not a folder; name an existing one"
    if args.shard and (option := next((name for name in OF_MAIN if getattr(args, name)), "")):
        return f"--{option.replace('_', '-')} may be used only without --shard; leave out one of the two"
    if args.retry_first > args.retry_max:
        return f"--retry-first {args.retry_first:g} is more than --retry-max {args.retry_max:g}; change one of them"
    try:
        apply_options(args)
    except ValueError as error:
        return str(error)
    return platform_problem(args)


def _socket_problem(socket: Path) -> str:
    """Return the problem with the path of the socket; empty if there is no problem."""
    if "LISTEN_FDS" in os.environ:
        return ""  # a service manager has bound the socket, so the daemon does not use the path
    problem = too_long_socket(socket)
    return problem and f"debug socket {socket}: {problem}; choose a shorter one with --socket or a shorter --state-dir"


def _socket_variable() -> Path | None:
    named = os.environ.get(SOCKET_VARIABLE)
    return Path(named) if named else None


def _scope(text: str) -> ApplicationScope:
    try:
        return ApplicationScope(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not one of {', '.join(ApplicationScope)}") from error


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 1 and 10000")
    return int(text)


def _percent(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage between 1 and 100")
    return int(text)


def _kib_per_s(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1024 * 1024:
        raise argparse.ArgumentTypeError(f"expected a number of KiB/s, above 0 and at most 1048576, found {text!r}")
    return value


def _mib(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024 * 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of MiB between 1 and 1048576")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"expected a number of seconds, above 0 and at most 3600, found {text!r}")
    return value


def _shard(text: str) -> str:
    if text and (problem := shard_problem(text)):
        raise argparse.ArgumentTypeError(problem)
    return text


def _lease_seconds(text: str) -> float:
    value = float(text) if text.isdecimal() else 0.0
    if not 3 <= value <= 300:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds between 3 and 300")
    return value


def _first_message(group: BaseExceptionGroup[Exception]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)


def _failed(message: str, *, code: int = 1) -> int:
    print(f"error: {message}", file=sys.stderr)
    return code


def _embedded_options(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the options for the embedded control plane, as arguments of its command line."""
    options = ("--kubernetes-version", args.kubernetes_version, *(("--no-tls",) if args.no_tls else ()))
    if args.chaos is None:
        return options
    return (*options, "--chaos", _absolute(args.chaos), "--chaos-seed", str(args.chaos_seed))


def _absolute(rules: str) -> str:
    """Return the fault rules with the path of their file made absolute, because a child process in another folder reads the
    file.
    """
    return str(Path(rules).absolute()) if Path(rules).is_file() else rules
