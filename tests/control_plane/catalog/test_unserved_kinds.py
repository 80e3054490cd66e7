"""Kinds that can be decoded but are not served."""

import pytest

from wharfinger.control_plane.catalog.unserved_kinds import is_former, is_unserved


@pytest.mark.parametrize(
    ("group", "version", "kind", "expected"),
    [
        ("", "v1", "SecretList", True),
        ("", "v1", "List", True),
        ("", "v1", "Status", True),
        ("apps", "v1", "Status", False),
        ("apps", "v1", "DeploymentList", True),
        ("apps", "v1", "Scale", False),
        ("apps", "v1beta1", "Scale", True),
        ("apps", "v1beta1", "ScaleList", False),
        ("apps", "v1beta2", "DaemonSetList", True),
        ("apps", "v1beta1", "DeleteOptions", True),
        ("apps", "v1", "DeleteOptions", True),
        ("", "v1", "DeleteOptions", True),
        ("apps", "v3", "DeleteOptions", False),
        ("apps", "v3", "Deployment", False),
        ("", "v1", "NosuchList", False),
    ],
)
def test_lists_options_and_retired_versions_are_unserved(
    group: str, version: str, kind: str, *, expected: bool
) -> None:
    """Known lists, options, ``Status`` and retired versions count as unserved kinds. Unknown and served kinds do not."""
    assert is_unserved(group, version, kind) is expected


def test_former_versions_and_groups_of_a_kind_are_recognized() -> None:
    """The former versions of a kind include those of the group from which the kind was moved."""
    assert is_former("extensions", "v1beta1", "Deployment", "apps")
    assert is_former("apps", "v1beta1", "Deployment", "apps")
    assert not is_former("policy", "v1beta1", "Deployment", "apps")
