"""Keys and signatures for tests, made by openssl or by the library that also verifies them."""

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from wharfinger.packages.digest import Digest
from wharfinger.packages.registry.registry import WritableRegistry
from wharfinger.packages.trust.claims import Claim
from wharfinger.packages.trust.keys import Signing, public_pem
from wharfinger.packages.trust.policy import Policy, TrustedKey
from wharfinger.packages.trust.signer import Signer

KEY: Signing = ec.derive_private_key(1234567, ec.SECP256R1())
OTHER: Signing = ec.derive_private_key(7654321, ec.SECP256R1())
POLICY = Policy((TrustedKey("spec.verify.keys[0]", public_pem(KEY)),))


def private_pem(key: Signing, password: str = "") -> bytes:
    """Return the private key as PEM in PKCS #8."""
    encryption = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


async def sign(
    registry: WritableRegistry, repository: str, digest: Digest, version: str = "1.0.0", key: Signing = KEY
) -> None:
    """Sign an artifact as `package push --sign` does."""
    await Signer(key).sign(registry, repository, Claim(digest, f"registry.example/{repository}", version))
