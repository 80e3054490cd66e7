"""The examination of a machine and a cluster: whether they have everything that the daemon needs, and what to do if not.

Nothing is changed on the machine or in the cluster. An examination that needs the result of a failed examination is reported
as skipped, so users should begin with the first failed finding.
"""

import os
import re
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

import trio

import wharfinger
from wharfinger.cluster.api.bounded_map import each as each_of
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.connection import Connection, ConnectionConfigError, load_connection
from wharfinger.cluster.api.errors import ApiError, ClusterError, NotFoundError, UnknownKindError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.formats.json.value import find_str
from wharfinger.kube.resource import name_of
from wharfinger.kube.times import parse_time
from wharfinger.packages.errors import LoginRefusedError, RegistryError, RenderError
from wharfinger.packages.network.proxies import read_proxies
from wharfinger.packages.registry.connection import RegistryAccess
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.rendering.chart_engine import EngineLimits, open_chart_engine
from wharfinger.packages.rendering.helm_program import HelmProgram
from wharfinger.packages.rendering.helm_renderer import RenderLimits
from wharfinger.packages.sources.source import RegistrySource
from wharfinger.runtime.daemon.engine import ENGINE
from wharfinger.runtime.daemon.rights import (
    FOR_ACCOUNTS,
    FOR_ADMISSION,
    FOR_POOLS,
    NEEDED,
    REMEDY,
    Right,
    listed,
    missing_rights,
)
from wharfinger.runtime.resources.custom_resources import OF_POOLS, own_crds
from wharfinger.runtime.resources.repositories import read_repository
from wharfinger.runtime.resources.resources import PACKAGE_REPOSITORY, SpecError

LEAST_HELM: Final = (3, 14)
LEAST_FREE: Final = 1024**3
"""The free disk space in bytes below which the finding about the state folder is a warning; one large chart takes some tens
of megabytes.
"""
MOST_APART_S: Final = 30.0
"""The largest accepted difference between the clocks of this machine and of the API server, in seconds."""
MOST_REGISTRIES: Final = 16
REGISTRY_S: Final = 8.0
_IDENTITY: Final = "authentication.k8s.io/v1"
CLUSTER_S: Final = 20.0
"""The time limit for each examination that sends requests to the API server, in seconds."""
_NEEDED_BY_HOOKS: Final = {"bash": "hooks that are shell scripts", "jq": "hooks that are shell scripts"}


class Verdict(StrEnum):
    """The result of one examination."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one examination. ``remedy`` is empty if there is nothing to do, or if the message names the remedy."""

    subject: str
    verdict: Verdict
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Examined:
    """The options of the daemon that ``doctor`` uses to examine the machine and the cluster."""

    kubeconfig: Path | None
    context: str
    state_dir: Path
    socket: Path
    helm: str
    worker_pools: bool = False
    admission: bool = False
    require_account: bool = False

    @property
    def rights(self) -> tuple[Right, ...]:
        """The rights that the daemon needs for itself with these options."""
        return (
            *NEEDED,
            *(FOR_POOLS if self.worker_pools else ()),
            *(FOR_ADMISSION if self.admission else ()),
            *(FOR_ACCOUNTS if self.require_account else ()),
        )


AskDaemon = Callable[[Path], str]
"""A function that returns the version of the daemon that answers on a socket. Raises DaemonAbsentError; blocks."""


class DaemonAbsentError(Exception):
    """No daemon answers on a socket; the message says why."""


async def examine(examined: Examined, ask_daemon: AskDaemon, tell: Callable[[Finding], None]) -> None:
    """Make all checks of `wharfinger doctor`, and call ``tell`` with the finding of each check as soon as it is known."""
    tell(await _helm(examined.helm, _on_path(examined.helm)))
    tell(await _engine(_on_path(ENGINE)))
    for program, users in _NEEDED_BY_HOOKS.items():
        tell(_program(program, users))
    tell(_state_folder(examined.state_dir))
    tell(await _daemon(examined.socket, ask_daemon))
    async with _connected(examined, tell) as client:
        if client is None:
            for subject in ("API server", "clock", "rights", "definitions", "registries"):
                tell(Finding(subject, Verdict.SKIPPED, "there is no usable kubeconfig", "see kubeconfig"))
            return
        reached = await _within(client, "API server", _server)
        tell(reached)
        for subject, ask in (
            ("clock", _clock),
            ("rights", _rights_of(examined)),
            ("definitions", _definitions_of(examined)),
            ("registries", _registries),
        ):
            if reached.verdict is Verdict.FAILED:
                tell(Finding(subject, Verdict.SKIPPED, "the API server does not answer", "see API server"))
            else:
                tell(await _within(client, subject, ask))


# --- this machine


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found).absolute() if found else None


async def _helm(name: str, path: Path | None) -> Finding:
    remedy = f"install Helm {'.'.join(map(str, LEAST_HELM))} or newer, or name it with --helm"
    if path is None:
        return Finding("helm", Verdict.FAILED, f"no {name!r} on PATH", remedy)
    program = HelmProgram(path, RenderLimits().memory_bytes, None)
    try:
        version = await program.version(_scratch)
    except RenderError as error:
        return Finding("helm", Verdict.FAILED, str(error), remedy)
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers < LEAST_HELM:
        return Finding("helm", Verdict.FAILED, f"{path} is {version}", remedy)
    return Finding("helm", Verdict.OK, f"{path}, {version}")


async def _engine(path: Path | None) -> Finding:
    remedy = "build the engine with `make engine`; without it, each render starts a process of helm"
    if path is None:
        return Finding("chart engine", Verdict.WARNING, f"no {ENGINE!r} on PATH", remedy)
    bounds, version = RenderLimits(), ""
    limits = EngineLimits(bounds.wall_s, bounds.output_bytes, bounds.memory_bytes, workers=1)
    try:
        async with _scratch() as folder, open_chart_engine(path, folder, None, limits) as engine:
            version = engine.versions.helm
    except RenderError as error:
        return Finding("chart engine", Verdict.WARNING, str(error), remedy)
    return Finding("chart engine", Verdict.OK, f"{path}, helm {version}")


@asynccontextmanager
async def _scratch() -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        await trio.lowlevel.checkpoint()
        yield Path(folder)


def _program(name: str, users: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name, Verdict.WARNING, f"no {name!r} on PATH; {users} need it", f"install {name}")
    return Finding(name, Verdict.OK, path)


def _state_folder(path: Path) -> Finding:
    # `Path.exists` would raise if this user may not search a parent folder. This loop finds that parent folder instead.
    existing = next(each for each in (path, *path.parents) if os.path.exists(each))  # noqa: PTH110
    remedy = "run this as the daemon's user, or choose another folder with --state-dir"
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Finding("state folder", Verdict.FAILED, f"this user cannot write to {existing}", remedy)
    found = existing.stat()
    if existing == path and found.st_uid != os.geteuid():
        return Finding("state folder", Verdict.FAILED, f"{path} belongs to user {found.st_uid}", remedy)
    if existing == path and stat.S_IMODE(found.st_mode) & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        return Finding("state folder", Verdict.WARNING, f"{path} has mode {mode:o}", f"chmod 700 {path}")
    free = shutil.disk_usage(existing).free
    if free < LEAST_FREE:
        room = f"{free // 1024**2} MiB are free in {existing}"
        return Finding(
            "state folder", Verdict.WARNING, room, "free some disk space: packages and renders are kept there"
        )
    return Finding("state folder", Verdict.OK, f"{path}{'' if existing == path else ' (the daemon will create it)'}")


async def _daemon(socket: Path, ask_daemon: AskDaemon) -> Finding:
    try:
        version = await trio.to_thread.run_sync(ask_daemon, socket, abandon_on_cancel=True)
    except DaemonAbsentError as error:
        return Finding("daemon", Verdict.WARNING, str(error))  # the message names the remedy
    if version != wharfinger.__version__:
        told = f"the daemon on {socket} has version {version}, this program {wharfinger.__version__}"
        return Finding(
            "daemon", Verdict.WARNING, told, "restart the daemon, or use the command line of the daemon's version"
        )
    return Finding("daemon", Verdict.OK, f"version {version} answers on {socket}")


# --- the cluster


@asynccontextmanager
async def _connected(examined: Examined, tell: Callable[[Finding], None]) -> AsyncIterator[ClusterClient | None]:
    """Yield a client; if there is no usable kubeconfig, report that, and yield None."""
    with tempfile.TemporaryDirectory() as certificates:
        try:
            connection: Connection = await trio.to_thread.run_sync(
                load_connection, examined.kubeconfig, examined.context, Path(certificates), abandon_on_cancel=True
            )
        except ConnectionConfigError as error:
            tell(Finding("kubeconfig", Verdict.FAILED, str(error)))  # the message names the remedy
            yield None
            return
        if connection.verify_tls:
            tell(Finding("kubeconfig", Verdict.OK, connection.server))
        else:
            unchecked = f"{connection.server}, whose certificate is not checked"
            tell(
                Finding(
                    "kubeconfig",
                    Verdict.WARNING,
                    unchecked,
                    "replace insecure-skip-tls-verify in the kubeconfig by the certificate of the CA",
                )
            )
        async with open_client(connection) as client:
            yield client


async def _within(client: ClusterClient, subject: str, ask: Callable[[ClusterClient], Awaitable[Finding]]) -> Finding:
    """Return the finding that ``ask`` returns. If ``ask`` fails or takes too long, return a failed finding with the reason."""
    remedy = "check the address and the credentials of the kubeconfig with `kubectl version`"
    with trio.move_on_after(CLUSTER_S):
        try:
            return await ask(client)
        except ClusterError as error:
            return Finding(subject, Verdict.FAILED, str(error), remedy)
    return Finding(subject, Verdict.FAILED, f"no answer within {CLUSTER_S:g} s", remedy)


async def _server(client: ClusterClient) -> Finding:
    return Finding("API server", Verdict.OK, await client.server_version())


def utc_now() -> datetime:
    """Return the time of this machine's clock."""
    return datetime.now(UTC)


async def _clock(client: ClusterClient) -> Finding:
    """Compare the clocks: the API server returns a SelfSubjectReview with the time at which it was made."""
    unknown = Finding(
        "clock",
        Verdict.SKIPPED,
        "the API server does not return its time",
        "compare the clocks of this machine and of the API server by hand",
    )
    began = utc_now()
    try:
        review = await client.create({"apiVersion": _IDENTITY, "kind": "SelfSubjectReview", "metadata": {}})
    except (ApiError, UnknownKindError):
        return unknown
    ended, made = utc_now(), parse_time(find_str(review, "metadata", "creationTimestamp"))
    if made is None:
        return unknown
    behind_s = (made - ended).total_seconds()
    ahead_s = (began - made).total_seconds() - 1.0  # the server cuts off fractions of seconds
    if max(behind_s, ahead_s) <= MOST_APART_S:
        return Finding("clock", Verdict.OK, f"differs from the API server's by less than {MOST_APART_S:g} s")
    apart = f"{behind_s:.0f} s behind" if behind_s > 0 else f"{ahead_s:.0f} s ahead of"
    remedy = (
        "synchronize the clocks, for example with chrony: certificates, tokens and the times in statuses depend on them"
    )
    return Finding("clock", Verdict.WARNING, f"this machine's clock is {apart} the API server's", remedy)


async def _registries(client: ClusterClient) -> Finding:
    """Check that the registries of PackageRepositories answer requests that contain no login; at most MOST_REGISTRIES are
    checked.
    """
    try:
        found = (await client.list(PACKAGE_REPOSITORY)).items
    except NotFoundError:  # the CRD does not exist yet
        found = ()
    sources: dict[str, RegistrySource] = {}
    for obj in found:
        # Only the registry's address is used, so any folder is allowed for local packages and token files.
        with suppress(SpecError):
            source = read_repository(obj, (), (Path("/"),)).source
            if isinstance(source, RegistrySource):
                sources.setdefault(f"{source.address.scheme}://{source.address.registry}", source)
    if not sources:
        return Finding("registries", Verdict.OK, "no PackageRepository names a registry")
    asked = sorted(sources)[:MOST_REGISTRIES]
    problems = [each for each in await each_of(asked, lambda name: _registry_problem(sources[name]), limit=4) if each]
    if problems:
        remedy = "check the addresses and spec.registry.ca of the PackageRepositories, the network, and the variable HTTPS_PROXY"
        return Finding("registries", Verdict.WARNING, "; ".join(problems), remedy)
    return Finding("registries", Verdict.OK, f"{', '.join(asked)}: answering")


async def _registry_problem(source: RegistrySource) -> str:
    """Return why a registry does not answer; "" if it answers, or demands a login."""
    address = source.address
    with trio.move_on_after(REGISTRY_S):
        try:
            access = RegistryAccess(proxies=read_proxies(os.environ))
            async with open_registry(address.registry, scheme=address.scheme, ca=source.ca, access=access) as registry:
                await registry.check(address.path)
        except LoginRefusedError:
            return ""
        except RegistryError as error:
            return str(error)
        return ""
    return f"{address.registry}: no answer within {REGISTRY_S:g} s"


def _rights_of(examined: Examined) -> Callable[[ClusterClient], Awaitable[Finding]]:
    async def ask(client: ClusterClient) -> Finding:
        if missing := await missing_rights(client, examined.rights):
            return Finding("rights", Verdict.FAILED, f"missing: {listed(missing)}", REMEDY)
        return Finding(
            "rights", Verdict.OK, "the user has all rights that the daemon needs for itself; packages may need more"
        )

    return ask


def _definitions_of(examined: Examined) -> Callable[[ClusterClient], Awaitable[Finding]]:
    crds = own_crds()
    names = [
        name_of(crd) for crd in crds if examined.worker_pools or find_str(crd, "spec", "names", "kind") not in OF_POOLS
    ]

    async def ask(client: ClusterClient) -> Finding:
        served = {f"{each.plural}.{each.group}" for each in (await client.served_kinds()).kinds}
        if lacking := [name for name in names if name not in served]:
            return Finding(
                "definitions",
                Verdict.OK,
                f"{', '.join(lacking)}: these definitions are missing; the daemon creates them when it starts",
            )
        return Finding("definitions", Verdict.OK, f"the API server serves {', '.join(names)}")

    return ask
