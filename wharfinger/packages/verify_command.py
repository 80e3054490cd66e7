"""``wharfinger package verify``: the signatures and statements of an artifact, as the policy of a repository judges them."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, cast

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.commands import run_lines
from wharfinger.packages.errors import AddressError, PackageError
from wharfinger.packages.registry.address import version_of_tag
from wharfinger.packages.targets import Target, add_registry_arguments, open_target, read_file, read_target
from wharfinger.packages.trust.envelopes import read_statement
from wharfinger.packages.trust.evidence import Signature
from wharfinger.packages.trust.policy import Policy
from wharfinger.packages.trust.predicates import summary
from wharfinger.packages.trust.signatures import find_signatures
from wharfinger.packages.trust.verification import Subject, judge, refusal

ReadPolicy: TypeAlias = Callable[[JsonObject], Policy | None]
"""A function that reads ``spec.verify`` of a PackageRepository; raises FormatError. The composition root passes it."""

EXIT_UNTRUSTED: Final = 3
MAX_RESOURCE: Final = 4 * 1024 * 1024
_VERSION: Final = "org.opencontainers.image.version"


def add_verify(actions: "argparse._SubParsersAction[argparse.ArgumentParser]", read_policy: ReadPolicy) -> None:
    """Add ``package verify REFERENCE --repository FILE``."""
    verify = actions.add_parser(
        "verify",
        help="show the signatures and signed statements of a package, and whether a repository's policy trusts it",
        description="Verify the signatures of a package by the policy (spec.verify) of a PackageRepository in a file, as the "
        "daemon does before it installs anything. Signed statements (SBOM, provenance of the build) are listed with their signers "
        f"and in short. Exit code 0: the package is trusted; {EXIT_UNTRUSTED}: it is not; 1: it cannot be read.",
    )
    verify.add_argument(
        "reference",
        metavar="REFERENCE",
        help="host[:port]/repository:tag, or @sha256:…, or oci-layout:FOLDER/PACKAGE:tag",
    )
    verify.add_argument(
        "--repository",
        type=Path,
        required=True,
        metavar="FILE",
        help="the PackageRepository with spec.verify, YAML or JSON",
    )
    add_registry_arguments(verify)
    verify.set_defaults(handler=_verify, read_policy=read_policy)


@dataclass(frozen=True, slots=True)
class Report:
    """The rows for the terminal, each with its label, and why the artifact is not trusted ("" if it is)."""

    rows: tuple[tuple[str, str], ...]
    refused: str


def _verify(args: argparse.Namespace) -> int:
    made: list[Report] = []

    async def lines() -> list[str]:
        report = await _report(args)
        made.append(report)
        return [f"{label:<12} {text}" for label, text in report.rows]

    code = run_lines(lines)
    return code or (EXIT_UNTRUSTED if made[0].refused else 0)


async def _report(args: argparse.Namespace) -> Report:
    target = read_target(str(args.reference), plain_http=bool(args.plain_http))
    policy = _policy(cast("Path", args.repository), cast("ReadPolicy", args.read_policy))
    async with open_target(args, target) as registry:
        if target.digest is None and not target.tag:
            raise AddressError(f"{target}: give a tag or a digest, such as {target}:1.0.0")
        digest = target.digest or (await registry.resolve(target.repository, target.tag)).digest
        signatures = await find_signatures(registry, target.repository, digest, statements=True)
        manifest = await registry.manifest(target.repository, digest)
    version = version_of_tag(target.tag) if target.tag else ""
    name = target.repository.rpartition("/")[2]
    subject = Subject(digest, name, version, dict(manifest.annotations).get(_VERSION, ""))
    return await trio.to_thread.run_sync(_judged, target, signatures, subject, policy)


def _judged(target: Target, signatures: tuple[Signature, ...], subject: Subject, policy: Policy) -> Report:
    refused = refusal(signatures, subject, policy)
    rows = [("reference", str(target)), ("digest", str(subject.digest))]
    rows += [_row(each, subject, policy) for each in signatures]
    rows.append(("trusted", f"no: {refused}" if refused else "yes"))
    return Report(tuple(rows), refused)


def _row(signature: Signature, subject: Subject, policy: Policy) -> tuple[str, str]:
    """Return the row of one signature: its signer, or why it does not count."""
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


def _policy(path: Path, read_policy: ReadPolicy) -> Policy:
    try:
        found: JsonValue = read_yaml(read_file(path, MAX_RESOURCE), what=str(path))
        policy = read_policy(as_object(found, str(path)))
    except FormatError as error:
        raise AddressError(f"{path}: {error}") from error
    if policy is None:
        raise AddressError(f"{path}: expected a PackageRepository with spec.verify, found none; add the policy")
    return policy
