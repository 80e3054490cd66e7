"""The definitions of a chart's ``crds/``: applied before everything else, always upgraded, waited for until they are established.

Helm installs them once and never looks at them again; here each upgrade brings them up to date, after a check that nothing stored
is lost by it (:mod:`wharfinger.cluster.survey`). They belong to no release: they carry no label of one, are no rows, are neither
pruned nor uninstalled. Several releases may bring the same one. One that is part of another release is upgraded by that release.

One that is already as it is to be is not written again: by what we wrote last, or, after a restart, by what the server has.
"""

from collections.abc import Iterable, Mapping

from wharfinger.cluster.apply import ObjectWriter, rules_of
from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.concurrently import each
from wharfinger.cluster.drift import find_drift
from wharfinger.cluster.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.object_waits import Progress, wait_ready
from wharfinger.cluster.ownership import Owner, check_owner, owner_of, placed
from wharfinger.cluster.patience import patiently
from wharfinger.cluster.readiness import Current, readiness
from wharfinger.cluster.release import ReleaseError
from wharfinger.cluster.resource import ObjectKey
from wharfinger.cluster.survey import CONCURRENCY, key_of
from wharfinger.formats.json_value import JsonObject, JsonValue

NOBODY = Owner("", "")
_POLICY = DriftPolicy(DriftMode.WARN)
"""What others hold of a definition (an injected CA) stays theirs."""


class CrdError(ReleaseError):
    """A CustomResourceDefinition was not accepted."""


class Definitions:
    """Applies definitions to one cluster."""

    def __init__(self, client: ClusterClient, writer: ObjectWriter) -> None:
        self._client = client
        self._writer = writer

    async def apply(
        self, owner: Owner, crds: Iterable[JsonObject], lives: Mapping[str, JsonObject], progress: Progress
    ) -> tuple[ObjectKey, ...]:
        """Their keys, once all are established. ``lives``: those that are there, by name, as a survey saw them.

        Raises ForeignObjectError where another release than ``owner`` has one in its manifest, and another one than this;
        CrdError, FieldConflictError, and what the client raises.
        """

        async def write(crd: JsonObject) -> tuple[ObjectKey, JsonObject]:
            key = await key_of(self._client, NOBODY, crd)
            wanted, live = placed(crd, key), lives.get(key.name)
            if live is not None and self._is_as_wanted(wanted, live):
                return key, live
            if live is not None and owner_of(live) not in (NOBODY, owner):
                check_owner(key, live, owner)

            async def attempt() -> JsonObject:
                written = await self._writer.write(key, wanted, live, before=lambda: wanted, drift=_POLICY)
                return written.live

            return key, await patiently(attempt)

        written = await each(crds, write, limit=CONCURRENCY)
        await self.established([key for key, obj in written if not isinstance(readiness(obj), Current)], progress)
        return tuple(key for key, _ in written)

    async def established(self, keys: Iterable[ObjectKey], progress: Progress) -> None:
        """Wait until they are. Raises CrdError for one that is not going to be."""
        report = await wait_ready(self._client, keys, progress=progress)
        for key, state in report.failed.items():
            raise CrdError(f"{key}: not accepted: {state.message}")

    def _is_as_wanted(self, wanted: JsonObject, live: JsonObject) -> bool:
        return (
            is_within(wanted, live) and find_drift(wanted, None, live, self._writer.manager, rules_of(_POLICY)) is None
        )


def is_within(wanted: JsonValue, live: JsonValue) -> bool:
    """Whether all that is wanted is there, as it is written; what is beside it in objects does not matter."""
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
