"""The names of all test cases that `tests/spec_table_cases.py` and `tests/spec_apply_cases.py` must list.

The names were copied by hand from the specifications, in the same order. `tests/test_spec_cases.py` compares the names in those
two files with them. A name with a number (``HTTP x7``) stands for seven tests that have no names.
"""

from typing import Final


def _names(text: str) -> tuple[str, ...]:
    """Return the names in a text, one on each line."""
    return tuple(text.strip().splitlines())


TABLES: Final = _names("""
duplicate tables in a transaction
same pointer panics
InsertWatch
LowerBound by revision
Prefix
Changes
Observable
NumObjects
All
Modify
Modify updates secondary index
Revision
Get/List
Commit/Abort
CAS/CAD
read after write
Initialization
Initialization transitions
empty keys
WriteJSON
nonUniqueKey
name validation
acquired info
Regression_29324
Changes_Watch
Prefix_NonUnique
WatchSet
WatchSet settle
WatchSet cancel in settle
Derive
Fuzz
Quick
HTTP x7
LPM x5
part index duplicate keys
sortable mutex chaos
radix tree x45
script
""")

RECONCILER: Final = _names("""
oracle: the last operations as a multiset
script incremental
script batching
script pruning
script prune_empty
script refresh
Retries order
Retries re-add later
Retries popped keeps its count
Retries clear in queue
Retries clear after pop
ExponentialBackoff within bounds
ExponentialBackoff d(1) = 2·d(0)
StatusString
StatusJSON
StatusSet
WaitUntilReconciled revision 0 immediate
WaitUntilReconciled blocks
WaitUntilReconciled watermark is the failing revision
WaitUntilReconciled clears after success
WaitUntilReconciled virtual time
MultipleReconcilers
RetryAfterStatusConflict
PerModuleMetrics
""")

MUST_REPRODUCE: Final = _names("""
all scripts, same history oracle
retries
fuzz with an independent model
status-conflict matrix: Pending
status-conflict matrix: same ID
status-conflict matrix: Error
status-conflict matrix: Refreshing
status-conflict matrix: deleted
delete failing then re-inserted
round-size boundary
prune never before init
watch-after-commit ordering
1 M benchmark
""")

TEST_LIST: Final = _names("""
countProgress table
waitingFor started ops hide queued ones
waitingFor queued named if none started
waitingFor dedupe
waitingFor bookkeeping excluded
isEmbeddedPath table
Cleanup task succeeds
Cleanup task succeeds when cancelled
Cleanup task idempotent
Cleanup task label
health reducers
endpoints
orphans
ensurecrd
""")

"""The cases that §12 lists for the runtime; their suites are in `tests/spec_cases.py`."""

APPLICATION_GOLDENS: Final = _names("""
resource-not-found
package-not-found
version-not-found
version-is-draft
repository-not-found
successful-reconcile
successful-reconcile all-falses
successful-reconcile some-falses
repeated-reconcile
version-switch
version-update
package-switch
stale-owner-references
registry-spec-changed
maintenance-mode
update-settings
delete
delete-not-attached
delete-already-released
delete-after-version-edit
""")
"""The goldens of the controller of Applications, as §12 lists them."""

VERSION_GOLDENS: Final = _names("""
successful
registry-error
metadata-parsing-error
two-errors
error-to-success
non-draft
no-bundle-image-in-registry
deletion
""")
"""The goldens of the controller of versions."""

IDENTITY: Final = _names("""
release name and namespace are the package's
labels and annotations of resources
labels of the release
operation timeout
""")

UPGRADE: Final = _names("""
1 packages with and without a chart
2 a marked, deployed release is not changed under maintenance
2 pending, failed or unmarked is applied once
3 endpoints are collected even if nothing is applied
4 checksum: maintenance is one upgrade in, one out
5 needed: no release
5 needed: not deployed
5 needed: a foreign release
5 needed: another checksum
5 needed: a resource is absent
6 not needed: still monitored
6 needed: progress is reported
reasons
""")

REMOVAL: Final = _names("""
Delete uninstalls
Render does not change the release
GetConversionWebhooks
Cleanup deletes unowned releases
Cleanup continues after failures
""")

VALUES: Final = _names("""
context of an application
context of a module
layers
defaults only fill what is absent
patches are compacted
effective settings
""")

DRIFT: Final = _names("""
monitored once applied
period and jitter
pause and resume
resume at zero
skipped while not deployed
List kinds and nameless objects
discovery and scopes
bounded, a few at a time
absence is reported
checked at once on request
""")

ORPHANS: Final = _names("""
declared kinds
bare version matches any group, group/version that one
instance label
background propagation, UID precondition
kinds that are not served
cluster-scoped kinds
being deleted
retained or foreign objects
NotFound and Conflict are success
other errors are collected and retried
""")

HEALTH: Final = _names("""
Deployment: terminating
Deployment: progress deadline exceeded
Deployment: generation
Deployment: paused
Deployment: updated
Deployment: old replicas
Deployment: available
StatefulSet: terminating
StatefulSet: generation
StatefulSet: revisions
StatefulSet: ready
StatefulSet: updated
desired defaults to 1
package state
Unknown forgets
callback outside locks
""")

ENDPOINTS: Final = _names("""
annotated Ingresses: hosts and paths
value other than true is the description
""")

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "tables": TABLES,
    "reconciler": RECONCILER,
    "must reproduce": MUST_REPRODUCE,
    "8.1 identity": IDENTITY,
    "8.2 upgrade": UPGRADE,
    "8.3 removal": REMOVAL,
    "8.4 and 8.5 values": VALUES,
    "8.6 drift": DRIFT,
    "8.7 orphans": ORPHANS,
    "8.8 health": HEALTH,
    "8.9 endpoints": ENDPOINTS,
}

WEAKNESSES_OF_TABLES: Final = 16
"""The number of numbered weaknesses."""
