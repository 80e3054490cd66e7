"""Leadership: at any time, only one daemon of a cluster, or of a shard, works. It is the holder of a Lease in the namespace
``wharfinger-system``. The Lease is named ``wharfinger``, or ``wharfinger-SHARD`` for a shard.

A daemon's identity is in a file of its state folder, and only one process at a time can lock the state folder. So a daemon that
was killed takes its own Lease back immediately when it is restarted with the same folder, but a daemon on another machine has
to wait until the Lease has expired. Each process that holds the Lease has a fence: a number that is greater than the fence of
the former holder. The process writes this number into its release records (:mod:`~wharfinger.cluster.lease.fencing`).
"""

import logging
import socket
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, NotFoundError
from wharfinger.cluster.lease.fence import Fence
from wharfinger.cluster.lease.lease import Lease, open_lease
from wharfinger.cluster.lease.record import LEASE_API, LeaseRecord
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.cluster_events.reasons import EventReason
from wharfinger.runtime.cluster_events.recorder import Recorder, subject_of
from wharfinger.runtime.controllers.state_dir import StateDirError
from wharfinger.runtime.daemon.repeated_warning import RepeatedWarning
from wharfinger.runtime.daemon.rights import NEEDED, Right, await_rights, watch_rights
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.shards.ownership import MAIN, lease_name

log = logging.getLogger(__name__)

LEASE: Final = lease_name(MAIN)
LEASE_S: Final = 15.0
"""The default duration of the Lease. The holder renews the Lease after a third of this time. If the holder cannot renew the
Lease within two thirds of this time, it gives the Lease up.
"""
IDENTITY_FILE: Final = "identity"
MAX_IDENTITY: Final = 200
RETRY_S: Final = 2.0
REPORT_S: Final = 5.0
AGAIN_S: Final = 60.0


@asynccontextmanager
async def open_leadership(
    client: ClusterClient,
    state: Path,
    now: Callable[[], datetime],
    standby: Callable[[str], None] = lambda _: None,
    needed: Sequence[Right] = NEEDED,
    *,
    name: str = LEASE,
    duration_s: float = LEASE_S,
    fence: Fence | None = None,
    seen: Callable[[LeaseRecord], None] = lambda _: None,
) -> AsyncGenerator[Lease, None]:
    """Wait until this daemon holds the Lease, and renew it while the block runs. Raises StateDirError, LeaseLostError.

    A daemon that lacks one of the ``needed`` rights does not request the Lease, so that another daemon that has these rights
    gets it. ``standby`` is called with the reason for the wait, possibly several times with the same reason, and with "" each
    time the reason has ended. ``name`` is the name of the Lease, and ``duration_s`` the time for which it is granted. ``fence``
    permits the daemon's writes only while the Lease is held. The requests of ``client`` must not depend on that fence, and
    should not have to wait for other requests. ``seen`` is called each time the Lease was read.
    """
    identity = await trio.to_thread.run_sync(identity_of, state)
    await await_rights(client, standby, needed)
    await _ensure_namespace(client)

    def waiting(why: str) -> None:
        _tell(why, name)
        standby(why)

    async with (
        open_lease(
            client,
            SYSTEM_NAMESPACE,
            name,
            identity,
            duration_s=duration_s,
            renew_s=duration_s / 3,
            now=now,
            waiting=waiting,
            fence=fence,
            seen=seen,
        ) as lease,
        trio.open_nursery() as nursery,
    ):
        standby("")
        log.info("%s holds the Lease %s/%s (leaseTransitions: %d)", identity, SYSTEM_NAMESPACE, name, lease.fence)
        nursery.start_soon(watch_rights, client, needed, name="rights")
        yield lease
        nursery.cancel_scope.cancel(reason="the daemon stops")


async def report_leader(client: ClusterClient, lease: Lease, recorder: Recorder, name: str = LEASE) -> None:
    """Record an Event about the Lease, so that `kubectl describe lease` shows which daemon led at what time. A failure is
    only logged, because nothing depends on the Event.
    """
    try:
        with trio.fail_after(REPORT_S):
            resource = await client.resource_type(*LEASE_API)
            obj = await client.get(ObjectKey(resource, SYSTEM_NAMESPACE, name))
    except (ClusterError, trio.TooSlowError) as error:
        log.debug("the Event about the new leader was not written: %s", error)
        return
    shard = "" if name == LEASE else f" for shard {name.removeprefix(f'{LEASE}-')}"
    text = f"{lease.identity} leads{shard} from now on (leaseTransitions: {lease.fence})"
    recorder.record(subject_of(obj), EventReason.LEADER_CHANGED, text)


def identity_of(state: Path) -> str:
    """Return the identity ``<host>_<uuid>``, made once for a state folder. Blocks. Raises StateDirError."""
    path = state / IDENTITY_FILE
    try:
        with suppress(FileNotFoundError):
            if known := path.read_text(errors="replace").strip()[:MAX_IDENTITY]:
                return known
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"[:MAX_IDENTITY]
        fresh = path.with_suffix(".new")
        fresh.write_text(f"{identity}\n")
        fresh.replace(path)
    except OSError as error:
        raise StateDirError(f"{path}: {error.strerror}; check the disk and the owner of the state folder") from error
    return identity


def _tell(why: str, name: str) -> None:
    what = "cluster" if name == LEASE else "shard"
    log.warning(
        "on standby: %s; only one daemon works on a %s at a time, and this one takes over when the other stops or no longer "
        "renews the Lease",
        why,
        what,
    )


async def _ensure_namespace(client: ClusterClient) -> None:
    """Create the Lease's namespace if it is missing, with retries until it exists."""
    said = RepeatedWarning(log, AGAIN_S)
    while True:
        try:
            await _make_namespace(client)
        except ClusterError as error:
            said.warn(f"namespace {SYSTEM_NAMESPACE}: {error}; trying again every {RETRY_S:g} s")
            await trio.sleep(RETRY_S)
        else:
            return


async def _make_namespace(client: ClusterClient) -> None:
    """Create the namespace if it does not exist. The existence is checked first, because the daemon may lack the right to
    create it. Raises ClusterError.
    """
    resource = await client.resource_type("v1", "Namespace")
    try:
        await client.get(ObjectKey(resource, "", SYSTEM_NAMESPACE))
    except NotFoundError:
        with suppress(ConflictError):
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}})
