"""Evidence that is stored beside an artifact and may make it trusted: a signature, perhaps with a certificate and a log entry."""

from dataclasses import dataclass, field

from wharfinger.packages.trust.envelopes import Envelope
from wharfinger.packages.trust.log_entries import LogEntry


@dataclass(frozen=True, slots=True)
class Signature:
    """Signed bytes and their signature, which is not verified yet.

    ``payload`` contains the signed bytes. ``certificate`` and ``chain`` are PEM text, empty if the signer has a key of their
    own. If a statement was signed, ``envelope`` contains the statement. ``document`` contains the envelope as it was stored;
    it is empty if there is no envelope, or if the envelope is part of a bundle. ``problem`` is the reason why the signature
    could not be read, "" if it was read.
    """

    payload: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    certificate: str = field(default="", repr=False)
    chain: str = field(default="", repr=False)
    entry: LogEntry | None = None
    envelope: Envelope | None = None
    document: bytes = field(default=b"", repr=False)
    problem: str = ""
