"""The signatures and statements of an artifact as rows of a table, and whether a policy trusts the artifact."""

from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import PackageError
from wharfinger.packages.registry.address import version_of_tag
from wharfinger.packages.registry.registry import Registry
from wharfinger.packages.trust.envelopes import read_statement
from wharfinger.packages.trust.evidence import Signature
from wharfinger.packages.trust.policy import Policy
from wharfinger.packages.trust.predicates import summary
from wharfinger.packages.trust.provenance import provenance_refusal
from wharfinger.packages.trust.signatures import find_signatures
from wharfinger.packages.trust.trusted_registry import is_version_tag
from wharfinger.packages.trust.verification import Subject, judge, refusal

_VERSION: Final = "org.opencontainers.image.version"


@dataclass(frozen=True, slots=True)
class Report:
    """The rows for the terminal, each with its label, and the reason why the artifact is not trusted ("" if it is trusted)."""

    rows: tuple[tuple[str, str], ...]
    refused: str


async def report_on(registry: Registry, repository: str, digest: Digest, tag: str, policy: Policy) -> Report:
    """Return the report on an artifact. ``tag`` is the requested tag, "" if a digest was requested. Raises PackageError."""
    version = version_of_tag(tag) if is_version_tag(tag) else ""
    if policy.keyring:
        why = await provenance_refusal(
            registry, repository, await registry.manifest(repository, digest), version, policy.keyring
        )
        return Report((("digest", str(digest)), ("trusted", f"no: {why}" if why else "yes")), why)
    signatures = await find_signatures(registry, repository, digest, statements=True)
    manifest = await registry.manifest(repository, digest)
    stated = dict(manifest.annotations).get(_VERSION, "")
    subject = Subject(digest, repository.rpartition("/")[2], version, stated)
    return await trio.to_thread.run_sync(_judged, signatures, subject, policy)


def _judged(signatures: tuple[Signature, ...], subject: Subject, policy: Policy) -> Report:
    refused = refusal(signatures, subject, policy)
    rows = [("digest", str(subject.digest))]
    rows += [_row(each, subject, policy) for each in signatures]
    rows.append(("trusted", f"no: {refused}" if refused else "yes"))
    return Report(tuple(rows), refused)


def _row(signature: Signature, subject: Subject, policy: Policy) -> tuple[str, str]:
    """Return the row of one signature: its signer, or the reason why it does not count."""
    verdict = judge(signature, subject, policy)
    if not verdict.signer or (not verdict.trusted and not verdict.predicate_type):
        return "not verified", verdict.reason
    if signature.envelope is None or (verdict.trusted and not verdict.predicate_type):
        return "signature", f"by {verdict.signer}"
    try:
        statement = read_statement(signature.envelope.payload)
    except PackageError as error:
        return "not verified", str(error)
    if subject.digest.text not in statement.digests:
        return "not verified", verdict.reason
    about = summary(statement)
    return "statement", f"{statement.predicate_type} by {verdict.signer}{f': {about}' if about else ''}"
