"""The verification of keyless signatures, whose signers have no lasting key of their own.

The signer made a key for one signature. An authority issued a certificate, valid for minutes, which binds this key to an
identity, and a log recorded the time of the signature. The certificate and the log entry are stored with the signature. They are
verified offline, in this order:

1. the log has signed the entry and its time, and a proof of inclusion, if there is one, shows that the log lists the entry;
2. at that time, the certificate was valid, and issued by an authority of the policy;
3. the certificate itself was logged, if the policy names certificate logs;
4. the signature was made with the key of the certificate;
5. the entry is about this signature, this certificate and this payload.

The module :mod:`~wharfinger.packages.trust.verification` checks whether the policy trusts the identity.
"""

from cryptography.hazmat.primitives.serialization import Encoding

from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.certificates import (
    Identity,
    check_chain,
    check_logged,
    identity_of,
    public_key,
    read_certificates,
)
from wharfinger.packages.trust.evidence import Signature
from wharfinger.packages.trust.keys import is_signed_by, load_public
from wharfinger.packages.trust.log_bodies import LoggedSignature, check_body
from wharfinger.packages.trust.log_entries import check_entry
from wharfinger.packages.trust.policy import TrustRoot


def signer_of(signature: Signature, root: TrustRoot) -> Identity:
    """Verify a signature, and return its signer. Raises PackageError."""
    certificates = read_certificates(signature.certificate, "the certificate of the signature")
    if signature.entry is None:
        raise ArtifactError("the signature has no entry of a transparency log, so its time is not known")
    check_entry(signature.entry, [load_public(key.pem, key.name) for key in root.log_keys])
    certificate = certificates[0]
    others = certificates[1:] + (
        read_certificates(signature.chain, "the chain of the signature") if signature.chain else []
    )
    issuer = check_chain(certificate, others, root.authorities, signature.entry.moment)
    if root.certificate_log_keys:
        keys = [load_public(key.pem, key.name) for key in root.certificate_log_keys]
        check_logged(certificate, issuer, keys)
    if not is_signed_by(public_key(certificate), signature.payload, signature.signature):
        raise ArtifactError(
            "the signature was not made with the key of its certificate: the signature or the signed content was changed"
        )
    payload = signature.payload if signature.envelope is None else signature.envelope.payload
    der = certificate.public_bytes(Encoding.DER)
    check_body(signature.entry.body, LoggedSignature(payload, signature.signature, der, signature.document))
    return identity_of(certificate)
