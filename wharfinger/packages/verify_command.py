"""``wharfinger package verify`` lists the signatures and statements of an artifact, as a repository's policy judges them."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object
from wharfinger.formats.option_values import path_option
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.commands import run_lines
from wharfinger.packages.errors import AddressError
from wharfinger.packages.targets import add_registry_arguments, open_target, read_file, read_target
from wharfinger.packages.trust.policy import Policy

if TYPE_CHECKING:
    from wharfinger.packages.trust.report import Report

ReadPolicy: TypeAlias = Callable[[JsonObject], Policy | None]
"""A function that reads ``spec.verify`` of a PackageRepository; raises FormatError. The composition root passes it."""

EXIT_UNTRUSTED: Final = 3
MAX_RESOURCE: Final = 4 * 1024 * 1024


def add_verify(actions: "argparse._SubParsersAction[argparse.ArgumentParser]", read_policy: ReadPolicy) -> None:
    """Add ``package verify REFERENCE --repository FILE``."""
    verify = actions.add_parser(
        "verify",
        help="show the signatures and signed statements of a package, and whether a repository's policy trusts it",
        description="Verify the signatures of a package against the policy (spec.verify) of the PackageRepository in the "
        "file that --repository names. The daemon does the same before it installs a package. Signed statements, such as an "
        "SBOM or the provenance of the build, are listed with their signers and a summary. Exit code 0: the package is trusted; "
        f"{EXIT_UNTRUSTED}: it is not trusted; 1: it cannot be read.",
    )
    verify.add_argument(
        "reference",
        metavar="REFERENCE",
        help="host[:port]/repository:tag, oci-layout:FOLDER/PACKAGE:tag, or host[:port]/repository@sha256:…",
    )
    verify.add_argument(
        "--repository",
        type=path_option,
        required=True,
        metavar="FILE",
        help="a YAML or JSON file with a PackageRepository that has spec.verify",
    )
    add_registry_arguments(verify)
    verify.set_defaults(handler=_verify, read_policy=read_policy)


def _verify(args: argparse.Namespace) -> int:
    made: list[Report] = []

    async def lines() -> list[str]:
        report = await _report(args)
        made.append(report)
        return [f"{label:<12} {text}" for label, text in report.rows]

    code = run_lines(lines)
    return code or (EXIT_UNTRUSTED if made[0].refused else 0)


async def _report(args: argparse.Namespace) -> "Report":
    target = read_target(str(args.reference), plain_http=bool(args.plain_http))
    policy = _policy(cast("Path", args.repository), cast("ReadPolicy", args.read_policy))
    from wharfinger.packages.trust.report import report_on  # noqa: PLC0415 - cryptography takes 20 MB

    async with open_target(args, target) as registry:
        if target.digest is None and not target.tag:
            raise AddressError(f"{target}: give a tag or a digest, such as {target}:1.0.0")
        digest = target.digest or (await registry.resolve(target.repository, target.tag)).digest
        report = await report_on(registry, target.repository, digest, target.tag, policy)
    return replace(report, rows=(("reference", str(target)), *report.rows))


def _policy(path: Path, read_policy: ReadPolicy) -> Policy:
    try:
        found: JsonValue = read_yaml(read_file(path, MAX_RESOURCE), what=str(path))
        policy = read_policy(as_object(found, str(path)))
    except FormatError as error:
        raise AddressError(f"{path}: {error}") from error
    if policy is None:
        raise AddressError(f"{path}: expected a PackageRepository with spec.verify, found none; add the policy")
    return policy
