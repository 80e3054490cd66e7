"""Reports about prunes and failing corrections: each change is reported, and so is the end of a failure."""

import pytest

from tests.cluster.support.client_contract import config_map, key
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.apply.removal import PruneReport
from wharfinger.cluster.apply.unattended import SEVERAL, Unattended
from wharfinger.cluster.objects.desired import DesiredObject, Identity, desired_object, identity_of
from wharfinger.cluster.objects.drift_policy import DriftPolicy
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.reconciler.operations import Attempt
from wharfinger.cluster.reconciler.retries import Failure
from wharfinger.kube.resource import ObjectKey

OWNER = Owner("web", "default")
OTHER = Owner("db", "default")
ROW = desired_object(key("a"), OWNER, config_map("a"), DriftPolicy())
REFUSED = f"the drift of {key('a')} cannot be corrected: refused"


class Told:
    """A listener that records reports."""

    def __init__(self) -> None:
        self.pruned: list[tuple[Owner, tuple[ObjectKey, ...]]] = []
        self.troubles: list[tuple[Owner, tuple[str, ...]]] = []
        self.mine = Unattended(self._pruned, self._troubled)

    def _pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        self.pruned.append((owner, keys))

    def _troubled(self, owner: Owner, texts: tuple[str, ...]) -> None:
        self.troubles.append((owner, texts))

    def attempted(
        self, failures: int, *, refreshing: bool = True, permanent: bool = False, text: str = "refused"
    ) -> None:
        attempt: Attempt[Identity, DesiredObject] = Attempt(ROW.identity, ROW, 1, failures, refreshing)
        error = ClusterError(text)
        failure = Failure(ROW.identity, error, failures, 0.0, permanent=permanent, since=0.0)
        self.mine.attempted(attempt, failure if failures else None)


def test_a_failing_correction_is_reported_once_until_it_succeeds() -> None:
    told = Told()
    for failures in range(1, SEVERAL):
        told.attempted(failures)
    assert told.troubles == []
    for failures in range(SEVERAL, 10):
        told.attempted(failures)
    assert told.troubles == [(OWNER, (REFUSED,))]
    assert told.mine.troubles(OWNER) == (REFUSED,)
    told.attempted(11, text="no quota")
    told.attempted(0)
    told.attempted(0)
    assert told.troubles[1:] == [(OWNER, (REFUSED.replace("refused", "no quota"),)), (OWNER, ())]
    assert told.mine.troubles(OWNER) == ()


def test_a_permanent_failure_is_reported_at_once() -> None:
    told = Told()
    told.attempted(1, permanent=True)
    assert told.troubles == [(OWNER, (REFUSED,))]
    told.attempted(1, refreshing=False)  # the row was replaced; the waiting request reports the failure
    assert told.troubles[1:] == [(OWNER, ())]


def test_known_drifted_fields_are_named() -> None:
    told = Told()
    told.mine.drifted_fields = lambda owner, identity: (
        "/spec/replicas by kubectl" if (owner, identity) == (OWNER, ROW.identity) else ""
    )
    told.attempted(1, permanent=True)
    ((_, (text,)),) = told.troubles
    assert text == f"the drift of {ROW.key} (/spec/replicas by kubectl) cannot be corrected: refused"


@pytest.mark.parametrize("failures", [0, 1, 99])
def test_a_failure_outside_a_correction_is_not_reported(failures: int) -> None:
    told = Told()
    told.attempted(failures, refreshing=False, permanent=True)
    assert told.troubles == []


def test_results_and_failures_of_a_prune_are_reported() -> None:
    told = Told()
    gone = {OWNER: [key("a"), key("b")]}
    failed = {OTHER: {identity_of(key("c")): (key("c"), ClusterError("forbidden"))}}
    text = f"{key('c')} is no longer part of the release, but cannot be deleted: forbidden"
    for _ in range(2):
        told.mine.pruned(PruneReport({}, failed))
    told.mine.pruned(PruneReport(gone, {}))
    assert told.troubles == [(OTHER, (text,)), (OTHER, ())]
    assert told.pruned == [(OWNER, (key("a"), key("b")))]
    assert told.mine.count == 2


def test_an_interrupted_prune_clears_no_failure() -> None:
    told = Told()
    failed = {OWNER: {identity_of(key("c")): (key("c"), ClusterError("forbidden"))}}
    told.mine.pruned(PruneReport(failed=failed))
    told.mine.pruned(PruneReport(cut_off=True))
    assert len(told.mine.troubles(OWNER)) == 1
    told.mine.pruned(PruneReport())
    assert told.mine.troubles(OWNER) == ()
