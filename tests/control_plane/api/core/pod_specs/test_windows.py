"""Validation of the operating system of Pods, and of user names on Windows."""

import pytest

from wharfinger.control_plane.api.core.pod_specs.windows import system_errors, windows_option_errors


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("user", 0),
        ("DOMAIN\\user", 0),
        ("a\x01", 1),
        ("a" * 105, 1),
        ("d" * 256 + "\\u", 2),
        ("D\\", 1),
        ("...", 1),
    ],
)
def test_invalid_windows_user_names_are_refused(name: str, count: int) -> None:
    assert len(windows_option_errors({"windowsOptions": {"runAsUserName": name}}, "p")) == count


def test_invalid_operating_systems_are_refused() -> None:
    assert system_errors({"os": {"name": "linux"}}, "spec") == system_errors({}, "spec") == []
    assert system_errors({"os": {"name": "windows"}, "hostPID": False}, "spec") == []
    assert len(system_errors({"os": {}}, "spec")) == 1
    assert len(windows_option_errors({"windowsOptions": {"gmsaCredentialSpec": "x" * 70000}}, "p")) == 1
