"""The arguments that several commands share, and the error messages about them."""

import argparse
from pathlib import Path

import pytest

from wharfinger.cluster.api.errors import ClusterError, UnreachableError
from wharfinger.runtime.installing.command_arguments import (
    add_cluster,
    add_package_name,
    cluster_problem,
    unknown_package,
)


def offer(_prefix: str, _args: argparse.Namespace) -> list[str]:
    return []


def test_package_names_are_completed_if_a_completer_is_given() -> None:
    parser = argparse.ArgumentParser()
    add_package_name(parser)
    assert "completer" not in vars(parser._actions[-1])
    completing = argparse.ArgumentParser()
    completing.set_defaults(complete_name=offer)
    add_package_name(completing)
    assert vars(completing._actions[-1])["completer"] is offer
    assert parser.parse_args(["prod.shop"]).name == "prod.shop"


def test_a_command_accepts_kubeconfig_and_context() -> None:
    parser = argparse.ArgumentParser()
    add_cluster(parser)
    assert vars(parser.parse_args([])) == {"kubeconfig": None, "context": ""}
    assert vars(parser.parse_args(["--kubeconfig", "a", "--context", "b"])) == {"kubeconfig": Path("a"), "context": "b"}


def test_the_remedy_for_a_server_without_an_answer_names_the_kubeconfig() -> None:
    told = cluster_problem(UnreachableError("get x: no answer from https://s: refused"))
    assert told.endswith("refused; check that the cluster runs, or name another with --kubeconfig")
    assert cluster_problem(ClusterError("other")) == "other"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("prod.shop", "prod.shop: there is no such Application; `wharfinger get packages` lists all packages"),
        (
            "shop",
            (
                "shop: there is no such Module; give the name of an Application as NAMESPACE.NAME; `wharfinger get "
                "packages` lists all packages"
            ),
        ),
    ],
)
def test_an_unknown_package_is_reported_with_its_kind(name: str, message: str) -> None:
    assert unknown_package(name) == message
