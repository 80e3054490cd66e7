"""The judgement of an artifact's signatures by a policy.

Pure functions over bytes. An artifact is trusted if one signature satisfies every rule, and if one statement of each demanded
type satisfies every rule as well. A demanded statement also counts as the signature, because it names the digest of the artifact.

If the artifact is not trusted, the reported reason is that of the signature that passed the most checks. From few to many passed
checks, these are the reasons: there is no signature; it cannot be read, or is by an unknown key; its certificate does not verify;
it is by another signer; it signs a statement of a type that does not count; it is for another artifact, name or version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.listing import counted, listed
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, PackageError
from wharfinger.packages.trust.claims import Claim, read_claim
from wharfinger.packages.trust.envelopes import IN_TOTO, SIGNED, Envelope, read_statement
from wharfinger.packages.trust.evidence import Signature
from wharfinger.packages.trust.keyless import signer_of
from wharfinger.packages.trust.keys import PublicKey
from wharfinger.packages.trust.policy import Policy

MAX_NAMED: Final = 5
_OTHER_KEY: Final = "it was made with another key"


@dataclass(frozen=True, slots=True)
class Subject:
    """The artifact to verify: the digest that was resolved, and the name and version that were requested.

    ``stated`` is the version in the manifest, which the signature covers; empty if the manifest states no version.
    """

    digest: Digest
    name: str
    version: str
    stated: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one signature. If ``trusted`` is false, ``reason`` is the broken rule. The more checks the signature has
    passed, the higher ``stage`` is; 0 if the signature cannot be read, or is by a key that the policy does not name.

    ``signer`` is the verified signer, "" if it is not known. ``predicate_type`` is the type of a statement's predicate, "" for a
    bare signature.
    """

    stage: int
    reason: str
    signer: str = ""
    predicate_type: str = ""
    trusted: bool = False


def refusal(signatures: Sequence[Signature], subject: Subject, policy: Policy) -> str:
    """Return why an artifact is not trusted: the broken rule and its remedy; empty if it is trusted."""
    if not signatures:
        return f"expected a signature, found none; sign the artifact with {_programs(policy)}, or remove spec.verify"
    verdicts = [judge(each, subject, policy) for each in signatures]
    good = {each.predicate_type for each in verdicts if each.trusted}
    missing = [each for each in policy.predicates if each not in good]
    if good and not missing:
        return ""
    reasons = [each for each in verdicts if not each.trusted and each.stage]
    if reasons:
        return max(reasons, key=lambda each: each.stage).reason
    if good:
        return (
            f"expected a signed statement of the type {missing[0]}, found none; make one with `cosign attest`, or correct "
            "spec.verify.attestations"
        )
    count = counted(len(signatures), "signature")
    if unread := next((each.reason for each in verdicts if each.reason != _OTHER_KEY), ""):
        return f"expected a signature by {_trusted(policy)}, found {count} that cannot be read: {unread}; sign the artifact again"
    signer = "with one of these keys, or add the signer's key to spec.verify.keys" if policy.keys else "as one of these"
    return f"expected a signature by {_trusted(policy)}, found {count} by other keys; sign the artifact {signer}"


def _programs(policy: Policy) -> str:
    return "`wharfinger package push --sign KEY` or `cosign sign --key`" if policy.keys else "`cosign sign`"


def _trusted(policy: Policy) -> str:
    return listed([*(PublicKey(key.name, key.pem) for key in policy.keys), *policy.identities], MAX_NAMED)


def judge(signature: Signature, subject: Subject, policy: Policy) -> Verdict:
    """Return the verdict on one signature of an artifact by the policy of its repository."""
    if signature.problem:
        return Verdict(0, signature.problem)
    keys = (PublicKey(key.name, key.pem) for key in policy.keys)
    key = next((key for key in keys if key.has_signed(signature.payload, signature.signature)), None)
    if key is not None:
        return _about_content(signature, str(key), subject, policy)
    if policy.root is None or not signature.certificate:
        return Verdict(0, _OTHER_KEY)
    try:
        signer = signer_of(signature, policy.root)
    except PackageError as error:
        return Verdict(1, f"{error}; sign the artifact again, or correct spec.verify.keyless")
    if not any(each.matches(signer.subject, signer.issuer) for each in policy.identities):
        return Verdict(
            2,
            f"expected a signature by {listed(policy.identities, MAX_NAMED)}, found one by {signer}; sign the artifact as one of "
            "these, or add the signer to spec.verify.keyless.identities",
        )
    return _about_content(signature, str(signer), subject, policy)


def _about_content(signature: Signature, signer: str, subject: Subject, policy: Policy) -> Verdict:
    """Judge the signed content of a verified signature."""
    if signature.envelope is not None:
        return _about_statement(signature.envelope, signer, subject, policy)
    broken = _broken_rule(signature.payload, signer, subject, policy)
    return Verdict(4, broken, signer, trusted=not broken)


def _about_statement(envelope: Envelope, signer: str, subject: Subject, policy: Policy) -> Verdict:
    try:
        if envelope.type != IN_TOTO:
            raise ArtifactError(
                f"the signed statement is of the type {envelope.type[:100]!r}, which is not an in-toto statement"
            )
        statement = read_statement(envelope.payload)
    except ArtifactError as error:
        return Verdict(4, f"the signature by {signer}: {error}; sign the artifact again", signer)
    kind = statement.predicate_type
    if subject.digest.text not in statement.digests:
        found = listed(sorted(statement.digests), 1) or "no artifact"
        text = f"the signature by {signer} is for {found}, not for this artifact; sign this artifact"
        return Verdict(4, text, signer, kind)
    if kind != SIGNED and kind not in policy.predicates:
        text = f"the statement by {signer} is of the type {kind[:200]!r}, which does not count as a signature; sign the artifact"
        return Verdict(3, text, signer, kind)
    wrong = _wrong_name(Claim(subject.digest), signer, subject) if policy.require_version else ""
    return Verdict(4, wrong, signer, "" if kind == SIGNED else kind, trusted=not wrong)


def _broken_rule(payload: bytes, signer: str, subject: Subject, policy: Policy) -> str:
    """Return the rule that a verified payload breaks; empty if it breaks no rule."""
    try:
        claim = read_claim(payload)
    except ArtifactError as error:
        return f"the signature by {signer}: {error}; sign the artifact again"
    if claim.digest != subject.digest:
        return f"the signature by {signer} is for {claim.digest}, not for this artifact; sign this artifact"
    return _wrong_name(claim, signer, subject) if policy.require_version else ""


def _wrong_name(claim: Claim, signer: str, subject: Subject) -> str:
    name = claim.reference.partition("@")[0].rpartition("/")[2].partition(":")[0]
    if name and name != subject.name:
        return (
            f"the signature by {signer} is for the package {name[:100]!r}, but {subject.name!r} was requested; push "
            "and sign the requested package"
        )
    signed = claim.version or subject.stated
    if subject.version and not signed:
        return (
            f"the artifact signed by {signer} states no version, so an old version could be used instead of "
            f"{subject.version}; push it "
            "with `wharfinger package push --sign KEY`, or set spec.verify.requireVersion: false"
        )
    if subject.version and _plain(signed) != _plain(subject.version):
        return (
            f"the signature by {signer} is for version {signed[:100]}, but {subject.version} was requested; push and "
            "sign the requested version"
        )
    return ""


def _plain(version: str) -> str:
    return version.replace("_", "+").removeprefix("v")
