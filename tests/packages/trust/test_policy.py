"""The checksum of the verification policy of a repository."""

from dataclasses import replace

from tests.packages.support.signing import OTHER, POLICY
from wharfinger.packages.trust.keys import public_pem
from wharfinger.packages.trust.policy import Policy, TrustedKey


def test_the_checksum_of_a_policy_depends_only_on_its_rules() -> None:
    other = TrustedKey("spec.verify.keys[1]", public_pem(OTHER))
    rules = [POLICY, Policy((other,)), Policy((*POLICY.keys, other)), replace(POLICY, require_version=False), Policy()]
    assert len({policy.checksum for policy in rules}) == len(rules)
    assert replace(POLICY, version="1.0.0").checksum == POLICY.checksum
    assert POLICY.checksum.isalnum()
