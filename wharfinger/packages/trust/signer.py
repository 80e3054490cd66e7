"""The signing of a pushed artifact with a private key. The signature, in cosign's format, is pushed to the same repository."""

from dataclasses import dataclass, field

from wharfinger.packages.registry.registry import Descriptor, WritableRegistry
from wharfinger.packages.trust.claims import Claim, write_claim
from wharfinger.packages.trust.keys import PublicKey, Signing, is_signed_by, load_private, public_pem, sign
from wharfinger.packages.trust.signatures import push_signature


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key that signs claims about artifacts."""

    key: Signing = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the public key, in the form that messages about policies use."""
        return PublicKey("", public_pem(self.key)).fingerprint

    async def sign(self, registry: WritableRegistry, repository: str, claim: Claim) -> Descriptor:
        """Sign ``claim``, which states the digest, the reference and the version of an artifact, and push the signature to the
        artifact's repository in the registry. Raises PackageError.
        """
        payload = write_claim(claim)
        own = self.key.public_key()
        return await push_signature(
            registry,
            repository,
            claim.digest,
            payload,
            sign(self.key, payload),
            lambda signature: is_signed_by(own, payload, signature),  # true for a signature by this key
        )


def load_signer(pem: bytes, password: str, what: str) -> Signer:
    """Return the signer with a private key in PEM text. Raises KeyFormatError."""
    return Signer(load_private(pem, password, what))
