"""The stamp of a release's revision: a label of its record that identifies the inputs and values that it was made from.

The state of a package has the same two checksums. Without stamps, a run that makes a revision would have to write both Secrets.
With a stamp, it writes only the record, if nothing else of the state changes. When the state is read, the newest stamp after the
revision that the state knows replaces its checksums. A stamp is too short for checksums, so it has digests of them.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from wharfinger.cluster.records.release import Release, ReleaseStatus

_DIGEST_BYTES: Final = 13
"""The length of a digest: two of them in hexadecimal, and the number of the revision, have the length of a label's value."""


def stamp_of(fingerprint: str, values: str) -> str:
    """Return the stamp of a revision that was made from this fingerprint of inputs, and this checksum of values."""
    return f"{digest_of(fingerprint)}.{digest_of(values)}"


def digest_of(text: str) -> str:
    """Return the digest of a checksum, as stamps contain it."""
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def newest_stamp(history: Sequence[Release]) -> tuple[int, str]:
    """Return the newest stamped revision that was deployed, and its stamp; (0, "") if a later revision of ours lacks a stamp.

    Revisions of users are skipped. A user's rollback does not remove the stamp from the revision of ours that it supersedes,
    and a stamp that Helm copies into the new revision does not describe that revision.
    """
    for release in reversed(history):
        deployed = release.status in {ReleaseStatus.DEPLOYED, ReleaseStatus.SUPERSEDED}
        if deployed and release.stamp:
            return release.revision, release.stamp
        if deployed and release.holder:
            break
    return 0, ""
