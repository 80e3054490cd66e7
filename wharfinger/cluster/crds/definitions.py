"""The CustomResourceDefinitions in a chart's ``crds/`` folder. They are applied before the chart's other objects, and upgraded
with every upgrade of the package; then the engine waits until they are established.

Helm installs these CRDs once and never changes them again. Here they are upgraded after a check that no stored data is lost
(:mod:`wharfinger.cluster.releases.preflight`). They belong to no release: they have no release label and no row in the desired
table, and are neither pruned nor uninstalled. The charts of several releases may contain the same CRD. If another release has
the CRD among its own objects (in its manifest), only that release upgrades it.

A CRD is not written if the live CRD already has the wanted content.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import trio

from wharfinger.cluster.api.bounded_map import each
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ReleaseError
from wharfinger.cluster.api.interruption import Interruption
from wharfinger.cluster.api.retrying import with_retries
from wharfinger.cluster.apply.writer import ObjectWriter, rules_of
from wharfinger.cluster.drift.comparison import find_drift
from wharfinger.cluster.objects.accounts import Acting, always
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.lookup import CONCURRENCY, key_of
from wharfinger.cluster.objects.ownership import Owner, check_owner, owner_of, placed
from wharfinger.cluster.watch.object_waits import Laggards, Progress, silent, wait_ready
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, readiness
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.listing import listed
from wharfinger.kube.resource import ObjectKey

log = logging.getLogger(__name__)

NOBODY = Owner("", "")
TOUCHED: Final = "wharfinger.dev/establish-asked-at"
TOUCH_S: Final = 10.0
"""The time after which a CRD that is still not established gets an annotation, once, so that the API server handles it again
(:func:`await_established`). With several API servers, establishing a CRD usually takes 5 s.
"""
OVERDUE_S: Final = 20.0
SHOWN: Final = 3
_POLICY = DriftPolicy(DriftMode.WARN)
"""The drift policy of CRDs: fields that other managers own, such as an injected CA, are left to these managers."""


class CrdError(ReleaseError):
    """A CustomResourceDefinition was not accepted."""


class NotEstablishedError(ReleaseError):
    """CRDs were applied but are not established; the API server may still establish them."""

    transient = True


class Definitions:
    """A writer of CRDs to one cluster. ``acting`` returns the client with which to write a CRD for an owner."""

    def __init__(
        self,
        client: ClusterClient,
        writer: ObjectWriter,
        interruption: Interruption | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        acting: Acting | None = None,
    ) -> None:
        self._client = client
        self._acting = acting or always(client)
        self._writer = writer
        self._interruption = interruption or Interruption()
        self._now = now

    async def apply(
        self, owner: Owner, crds: Iterable[JsonObject], lives: Mapping[str, JsonObject], progress: Progress
    ) -> tuple[ObjectKey, ...]:
        """Apply the definitions and return their keys, once all are established.

        ``lives``: the existing definitions, by name (``Survey.definitions`` of :mod:`~wharfinger.cluster.releases.preflight`).
        Raises ForeignObjectError if a release other than ``owner`` has the definition in its manifest and the contents differ.
        Also raises CrdError, FieldConflictError, and the client's errors.
        """

        writer = replace(self._writer, client=self._acting(owner))

        async def write(crd: JsonObject) -> tuple[ObjectKey, JsonObject]:
            key = await key_of(self._client, NOBODY, crd)
            wanted, live = placed(crd, key), lives.get(key.name)
            if live is not None and self._is_as_wanted(wanted, live):
                return key, live
            if live is not None and owner_of(live) not in (NOBODY, owner):
                check_owner(key, live, owner)

            async def attempt() -> JsonObject:
                written = await writer.write(key, wanted, live, before=lambda: wanted, drift=_POLICY)
                return written.live

            return key, await with_retries(attempt)

        written = await each(crds, write, limit=CONCURRENCY)
        await self.established([key for key, obj in written if not isinstance(readiness(obj), Current)], progress)
        return tuple(key for key, _ in written)

    async def established(self, keys: Iterable[ObjectKey], progress: Progress) -> None:
        """Wait until all definitions are established.

        Raises CrdError for a definition that will never be established, WaitInterruptedError if the wait is ended.
        """
        if not (keys := tuple(keys)):
            return
        names = listed((key.name for key in keys), SHOWN)
        with self._interruption.waiting(f"the API server to establish {names}"):
            await await_established(self._client, keys, now=self._now, progress=progress)

    def _is_as_wanted(self, wanted: JsonObject, live: JsonObject) -> bool:
        return (
            is_within(wanted, live) and find_drift(wanted, None, live, self._writer.manager, rules_of(_POLICY)) is None
        )


async def await_established(
    client: ClusterClient, keys: Iterable[ObjectKey], *, now: Callable[[], datetime], progress: Progress = silent
) -> None:
    """Wait until CRDs are established. Raises CrdError for a CRD that will never be established.

    An API server that was restarted while it established a CRD can forget it: the CRD remains ``Installing`` until it changes
    once more. So after TOUCH_S the CRD gets an annotation, once; after OVERDUE_S the progress names a remedy for users. The
    annotation changes nothing else: it has no meaning, and no chart contains it.
    """
    waits = _Waits(progress)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_hurry, client, now, waits)
        report = await wait_ready(client, keys, progress=waits.tell)
        nursery.cancel_scope.cancel()
    for key, state in report.failed.items():
        raise CrdError(f"{key}: not accepted: {state.message}")


class _Waits:
    """The CRDs that an apply still waits for, because they are not established yet. Their states are passed to ``progress``."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._laggards: Laggards = {}
        self._overdue: frozenset[ObjectKey] = frozenset()

    def late(self) -> list[ObjectKey]:
        return [key for key, state in self._laggards.items() if isinstance(state, InProgress)]

    def tell(self, laggards: Laggards) -> None:
        self._laggards = laggards
        self._progress({key: self._told(key, state) for key, state in laggards.items()})

    def find_overdue(self) -> None:
        self._overdue = frozenset(self.late())
        self.tell(self._laggards)

    def _told(self, key: ObjectKey, state: InProgress | Failed) -> InProgress | Failed:
        if isinstance(state, Failed) or key not in self._overdue:
            return state
        return InProgress(
            f"the API server has not established it for {OVERDUE_S:.0f} s ({state.message}); `kubectl annotate crd {key.name} "
            "--overwrite look=again` makes it try again; if that does not help, read the log of the API server",
            overdue=True,
        )


async def _hurry(client: ClusterClient, now: Callable[[], datetime], waits: _Waits) -> None:
    await trio.sleep(TOUCH_S)
    for key in waits.late():
        log.info("%s: not established after %.0f s; annotated, so that the API server checks it again", key, TOUCH_S)
        try:
            await client.merge_patch(key, {"metadata": {"annotations": {TOUCHED: now().isoformat(timespec="seconds")}}})
        except ClusterError as error:
            log.warning("%s: cannot be annotated: %s", key, error)
    await trio.sleep(OVERDUE_S - TOUCH_S)
    waits.find_overdue()


def is_within(wanted: JsonValue, live: JsonValue) -> bool:
    """Return whether everything wanted is in the live value, unchanged; additional members of live objects do not matter."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            name in live and is_within(value, live[name]) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(live, list)
            and len(wanted) == len(live)
            and all(is_within(one, other) for one, other in zip(wanted, live, strict=True))
        )
    return bool(wanted == live) and isinstance(wanted, bool) == isinstance(live, bool)
