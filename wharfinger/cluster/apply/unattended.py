"""Reports of actions that an engine takes without a request: prunes, and corrections that fail.

A correction is an attempt to apply an object that once matched its row, but does not match it any more. A correction becomes
a *trouble* when it fails permanently or SEVERAL times in a row, and remains a trouble until it succeeds or the row changes.
An object that a prune could not delete is a trouble until a later prune succeeds for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from wharfinger.cluster.apply.removal import PruneReport
from wharfinger.cluster.objects.desired import DesiredObject, Identity
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.reconciler.operations import Attempt
from wharfinger.cluster.reconciler.retries import Failure
from wharfinger.kube.resource import ObjectKey

SEVERAL: Final = 3
"""After this number of failures in a row, a correction of drift is reported as a trouble. A shorter series of failures is not
reported, because it is usually over before a user reads the report.
"""

Pruned = Callable[[Owner, tuple[ObjectKey, ...]], None]
Troubled = Callable[[Owner, tuple[str, ...]], None]
DriftedFields = Callable[[Owner, Identity], str]


def _unknown(_owner: Owner, _identity: Identity) -> str:
    return ""


@dataclass(slots=True)
class Unattended:
    """The prunes and failed corrections to report.

    ``report_pruned`` is called for each prune that deleted something. ``report_troubles`` is called whenever the troubles of a
    release change; a trouble is an object that cannot be corrected or pruned. ``count`` is the number of objects that prunes
    deleted.
    """

    report_pruned: Pruned
    report_troubles: Troubled
    drifted_fields: DriftedFields = _unknown
    """A function that returns, as text, the fields of an object that differ from what was applied; "" if they are not known."""
    count: int = 0
    _uncorrected: dict[Owner, dict[Identity, str]] = field(default_factory=dict)
    _unpruned: dict[Owner, dict[Identity, str]] = field(default_factory=dict)

    def troubles(self, owner: Owner) -> tuple[str, ...]:
        """Return all troubles of a release, one sentence each."""
        every = {**self._uncorrected.get(owner, {}), **self._unpruned.get(owner, {})}
        return tuple(every[identity] for identity in sorted(every, key=str))

    def attempted(self, attempt: Attempt[Identity, DesiredObject], failure: Failure[Identity] | None) -> None:
        """Record the end of an attempt; ``failure`` is the current failure, None if the attempt succeeded."""
        owner = attempt.row.owner
        known = self._uncorrected.get(owner, {})
        text = known.get(attempt.key, "")
        if failure is None or not attempt.refreshing:
            said = ""
        elif text or failure.permanent or failure.attempts >= SEVERAL:
            fields = self.drifted_fields(owner, attempt.key)
            said = (
                f"the drift of {attempt.row.key}{f' ({fields})' if fields else ''} cannot be corrected: {failure.error}"
            )
        else:
            return
        if said == text:
            return
        changed = {key: one for key, one in known.items() if key != attempt.key} | ({attempt.key: said} if said else {})
        self._replace(self._uncorrected, owner, changed)

    def pruned(self, report: PruneReport) -> None:
        """Process the end of a prune: report the deleted objects. For each release whose failed deletions differ from before,
        also report its troubles.
        """
        for owner, keys in report.gone.items():
            self.count += len(keys)
            self.report_pruned(owner, tuple(keys))
        for owner in {**self._unpruned, **report.failed}:
            failed = report.failed.get(owner, {})
            before = self._unpruned.get(owner, {})
            texts = (before if report.cut_off else {}) | {
                identity: f"{key} is no longer part of the release, but cannot be deleted: {error}"
                for identity, (key, error) in failed.items()
            }
            if texts != before:
                self._replace(self._unpruned, owner, texts)

    def _replace(self, known: dict[Owner, dict[Identity, str]], owner: Owner, texts: Mapping[Identity, str]) -> None:
        if texts:
            known[owner] = dict(texts)
        else:
            known.pop(owner, None)
        self.report_troubles(owner, self.troubles(owner))
