"""The arguments and the environment of Helm."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.packages.support.renders import ASKED
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering import helm_command
from wharfinger.packages.rendering.helm_command import (
    FLAG_BYTES,
    helm_environment,
    server_arguments,
    template_arguments,
)

FLAG = "--api-versions="


def given_versions(arguments: list[str]) -> list[str]:
    flags = [argument for argument in arguments if argument.startswith(FLAG)]
    return [version for flag in flags for version in flag.removeprefix(FLAG).split(",")]


def test_distinct_versions_are_passed_in_one_flag() -> None:
    arguments = template_arguments(replace(ASKED, api_versions=("v1", "apps/v1", "v1"), is_upgrade=True))
    assert arguments == [
        "web",
        "--namespace=prod",
        "--kube-version=v1.31.0",
        "--include-crds",
        "--is-upgrade",
        f"{FLAG}apps/v1,v1",
    ]
    assert template_arguments(replace(ASKED, api_versions=()))[-1] == "--include-crds"


@given(st.integers(0, 300), st.integers(20, 400))
def test_flags_are_split_to_fit_the_argument_limit(count: int, most: int) -> None:
    versions = [f"{'x' * (number % 15)}{number}" for number in range(count)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(helm_command, "FLAG_BYTES", most)
        arguments = template_arguments(replace(ASKED, api_versions=tuple(versions)))
    assert given_versions(arguments) == sorted(versions)
    flags = [argument for argument in arguments if argument.startswith(FLAG)]
    assert all(len(flag) <= most + len(FLAG) for flag in flags)
    assert len(flags) == 0 or len(flags) < 2 + 2 * sum(map(len, flags)) // most
    assert FLAG_BYTES + len(FLAG) < 128 * 1024


def test_too_many_api_versions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helm_command, "MAX_API_VERSIONS", 1)
    with pytest.raises(RenderError, match="2 API versions are more than helm accepts"):
        template_arguments(ASKED)


def test_arguments_for_lookups_in_the_cluster() -> None:
    assert server_arguments(Path("/a/kubeconfig"), Path("/a/out")) == [
        "--dry-run=server",
        "--kubeconfig=/a/kubeconfig",
        "--output-dir=/a/out",
        "--debug",
    ]


def test_only_the_cluster_is_reachable_from_helm() -> None:
    closed = helm_environment(Path("/work"), 2**30)
    assert closed["HTTP_PROXY"] == closed["HTTPS_PROXY"] == "http://127.0.0.1:9"
    assert "NO_PROXY" not in closed
    for server, host in (
        ("https://api.example:6443/x", "api.example"),
        ("http://me:secret@10.0.0.1:80", "10.0.0.1"),
        ("https://[2001:db8::1]:6443", "2001:db8::1"),
    ):
        opened = helm_environment(Path("/work"), 2**30, {"clusters": [{"cluster": {"server": server}}]})
        assert opened == {**closed, "NO_PROXY": host}
    assert helm_environment(Path("/work"), 2**30, {}) == closed


def test_garbage_collection_starts_at_half_of_the_memory_limit() -> None:
    environment = helm_environment(Path("/work"), 1024**3)
    assert int(environment["GOMEMLIMIT"]) == 512 * 1024**2
    assert environment["GOGC"] == "400"
