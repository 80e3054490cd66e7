"""The stamp of a release's revision: a label of its record that identifies the inputs and values from which the revision was
made.

The recorded state of a package has checksums of these inputs and values, too. Without stamps, a run that makes a revision would
have to write two Secrets: the release record and the state. With a stamp, the run writes only the release record, if nothing
else of the state changes. If the newest stamp belongs to a later revision than the state, it replaces the checksums in the
state when the state is read. A label is too short for two checksums, so a stamp has digests of them.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from wharfinger.cluster.records.release import Release, ReleaseStatus

_DIGEST_BYTES: Final = 13
"""The length of a digest. Two digests in hexadecimal and the number of the revision just fit into the value of a label."""


def stamp_of(fingerprint: str, values: str) -> str:
    """Return the stamp of a revision that was made from inputs with this fingerprint, and from values with this checksum."""
    return f"{digest_of(fingerprint)}.{digest_of(values)}"


def digest_of(text: str) -> str:
    """Return the short digest that a stamp contains in place of a checksum."""
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def newest_stamp(history: Sequence[Release]) -> tuple[int, str]:
    """Return the number of the newest deployed revision that has a stamp, and this stamp.

    Return (0, "") if there is none, or if the daemon has made a later deployed revision without a stamp.

    A revision counts as deployed if it is deployed, or was deployed and is superseded. Revisions that users made with Helm are
    skipped: Helm may copy a stamp into the new revision of a rollback, but this stamp does not describe that revision.
    """
    for release in reversed(history):
        deployed = release.status in {ReleaseStatus.DEPLOYED, ReleaseStatus.SUPERSEDED}
        if deployed and release.stamp:
            return release.revision, release.stamp
        if deployed and release.holder:
            break
    return 0, ""
