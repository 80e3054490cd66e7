"""The payload that cosign signs ("simple signing"): the digest of an artifact, its repository, and annotations.

::

    {"critical": {"identity": {"docker-reference": "registry.example/web"},
                  "image": {"docker-manifest-digest": "sha256:…"},
                  "type": "cosign container image signature"},
     "optional": {"dev.wharfinger.version": "1.2.0"}}

Source: containers/image's ``containers-signature(5)``, and cosign's ``specs/SIGNATURE_SPEC.md``.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, encode_json, find_object, find_str
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, DigestError

MAX_PAYLOAD: Final = 1024 * 1024
VERSION: Final = "dev.wharfinger.version"
"""The annotation in a signed claim that states the version under which the artifact was pushed."""
_TYPES: Final = frozenset({"cosign container image signature", "atomic container signature"})


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of a payload: the claims of the signer about an artifact. ``version`` and ``reference`` may be empty."""

    digest: Digest
    reference: str = ""
    version: str = ""


def read_claim(payload: bytes) -> Claim:
    """Read the signer's claims about an artifact from a payload whose signature was verified. Raises ArtifactError."""
    try:
        document = as_object(decode_json(payload, max_bytes=MAX_PAYLOAD, what="payload"), "payload")
        kind = find_str(document, "critical", "type")
        if kind not in _TYPES:
            raise ArtifactError(
                f"the signed payload is of type {kind[:100]!r}, which is not the signature of an artifact"
            )
        return Claim(
            Digest(find_str(document, "critical", "image", "docker-manifest-digest")),
            find_str(document, "critical", "identity", "docker-reference"),
            find_str(find_object(document, "optional"), VERSION),
        )
    except (FormatError, DigestError) as error:
        raise ArtifactError(f"the signed payload cannot be read: {error}") from error


def write_claim(claim: Claim) -> bytes:
    """Return the payload to sign; the same claim gives the same bytes."""
    critical: JsonObject = {
        "identity": {"docker-reference": claim.reference},
        "image": {"docker-manifest-digest": claim.digest.text},
        "type": "cosign container image signature",
    }
    return encode_json({"critical": critical, "optional": {VERSION: claim.version} if claim.version else None})
