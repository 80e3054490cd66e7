"""Runs of programs in pods of a WorkerPool. A run claims a pod, copies files to it, runs the program, and copies files back.

Each run has a WorkerClaim of its own, and that claim is deleted after the run, together with its pod. So no file or process of a
run can affect another run. The pod's image needs ``sh`` and ``tar``.

Time and output are limited as for a child process (:mod:`wharfinger.process.child`): the time counts from the start of the
program. Data that comes out of the pod is not trusted. A daemon that is killed leaves its claims behind. The next daemon deletes
the claims whose label RUN_LABEL names another daemon.
"""

import logging
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, GoneError, NotFoundError
from wharfinger.cluster.api.pod_exec import PodCommand, Sink
from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.kube.resource import ObjectKey, name_of
from wharfinger.pools.pods.claim_machine import BOUND, FINAL
from wharfinger.pools.pods.resources import GROUP, POD, WORKER_CLAIM
from wharfinger.process.command import Ending, Limits, Outcome, Sinks, Usage
from wharfinger.process.output import CappedOutput, TailBuffer

log = logging.getLogger(__name__)

RUN_LABEL: Final = f"{GROUP}/hook-run"
"""A label of WorkerClaims that are made for runs. Its value is a random word, which identifies the daemon that made them."""
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
CLAIM_S: Final = 30
"""The time for which a run waits for a pod."""
FILES_S: Final = 120.0
"""The time limit for copying the files, in each direction."""
REMOVE_S: Final = 10.0
MAX_RESULT_BYTES: Final = 32 * 1024 * 1024
KILLED: Final = -9

_FOLDER: Final = "${TMPDIR:-/tmp}/wharfinger-run"
_UNPACK: Final = f'umask 077; mkdir "{_FOLDER}" && tar -x -f - -C "{_FOLDER}"'
_RUN: Final = f'cd "{_FOLDER}/program" && RUN="{_FOLDER}" && . ../environment && exec "$@"'
_COLLECT: Final = (
    f'cd "{_FOLDER}/files" || exit; for name in "$@"; do shift; '
    'if [ -f "$name" ] && [ ! -L "$name" ]; then set -- "$@" "$name"; fi; done; '
    '[ $# -eq 0 ] || tar -c -f - -- "$@"'
)


class PodRunError(Exception):
    """A run in a pod did not complete: it got no pod, lost the connection, or could not copy its files."""

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


class Executor(Protocol):
    """An object that runs commands in pods."""

    async def run(self, command: PodCommand, *, stdout: Sink, stderr: Sink) -> int:
        """Run a command to its end; return its exit code. Raises ClusterError."""
        ...


@dataclass(frozen=True, slots=True)
class PodRun:
    """A program to run in a pod. ``archive`` is a tar with the folders ``program`` and ``files``, and the file ``environment``.

    The program in ``argv`` is a path relative to the folder ``program``. ``outputs`` are the names of the files in the folder
    ``files`` that are copied back from the pod. ``owner`` is written to the pod as an annotation.
    """

    namespace: str
    pool: str
    owner: str
    archive: bytes
    argv: tuple[str, ...]
    outputs: tuple[str, ...]


def environment_file(variables: Mapping[str, str], files: Mapping[str, str]) -> bytes:
    """Return the shell script that sets the environment of a run.

    ``variables`` have plain values. Each variable in ``files`` gets the path of a file in the run's folder ``files``.
    """
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    lines += [f'export {name}="$RUN/files/"{shlex.quote(file)}\n' for name, file in files.items()]
    return "".join(lines).encode()


@dataclass(frozen=True, slots=True)
class _Place:
    """A container of a pod."""

    pod: ObjectKey
    container: str

    def command(self, argv: tuple[str, ...], stdin: bytes | None = None) -> PodCommand:
        """Return a command in this container."""
        return PodCommand(self.pod, argv, self.container, stdin)


class PodRuns:
    """A runner of programs in pods. The caller limits how many programs run at the same time."""

    def __init__(self, client: ClusterClient, executor: Executor) -> None:
        self._client = client
        self._executor = executor
        self._daemon = secrets.token_hex(8)
        self._left: set[ObjectKey] = set()
        """The WorkerClaims that may still exist although their runs have ended, because their deletion is not confirmed."""

    async def remove_leftovers(self) -> None:
        """Delete the claims of daemons that were killed. Raises ClusterError."""
        found = await self._client.list(WORKER_CLAIM, label_selector=f"{RUN_LABEL},{RUN_LABEL}!={self._daemon}")
        for claim in found.items:
            await self._remove(ObjectKey(WORKER_CLAIM, find_str(claim, "metadata", "namespace"), name_of(claim)))

    async def run(self, run: PodRun, limits: Limits, sinks: Sinks) -> tuple[Outcome, bytes | None]:
        """Run a program to its end, and return its outcome, and a tar of its outputs (None if the program was ended at a limit).

        Raises PodRunError. If the call is cancelled, the run's claim is deleted before the call raises, unless that takes longer
        than REMOVE_S.
        """
        claim = ObjectKey(WORKER_CLAIM, run.namespace, f"hook-{secrets.token_hex(8)}")
        try:
            for left in tuple(self._left):
                # This happens before the new run begins, because the program of the earlier run may still run.
                await self._remove(left)
            place = await self._place(await self._claimed(claim, run))
            await self._copy_in(place, run)
            outcome = await self._execute(place, run, limits, sinks)
            return outcome, await self._copy_out(place, run) if outcome.ending is Ending.EXITED else None
        except ClusterError as error:
            raise PodRunError(str(error), transient=error.transient) from error
        finally:
            self._left.add(claim)
            with trio.move_on_after(REMOVE_S, shield=True) as patience:
                try:
                    await self._remove(claim)
                except ClusterError as error:
                    log.warning(
                        "%s: it cannot be deleted; the next run of a hook in a pod tries again: %s", claim, error
                    )
            if patience.cancelled_caught:
                log.warning("%s: not deleted within %g s; the next run of a hook in a pod tries again", claim, REMOVE_S)

    async def _claimed(self, claim: ObjectKey, run: PodRun) -> ObjectKey:
        """Request a pod with the WorkerClaim ``claim``, wait for it, and return its key. Raises PodRunError if there is none."""
        obj: JsonObject = {
            "apiVersion": WORKER_CLAIM.api_version,
            "kind": WORKER_CLAIM.kind,
            "metadata": {"namespace": claim.namespace, "name": claim.name, "labels": {RUN_LABEL: self._daemon}},
            "spec": {"pool": run.pool, "owner": run.owner, "timeoutSeconds": CLAIM_S},
        }
        await self._client.create(obj)
        with trio.move_on_after(CLAIM_S + REMOVE_S):
            while True:
                status = await self._final(claim)
                if find_str(status, "phase") == BOUND:
                    return ObjectKey(POD, claim.namespace, find_str(status, "podName"))
                if find_str(status, "phase") in FINAL:
                    raise PodRunError(f"WorkerPool {run.pool} gave no pod: {find_str(status, 'message')}")
        raise PodRunError(
            f"WorkerPool {run.pool} gave no pod within {CLAIM_S} s; see `wharfinger why claim/{run.namespace}/…`"
        )

    async def _final(self, claim: ObjectKey) -> JsonObject:
        """Return the final status of a claim. If it has none yet, wait for the next change of the claim, and return an empty
        status.
        """
        listed = await self._client.list(claim.resource, claim.namespace, field_selector=f"metadata.name={claim.name}")
        status: JsonObject = {}
        for item in listed.items:
            found = item.get("status")
            status = found if isinstance(found, dict) else {}
        if not listed.items:
            raise PodRunError("another client deleted its WorkerClaim")
        if find_str(status, "phase") in FINAL:
            return status
        try:
            async with self._client.watch(
                claim.resource,
                claim.namespace,
                resource_version=listed.resource_version,
                field_selector=f"metadata.name={claim.name}",
            ) as events:
                async for _ in events:
                    break
        except GoneError:
            pass
        return {}

    async def _place(self, pod: ObjectKey) -> _Place:
        """Return the container in which hooks run in a pod: the container that `kubectl exec` would choose."""
        obj = await self._client.get(pod)
        chosen = find_str(find_object(obj, "metadata", "annotations"), DEFAULT_CONTAINER)
        return _Place(pod, chosen or find_str(obj, "spec", "containers", 0, "name"))

    async def _copy_in(self, place: _Place, run: PodRun) -> None:
        output = TailBuffer(4096)
        with trio.move_on_after(FILES_S) as patience:
            command = place.command(("sh", "-c", _UNPACK), run.archive)
            code = await self._executor.run(command, stdout=output.add, stderr=output.add)
            if code:
                words = output.value().decode(errors="replace").strip()
                words = words or f"exit status {code}"
                raise PodRunError(f"{place.pod}: cannot unpack the hook's files: {words}; the image needs sh and tar")
        if patience.cancelled_caught:
            raise PodRunError(f"{place.pod}: the hook's files were not unpacked within {FILES_S:g} s")

    async def _copy_out(self, place: _Place, run: PodRun) -> bytes:
        found, stderr = bytearray(), TailBuffer(4096)

        def take(chunk: bytes) -> None:
            if len(found) + len(chunk) > MAX_RESULT_BYTES:
                raise PodRunError(
                    f"{place.pod}: the hook's results are over the limit of {MAX_RESULT_BYTES} bytes", transient=False
                )
            found.extend(chunk)

        with trio.move_on_after(FILES_S) as patience:
            command = place.command(("sh", "-c", _COLLECT, "sh", *run.outputs))
            try:
                code = await self._executor.run(command, stdout=take, stderr=stderr.add)
            except* PodRunError as group:
                raise PodRunError(str(group.exceptions[0]), transient=False) from group
            if code:
                raise PodRunError(
                    f"{place.pod}: cannot read the hook's results: {stderr.value().decode(errors='replace').strip()}"
                )
        if patience.cancelled_caught:
            raise PodRunError(f"{place.pod}: the hook's results were not read within {FILES_S:g} s")
        return bytes(found)

    async def _execute(self, place: _Place, run: PodRun, limits: Limits, sinks: Sinks) -> Outcome:
        """Run the program within its limits; if it exceeds a limit, the deletion of its pod ends it."""
        cap, errors, kept, full = (
            CappedOutput(limits.stdout_bytes),
            TailBuffer(limits.stderr_bytes),
            bytearray(),
            trio.Event(),
        )

        def take(chunk: bytes) -> None:
            fitting = cap.admit(chunk)
            if fitting and sinks.stdout is not None:
                sinks.stdout(fitting)
            else:
                kept.extend(fitting)
            if cap.exceeded:
                full.set()
                scope.cancel(reason="too much output")

        def take_errors(chunk: bytes) -> None:
            errors.add(chunk)
            if sinks.stderr is not None:
                sinks.stderr(chunk)

        code, ending = KILLED, Ending.DEADLINE
        with trio.CancelScope(deadline=trio.current_time() + limits.wall_s) as scope:
            command = place.command(("sh", "-c", _RUN, "sh", *run.argv))
            code = await self._executor.run(command, stdout=take, stderr=take_errors)
            ending = Ending.EXITED
        if full.is_set():
            code, ending = KILLED, Ending.OUTPUT_LIMIT
        return Outcome(ending, code, bytes(kept), errors.value(), Usage(0.0, 0.0, 0))

    async def _remove(self, claim: ObjectKey) -> None:
        try:
            await self._client.delete(claim)
        except NotFoundError:
            log.debug("%s is gone", claim)
