"""The command ``wharfinger package verify`` as a user runs it, with artifacts in an OCI layout."""

import argparse
from pathlib import Path

import pytest
import trio

from tests.packages.support.registry_contract import REPOSITORY, push
from tests.packages.support.signing import KEY, OTHER, sign
from tests.packages.support.sigstore import AUTHORITY, GOOD, ISSUER, LOG, PROVENANCE, SUBJECT, statement
from tests.packages.trust.test_keyless import annotated_statement, push_annotated, push_bundles
from tests.packages.trust.test_predicates import V1
from tests.packages.trust.test_trusted_registry import stated
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.trust.envelopes import ENVELOPE
from wharfinger.packages.trust.keys import PublicKey, public_pem
from wharfinger.packages.trust.signatures import statements_tag
from wharfinger.packages.verify_command import EXIT_UNTRUSTED, add_verify
from wharfinger.runtime.resources.repository_policy import policy_for_command

OURS = str(PublicKey("spec.verify.keys[0]", public_pem(KEY)))
KEYLESS: JsonObject = {
    "authorities": AUTHORITY.pem,
    "logKeys": [public_pem(LOG)],
    "identities": [{"issuer": ISSUER, "subject": "https://git.example/team/*"}],
}


def run(folder: Path, verify: JsonObject | None, tag: str = ":1.0.0") -> int:
    """Verify an artifact of the layout by a policy, and return the exit code."""
    spec: JsonObject = {"registry": {"repo": "registry.example/charts"}}
    obj: JsonObject = {"kind": "PackageRepository", "spec": {**spec, **({"verify": verify} if verify else {})}}
    (folder / "repository.yaml").write_text(write_yaml(obj))
    parser = argparse.ArgumentParser()
    add_verify(parser.add_subparsers(), policy_for_command)
    place = f"oci-layout:{folder}/layout/{REPOSITORY}{tag}"
    args = parser.parse_args(["verify", place, "--repository", str(folder / "repository.yaml")])
    code: int = args.handler(args)
    return code


def pushed(folder: Path) -> Digest:
    """Push an artifact with signatures of all kinds, and return its digest."""
    registry = OciLayout(folder / "layout")

    async def main() -> Digest:
        digest = (await stated(registry, "1.0.0", "1.0.0")).digest
        await sign(registry, REPOSITORY, digest)
        await sign(registry, REPOSITORY, digest, key=OTHER)
        other = GOOD.bundle(statement(digest_of(b"other"), PROVENANCE))
        good = GOOD.bundle(statement(digest))
        await push_bundles(registry, digest, GOOD.bundle(statement(digest, PROVENANCE, V1)), other, good, b"{}")
        data, annotations = annotated_statement(statement(digest, "https://spdx.dev/Document"))
        await push_annotated(registry, digest, data, annotations, statements_tag(digest), ENVELOPE)
        return digest

    return trio.run(main)


def test_signatures_and_statements_are_listed_with_their_signer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = pushed(tmp_path)
    assert run(tmp_path, {"keys": [public_pem(KEY)], "keyless": KEYLESS, "attestations": [PROVENANCE]}) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    by = f"by {SUBJECT} (issuer {ISSUER})"
    assert lines[1:] == [
        ["digest", str(digest)],
        ["signature", f"by {OURS}"],
        ["not", "verified it was made with another key"],
        ["statement", f"https://spdx.dev/Document {by}: SPDX: 0 packages"],
        ["statement", f"{PROVENANCE} {by}: built by https://ci.example from git+https://git.example/web"],
        [
            "not",
            f"verified the signature {by} is for {digest_of(b'other')}, not for this artifact; sign this artifact",
        ],
        ["signature", by],
        ["not", "verified the bundle is of the type ''; versions 0.1 to 0.3 are read"],
        ["trusted", "yes"],
    ]


def test_an_untrusted_package_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pushed(tmp_path)
    wanted: JsonObject = {"keys": [public_pem(KEY)], "attestations": ["https://else.example"]}
    assert run(tmp_path, wanted) == EXIT_UNTRUSTED
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.startswith("trusted      no: expected a signed statement of the type https://else.example, found none")


@pytest.mark.parametrize(
    ("verify", "tag", "message"),
    [
        (None, ":1.0.0", "expected a PackageRepository with spec.verify, found none"),
        ({"keys": ["x"]}, ":1.0.0", "expected a public key in PEM text"),
        ({"keys": [public_pem(KEY)]}, ":9.9.9", "not found"),
        ({"keys": [public_pem(KEY)]}, "", "give a tag or a digest"),
    ],
)
def test_missing_policies_and_packages_are_reported(
    verify: JsonObject | None, tag: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trio.run(push, OciLayout(tmp_path / "layout"), "1.0.0")
    assert run(tmp_path, verify, tag) == 1
    assert message in capsys.readouterr().err


def test_a_package_can_be_verified_by_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digest = pushed(tmp_path)
    assert run(tmp_path, {"keys": [public_pem(KEY)]}, f"@{digest}") == 0
    assert "trusted      yes" in capsys.readouterr().out
