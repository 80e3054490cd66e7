"""The report about the signatures of an artifact. Signatures of all kinds are tested in
`tests/packages/test_verify_command.py`.
"""

from pathlib import Path

from tests.packages.support.registry_contract import REPOSITORY, push
from tests.packages.support.signing import POLICY, sign
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.trust.report import report_on


async def test_a_channel_is_verified_without_a_version(tmp_path: Path) -> None:
    registry = OciLayout(tmp_path)
    digest = (await push(registry, "1.0.0")).digest
    assert (await report_on(registry, REPOSITORY, digest, "1.0.0", POLICY)).refused.startswith("expected a signature")
    await sign(registry, REPOSITORY, digest)
    report = await report_on(registry, REPOSITORY, digest, "1.0.0", POLICY)
    assert (report.refused, report.rows[-1]) == ("", ("trusted", "yes"))
    assert "but 2.0.0 was requested" in (await report_on(registry, REPOSITORY, digest, "2.0.0", POLICY)).refused
    assert (await report_on(registry, REPOSITORY, digest, "", POLICY)).refused == ""
