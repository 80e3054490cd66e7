"""The status of a PackageRepository after scans and failures, and its bounded size."""

from datetime import UTC, datetime

from wharfinger.formats.json.value import find
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.repositories.repository_status import (
    MAX_PACKAGES,
    failure_verdict,
    in_use_verdict,
    scan_verdict,
    status_object,
)
from wharfinger.runtime.resources.resources import APPLICATION, MODULE
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.versions.package_index import PackageIndex

NOON, LATER = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=UTC)
WEB = PackageIndex("default", "web", ("2.0.0", "1.0.0"))


def test_a_successful_scan_is_ready_with_its_packages() -> None:
    verdict = scan_verdict([WEB], {})
    status = status_object({}, 3, verdict, NOON, scanned=NOON, changed=NOON, indexes=[WEB])
    assert status == {
        "observedGeneration": 3,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Scanned",
                "message": "2 versions of 1 package",
                "lastTransitionTime": "2026-01-01T12:00:00Z",
                "observedGeneration": 3,
            }
        ],
        "lastScanTime": "2026-01-01T12:00:00Z",
        "lastChangeTime": "2026-01-01T12:00:00Z",
        "packagesCount": 1,
        "packages": [{"name": "web", "versions": 2, "newest": "2.0.0"}],
    }


def test_a_failure_retains_results_of_the_last_scan() -> None:
    before = status_object({}, 1, scan_verdict([WEB], {}), NOON, scanned=NOON, indexes=[WEB])
    after = status_object(before, 1, failure_verdict(Reason.REGISTRY_FAILED, "no answer"), LATER)
    assert find(after, "lastScanTime") == "2026-01-01T12:00:00Z"
    assert find(after, "packages") == find(before, "packages")
    assert find(after, "conditions", 0, "status") == "False"
    assert find(after, "conditions", 0, "lastTransitionTime") == "2026-01-01T13:00:00Z"
    again = status_object(after, 1, failure_verdict(Reason.REGISTRY_REFUSED, "no"), datetime(2026, 1, 2, tzinfo=UTC))
    assert find(again, "conditions", 0, "lastTransitionTime") == "2026-01-01T13:00:00Z"


def test_problems_of_packages_are_in_the_status_of_the_repository() -> None:
    verdict = scan_verdict([WEB], {"web": "not found", "db": "not found either"})
    assert (verdict.reason, verdict.message) == (
        "ArtifactNotFound",
        "db: not found either (and 1 more package)",
    )
    status = status_object({}, 1, verdict, NOON, indexes=[WEB], problems={"web": "not found"})
    assert find(status, "packages", 0, "problem") == "not found"


def test_users_are_listed_in_the_status() -> None:
    keys = [ObjectKey(APPLICATION, "prod", "shop"), ObjectKey(MODULE, "", "ingress")]
    assert in_use_verdict(keys).message == (
        "its deletion waits for Application prod/shop, Module ingress; delete these resources, or make them "
        "use another repository"
    )


def test_the_status_is_bounded() -> None:
    many = [PackageIndex("default", f"p{number}") for number in range(MAX_PACKAGES + 5)]
    status = status_object({}, 1, scan_verdict(many, {}), NOON, indexes=many)
    assert find(status, "packagesCount") == MAX_PACKAGES + 5
    packages = find(status, "packages")
    assert isinstance(packages, list)
    assert len(packages) == MAX_PACKAGES
