"""What a failure means for its package: which word status shows, and whether trying again can help.

The errors of the other parts say what went wrong; this table says what follows. A registry is an input that sends no event when
it changes, so everything that was wrong *there* is tried again at the queue's slowest pace instead of being parked.
"""

from dataclasses import dataclass

from wharfinger.cluster.errors import ClusterError, ConflictError, InvalidError
from wharfinger.formats.errors import FormatError
from wharfinger.packages.errors import (
    AddressError,
    ArtifactError,
    ArtifactNotFoundError,
    DigestError,
    PackageError,
    RegistryError,
    RenderError,
    StoreError,
)
from wharfinger.runtime.identity import IdentityError

Expected = PackageError | ClusterError | FormatError | IdentityError
EXPECTED = (PackageError, ClusterError, FormatError, IdentityError)
"""What a pipeline task may fail with; anything else is a defect and is treated as one by the queue's guard."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A status reason (CamelCase), the message, and whether only a changed input can help."""

    reason: str
    message: str
    permanent: bool


def classify(error: Expected) -> Failure:
    """The failure that an expected error is."""
    message = str(error) or type(error).__name__
    match error:
        case ArtifactNotFoundError():
            return Failure("ArtifactNotFound", message, permanent=False)
        case RegistryError():
            return Failure("RegistryFailed" if error.transient else "RegistryRefused", message, permanent=False)
        case DigestError():
            return Failure("DigestMismatch", message, permanent=False)
        case StoreError():
            return Failure("StoreFailed", message, permanent=False)
        case RenderError():
            return Failure("RenderFailed", message, permanent=not error.transient)
        case AddressError():
            return Failure("SpecInvalid", message, permanent=True)
        case ArtifactError() | PackageError() | FormatError():
            return Failure("ArtifactInvalid", message, permanent=True)
        case IdentityError():
            return Failure("SpecInvalid", message, permanent=True)
        case InvalidError():
            return Failure("ApplyFailed", message, permanent=True)
        case ConflictError():
            return Failure("ConflictingOwner", message, permanent=False)
        case ClusterError():
            return Failure("ClusterFailed", message, permanent=not error.transient)
