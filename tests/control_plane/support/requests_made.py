"""Certificate requests for tests, in PEM and base64."""

from base64 import b64encode
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID


@cache
def request(organization: str = "g") -> str:
    """Return a certificate request of the user ``u`` in a group."""
    names = ((NameOID.COMMON_NAME, "u"), (NameOID.ORGANIZATION_NAME, organization))
    subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in names])
    made = x509.CertificateSigningRequestBuilder(subject).sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return b64encode(made.public_bytes(Encoding.PEM)).decode()
