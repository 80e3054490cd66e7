"""Helm's hooks: objects of a chart that are created at a point of a release's life, awaited, and deleted.

The semantics are Helm's:

* A hook runs at the events that ``helm.sh/hook`` lists. The hooks of one event run one after another, by
  ``helm.sh/hook-weight``, then kind and name.
* A hook that is a Job or a Pod is done when it has succeeded; a hook with any other object is done when the object exists.
* ``helm.sh/hook-delete-policy`` determines when a hook is deleted: before the next hook of the same name is created (the
  default), after all hooks of the event succeeded, or after the hook failed. A CustomResourceDefinition is never deleted, because
  all objects of its kind would be deleted with it.
* If a hook fails, the hooks that succeeded before it are deleted as if all had succeeded, because they would block the next
  attempt.
* Hooks do not belong to a release: they are neither pruned nor uninstalled.

The record contains the hooks, so a user's ``helm uninstall``, ``rollback`` and ``test`` run them, too.
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ConflictError, ReleaseError
from wharfinger.cluster.api.interruption import Interruption, WaitInterruptedError
from wharfinger.cluster.api.retrying import with_retries
from wharfinger.cluster.apply.removal import delete_exactly
from wharfinger.cluster.objects.install_order import rank
from wharfinger.cluster.objects.lookup import CRD, look_up
from wharfinger.cluster.objects.ownership import Owner, flattened, placed
from wharfinger.cluster.objects.scope import check_key
from wharfinger.cluster.records.release import Release
from wharfinger.cluster.watch.object_waits import Progress, wait_gone, wait_until
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness, readiness
from wharfinger.formats.json.value import JsonObject, as_object, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.kube.resource import ObjectKey, kind_of, name_of, namespace_of

HOOK: Final = "helm.sh/hook"
WEIGHT: Final = "helm.sh/hook-weight"
DELETE_POLICY: Final = "helm.sh/hook-delete-policy"
CLEANUP_S: Final = 10.0
"""The time limit, in seconds, for deleting the objects of hooks after a hook has failed or was cancelled."""


class HookEvent(StrEnum):
    """The event at which hooks run. TEST hooks are run only by ``helm test``."""

    PRE_INSTALL = "pre-install"
    POST_INSTALL = "post-install"
    PRE_UPGRADE = "pre-upgrade"
    POST_UPGRADE = "post-upgrade"
    PRE_DELETE = "pre-delete"
    POST_DELETE = "post-delete"
    PRE_ROLLBACK = "pre-rollback"
    POST_ROLLBACK = "post-rollback"
    TEST = "test"


RUN_BY_DAEMON: Final = frozenset(HookEvent) - {HookEvent.TEST}
"""The events whose hooks the daemon runs; a user runs the hooks of the other events with `helm`, and with the user's own
rights."""


class DeletePolicy(StrEnum):
    """The time at which a hook's object is deleted."""

    BEFORE_CREATION = "before-hook-creation"
    SUCCEEDED = "hook-succeeded"
    FAILED = "hook-failed"


class HookFailedError(ReleaseError):
    """A hook's Job or Pod failed, or could not be created. Another attempt creates a new object."""

    transient = True


@dataclass(frozen=True, slots=True)
class Hook:
    """One Helm hook (an object of a chart that is created at certain events), with the settings from its annotations."""

    obj: JsonObject
    events: frozenset[HookEvent]
    weight: int
    policies: frozenset[DeletePolicy]

    def __str__(self) -> str:
        """Return text such as ``hook Job migrate``."""
        return f"hook {kind_of(self.obj)[1]} {name_of(self.obj)}"


def parse_hook(obj: JsonObject) -> Hook:
    """Return the hook in an object; unknown events and policies are ignored, a weight that is not a number is 0, as in Helm."""
    words = {name: find_str(obj, "metadata", "annotations", name) for name in (HOOK, WEIGHT, DELETE_POLICY)}
    events = {"test": "test", "test-success": "test", "test-failure": "test"}
    names = [events.get(name, name) for name in _listed(words[HOOK])]
    policies = frozenset(DeletePolicy(name) for name in _listed(words[DELETE_POLICY]) if name in set(DeletePolicy))
    try:
        weight = int(words[WEIGHT] or "0")
    except ValueError:
        weight = 0
    return Hook(
        obj,
        frozenset(HookEvent(name) for name in names if name in set(HookEvent)),
        weight,
        policies or frozenset({DeletePolicy.BEFORE_CREATION}),
    )


def parse_hooks(objects: Iterable[JsonObject]) -> list[Hook]:
    """Return all hooks among these objects. Raises ReleaseError."""
    return [parse_hook(obj) for obj in flattened(objects)]


def hook_entry(hook: Hook) -> JsonObject:
    """Return the entry of a hook in a release record."""
    kind = kind_of(hook.obj)[1]
    return {
        "name": name_of(hook.obj),
        "kind": kind,
        "path": f"{kind.lower()}-{name_of(hook.obj)}.yaml",
        "manifest": write_yaml(hook.obj),
        "events": [str(event) for event in sorted(hook.events)],
        "last_run": {"started_at": "", "completed_at": "", "phase": ""},
        "weight": hook.weight,
        "delete_policies": [str(policy) for policy in sorted(hook.policies)],
    }


def hooks_of(release: Release) -> list[Hook]:
    """Return the hooks in a record, no matter which program wrote the record. Raises FormatError."""
    texts = (find_str(entry, "manifest") for entry in release.hooks)
    return read_hooks(texts, f"hook of release {release.namespace}/{release.name}")


def read_hooks(texts: Iterable[str], what: str) -> list[Hook]:
    """Return the hooks in these manifests; ``what`` names them in errors. Raises FormatError."""
    return parse_hooks(as_object(read_yaml(text, what=what), what) for text in texts if text.strip())


class HookRunner:
    """The runner of one release's hooks; ``interruption`` ends its waits.

    ``confined_to``: the release, if it may write in its own namespace only. Hooks whose kinds were not served when the release
    was checked are checked here.
    """

    def __init__(
        self,
        client: ClusterClient,
        namespace: str,
        progress: Progress,
        interruption: Interruption | None = None,
        *,
        confined_to: Owner | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._progress = progress
        self._interruption = interruption or Interruption()
        self._confined_to = confined_to
        self._made: set[ObjectKey] = set()

    async def run(self, hooks: Sequence[Hook], event: HookEvent) -> None:
        """Run the hooks for one event. Raises HookFailedError, naming the hook."""
        due = sorted(
            (hook for hook in hooks if event in hook.events),
            key=lambda hook: (hook.weight, rank(kind_of(hook.obj)[1]), kind_of(hook.obj)[1], name_of(hook.obj)),
        )
        for number, hook in enumerate(due):
            try:
                await self._run_one(hook, event)
            except BaseException as error:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEANUP_S), suppress(ClusterError):
                    if not isinstance(error, WaitInterruptedError):
                        await self._remove_if(hook, DeletePolicy.FAILED)
                    if not isinstance(error, ClusterError) or isinstance(error, WaitInterruptedError):
                        await self._remove_interrupted(hook)
                    for earlier in reversed(due[:number]):
                        await self._remove_if(earlier, DeletePolicy.SUCCEEDED)
                raise
        for hook in reversed(due):
            await self._remove_if(hook, DeletePolicy.SUCCEEDED, until=self._interruption)

    async def _run_one(self, hook: Hook, event: HookEvent) -> None:
        key = await self._key(hook)
        if DeletePolicy.BEFORE_CREATION in hook.policies:
            await self._remove(key, until=self._interruption)
        await self._create(hook, event, key)
        with self._interruption.waiting(str(hook)):
            report = await wait_until(self._client, [key], _judge, self._progress)
        for state in report.failed.values():
            raise HookFailedError(f"{event} {hook} failed: {state.message}")

    async def _create(self, hook: Hook, event: HookEvent, key: ObjectKey) -> None:
        """Create the object. If an earlier attempt got no answer but created the object, the next attempt accepts that object."""
        unanswered = False

        async def create() -> None:
            nonlocal unanswered
            try:
                await self._client.create(placed(hook.obj, key))
                self._made.add(key)
            except ConflictError as error:
                if await look_up(self._client, key) is None:
                    raise  # a conflict that no other writer has caused
                if not unanswered:
                    raise HookFailedError(
                        f"{event} {hook}: its object still exists from an earlier run; delete it, or give it {DELETE_POLICY}: "
                        f"{DeletePolicy.BEFORE_CREATION}"
                    ) from error
            except ClusterError:
                unanswered = True
                raise

        await with_retries(create, also=(ConflictError,))

    async def _key(self, hook: Hook) -> ObjectKey:
        """Return the key of a hook's object. Raises OutsideNamespaceError."""
        resource = await with_retries(partial(self._client.resource_type, *kind_of(hook.obj)))
        namespace = (namespace_of(hook.obj) or self._namespace) if resource.namespaced else ""
        key = ObjectKey(resource, namespace, name_of(hook.obj))
        if self._confined_to is not None:
            check_key(key, self._confined_to)
        return key

    async def _remove_if(self, hook: Hook, policy: DeletePolicy, *, until: Interruption | None = None) -> None:
        if policy in hook.policies:
            await self._remove(await self._key(hook), until=until)

    async def _remove_interrupted(self, hook: Hook) -> None:
        """Delete the object of a hook that was interrupted before it succeeded or failed. Keep the object if this run did not
        make it, or if the next run deletes it anyway.
        """
        key = await self._key(hook)
        if DeletePolicy.BEFORE_CREATION not in hook.policies and key in self._made:
            await self._remove(key)

    async def _remove(self, key: ObjectKey, *, until: Interruption | None = None) -> None:
        """Delete an object, and wait until it is gone, or until the wait is interrupted. Raises WaitInterruptedError."""
        if key.resource.group_kind == CRD:
            return
        live = await look_up(self._client, key)
        if live is not None:
            uid = find_str(live, "metadata", "uid")
            await with_retries(partial(delete_exactly, self._client, key, uid), also=(ConflictError,))
            with until.waiting(f"the end of {key}") if until is not None else nullcontext():
                await wait_gone(self._client, {key: uid}, progress=self._progress)


def _judge(key: ObjectKey, obj: JsonObject | None) -> Readiness:
    """Return the state of a hook's object.

    A Job or a Pod is done when it succeeded; a Pod that merely runs is not. Any other object is done when it exists.
    """
    if key.resource.group_kind not in {"Job.batch", "Pod"}:
        return Current()
    if obj is None:
        return Failed("the object was deleted before it was done")
    state = readiness(obj)
    if isinstance(state, Current) and key.resource.kind == "Pod" and find_str(obj, "status", "phase") != "Succeeded":
        return InProgress("running")
    return state


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.lower().split(",") if part.strip()]
