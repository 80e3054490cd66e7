"""The configuration of a daemon, as its command line gives it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.hooks.containment.cluster_access import CredentialsPolicy
from wharfinger.hooks.containment.containment import NO_CONTAINMENT, Containment
from wharfinger.hooks.containment.hook_environment import AskedVariable
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.registry.verified_blob import LeastSpeed
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.admission.endpoint import Endpoint
from wharfinger.runtime.daemon.hook_options import AddonFolders
from wharfinger.runtime.daemon.leadership import LEASE_S
from wharfinger.runtime.daemon.source_options import SourceOptions
from wharfinger.runtime.lifecycle.restart_policy import Repeat
from wharfinger.runtime.recording.flight_log import DEFAULT_BYTES
from wharfinger.runtime.resources.application_scope import ApplicationScope
from wharfinger.runtime.shards.ownership import MAIN

HOOK_TIMEOUT_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """The configuration of a daemon at its start. ``grace_s`` bounds the whole shutdown."""

    kubeconfig: Path | None
    context: str
    state_dir: Path
    socket: Path
    helm: Path
    grace_s: float
    engine: Path | None = None
    """The program of the resident chart engine; None: helm renders every chart."""
    embedded: bool = False
    """True to start an embedded control plane as a child process, and manage its cluster."""
    embedded_options: tuple[str, ...] = ()
    """The options of the embedded control plane, such as its Kubernetes version and the faults that it injects."""
    local_packages: tuple[Path, ...] = ()
    """The folders of this machine that packages may be read from."""
    sources: SourceOptions = SourceOptions()  # noqa: RUF009 - frozen
    """The options for downloads of packages, such as proxies and mirrors."""
    platform_version: str = ""
    edition: str = ""
    bundle: str = ""
    bootstrapped_by: ObjectKey | None = None
    """The ConfigMap that exists once the cluster is bootstrapped; None if the cluster always counts as bootstrapped."""
    hook_timeout_s: float = HOOK_TIMEOUT_S
    folders: AddonFolders = AddonFolders()  # noqa: RUF009 - frozen
    on_startup: Repeat = Repeat.LAYOUT
    synchronization: Repeat = Repeat.LAYOUT
    containment: Containment = NO_CONTAINMENT
    hook_env: tuple[AskedVariable, ...] = ()
    """Additional environment variables for hooks."""
    hook_credentials: CredentialsPolicy = CredentialsPolicy.MODULES
    warm_hooks: int = 0
    """The number of idle workers that are kept for each interpreter of Python hooks; 0: each run is a new process."""
    worker_pools: bool = False
    """True to keep the pods of WorkerPools ready, and to serve WorkerClaims."""
    pool_memory: int = 0
    """The limit, in bytes, on the memory of all processes of all pools together; 0 means a share of the machine's memory."""
    application_scope: ApplicationScope = ApplicationScope.NAMESPACE
    """The scope of Applications whose namespace has no scope label: their own namespace, or the whole cluster."""
    require_account: bool = False
    """True if packages without a service account are refused."""
    admission: Endpoint | None = None
    """The endpoint of the admission server; None: no admission server."""
    metrics_address: str = ""
    """The address at which scrapers can read the metrics, in addition to the debug socket; empty if there is none."""
    traces: bool = False
    """True to export traces."""
    otlp_endpoint: str = ""
    """The address to which traces are sent; "": the address that OpenTelemetry's environment variables name."""
    backoff: BackoffPolicy = BackoffPolicy()  # noqa: RUF009 - frozen
    """The growing pauses before retries of failed tasks."""
    slots: SlotLimits = SlotLimits()  # noqa: RUF009 - frozen
    """The limit on each kind of work, for all packages together."""
    least_speed: LeastSpeed = LeastSpeed()  # noqa: RUF009 - frozen
    """The lowest allowed speed of a download; a slower download is stopped, and retried later."""
    flight_recorder: Path | None = None
    """The folder of the flight recorder's log; None: there is no log, and only the last events are kept in memory."""
    flight_recorder_bytes: int = DEFAULT_BYTES
    """The size limit of the flight recorder's log, in bytes."""
    shard: str = MAIN
    """The shard that this daemon manages."""
    lease_s: float = LEASE_S
    """The time in seconds for which the Lease is granted."""
    applying: ReconcilerOptions = EngineOptions().reconciler
    """The options for applying, correcting, pruning and deleting objects of releases."""
