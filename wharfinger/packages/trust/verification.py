"""The judgement of an artifact's signatures by a policy: pure functions over bytes that were read.

An artifact is trusted if one signature satisfies every rule. Otherwise the reason of the signature that came farthest is
reported: no signature, no known key, another artifact, another name or version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.claims import Claim, read_claim
from wharfinger.packages.trust.keys import PublicKey
from wharfinger.packages.trust.policy import Policy
from wharfinger.packages.trust.signatures import Signature

MAX_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Subject:
    """The artifact in question: the digest that was resolved, and the name and version that were requested.

    ``stated`` is the version in the manifest, which the signature covers; empty if the manifest states none.
    """

    digest: Digest
    name: str
    version: str
    stated: str = ""


def refusal(signatures: Sequence[Signature], subject: Subject, policy: Policy) -> str:
    """Return why an artifact is not trusted: the broken rule and its remedy; empty if it is trusted."""
    if not signatures:
        return (
            "expected a signature, found none; sign the artifact with `wharfinger package push --sign KEY` or `cosign sign "
            "--key`, or remove spec.verify"
        )
    keys = [PublicKey(key.name, key.pem) for key in policy.keys]
    reasons: list[str] = []
    for signature in signatures:
        key = next((key for key in keys if key.has_signed(signature.payload, signature.signature)), None)
        if key is not None:
            reason = _broken_rule(signature.payload, key, subject, policy)
            if not reason:
                return ""
            reasons.append(reason)
    if reasons:
        return reasons[0]
    named = ", ".join(map(str, keys[:MAX_NAMED])) + (", …" if len(keys) > MAX_NAMED else "")
    count = f"{len(signatures)} signature{'' if len(signatures) == 1 else 's'}"
    return (
        f"expected a signature by {named}, found {count} by other keys; sign the artifact with one of these keys, or add the "
        "signer's key to spec.verify.keys"
    )


def _broken_rule(payload: bytes, key: PublicKey, subject: Subject, policy: Policy) -> str:
    """Return the rule that a verified payload breaks; empty if it breaks none."""
    try:
        claim = read_claim(payload)
    except ArtifactError as error:
        return f"the signature by {key}: {error}; sign the artifact again"
    if claim.digest != subject.digest:
        return f"the signature by {key} is for {claim.digest}, not for this artifact; sign this artifact"
    return _wrong_name(claim, key, subject) if policy.require_version else ""


def _wrong_name(claim: Claim, key: PublicKey, subject: Subject) -> str:
    name = claim.reference.partition("@")[0].rpartition("/")[2].partition(":")[0]
    if name and name != subject.name:
        return (
            f"the signature by {key} is for the package {name[:100]!r}, and {subject.name!r} was requested; push and sign "
            "the requested one"
        )
    signed = claim.version or subject.stated
    if subject.version and not signed:
        return (
            f"the artifact signed by {key} states no version, so an old one could stand in for {subject.version}; push it "
            "with `wharfinger package push --sign KEY`, or set spec.verify.requireVersion: false"
        )
    if subject.version and _plain(signed) != _plain(subject.version):
        return (
            f"the signature by {key} is for version {signed[:100]}, and {subject.version} was requested; push and sign the "
            "requested version"
        )
    return ""


def _plain(version: str) -> str:
    return version.replace("_", "+").removeprefix("v")
