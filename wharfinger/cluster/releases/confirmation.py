"""The confirmation that a release needs no upgrade after it was restored from its records.

After a restart nearly all releases are unchanged. An upgrade would make the row of every object once more, and find each of
them equal to the restored row. The restored rows were made from the last record. Therefore only that record and
the drift policies are compared with the request here. If it is not certain that they agree, the upgrade is made.
"""

from wharfinger.cluster.releases.request import Outcome, ReleaseRequest, ReleaseResult
from wharfinger.cluster.releases.upgrade import Tools, same_release


async def confirmed(tools: Tools, request: ReleaseRequest, restored: int) -> ReleaseResult | None:
    """Return the result that an upgrade would have, if it is certain that the upgrade would change nothing; otherwise None.

    ``restored`` is the revision from which the rows were restored. Use this function only for a request without CRDs and hooks
    that is no rollback. The request's manifest is compared, but its parsed objects are not used. The caller holds the release
    (`ReleaseRegistry.turn`). Raises ReleaseError, and the errors of the client.
    """
    owner = request.owner
    history = await tools.keeper.settled(owner)
    last = history[-1].release if history else None
    if last is None or last.revision != restored or not last.holder or not same_release(last, request, ()):
        return None
    if not request.marks.items() <= last.labels.items() or request.inputs != last.inputs:
        return None
    rows = tools.rows.of(owner)
    if not rows or not all(row.drift == request.drift and tools.surveyor.is_as_last_applied(row) for row in rows):
        return None
    tools.tidying.add_if_needed(owner, history)
    ordered = sorted(rows, key=lambda row: row.wave)
    return ReleaseResult(
        Outcome.UNCHANGED, last.revision, tuple(row.key for row in ordered), left=tools.rows.left(ordered)
    )
