"""The environment of hooks, which has only listed or requested variables of the daemon."""

import argparse
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.hooks.containment.hook_environment import (
    PASSED,
    PASSED_PREFIX,
    PROXIES,
    AskedVariable,
    add_environment_option,
    asked_variable,
    hook_environment,
    reach_directly,
)
from wharfinger.hooks.shell_library import FOLDER, FRAMEWORK_DIR

HARMLESS = {"PATH": "/bin", "LANG": "C.UTF-8", "LC_TIME": "de_DE", "TZ": "Europe/Berlin", "TMPDIR": "/var/tmp"}
DAEMON = {
    **HARMLESS,
    "AWS_SECRET_ACCESS_KEY": "crown-jewel",
    "AWS_REGION": "eu-1",
    "HOME": "/home/ann",
    "KUBECONFIG": "/home/ann/.kube/config",
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "HELM_KUBETOKEN": "token",
    "NOTIFY_SOCKET": "/run/systemd/notify",
    "WHARFINGER_SOCKET": "/run/socket",
}
LIBRARY = {FRAMEWORK_DIR: str(FOLDER)}


def given_to(*asked: str) -> dict[str, str]:
    return dict(hook_environment(DAEMON, [asked_variable(text) for text in asked]).variables)


def test_only_harmless_variables_are_passed_on_by_default() -> None:
    assert given_to() == {**HARMLESS, **LIBRARY}


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        (["AWS_REGION"], {"AWS_REGION": "eu-1"}),
        (["AWS_*"], {"AWS_REGION": "eu-1", "AWS_SECRET_ACCESS_KEY": "crown-jewel"}),
        (["EDITION=ce", "TZ=UTC"], {"EDITION": "ce", "TZ": "UTC"}),
        (["EMPTY="], {"EMPTY": ""}),
        (["KUBECONFIG"], {"KUBECONFIG": "/home/ann/.kube/config"}),
        (["KUBE*", "HELM_*"], {}),
        (["NOTIFY_SOCKET"], {}),
        (
            ["*"],
            {name: DAEMON[name] for name in ("AWS_SECRET_ACCESS_KEY", "AWS_REGION", "HOME", "WHARFINGER_SOCKET")},
        ),
    ],
)
def test_requested_variables_are_passed_on(asked: list[str], more: dict[str, str]) -> None:
    assert given_to(*asked) == {**HARMLESS, **LIBRARY, **more}


@given(
    st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True), st.text(max_size=8)),
    st.lists(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True), max_size=3),
)
def test_only_harmless_and_requested_variables_are_passed_on(environ: dict[str, str], asked: list[str]) -> None:
    made = hook_environment(environ, [asked_variable(name) for name in asked]).variables
    allowed = {*PASSED, *PROXIES, *(name.lower() for name in PROXIES), *asked}
    assert all(name in allowed or name.startswith(PASSED_PREFIX) for name in made)
    assert {made[name] for name in asked if name in made} <= {*environ.values(), str(FOLDER), os.defpath}


def test_missing_path_variable_gets_the_default() -> None:
    assert hook_environment({}).variables == {"PATH": os.defpath, **LIBRARY}
    own = {"FRAMEWORK_DIR": "/elsewhere"}
    assert hook_environment(own).variables[FRAMEWORK_DIR] == "/elsewhere"


def test_missing_requested_variable_is_a_warning() -> None:
    made = hook_environment({}, [AskedVariable("GONE")])
    assert made.warnings == (
        "--hook-env GONE: the daemon has no such variable to pass on to hooks; set it, or leave the option out",
    )
    (warning,) = hook_environment({"KUBECONFIG": "x"}, [asked_variable("KUBE*")]).warnings
    assert warning.startswith("--hook-env KUBE*: ")


def test_proxy_with_a_password_is_not_passed_on() -> None:
    proxies = {"HTTPS_PROXY": "http://proxy:3128", "http_proxy": "http://ann:secret@proxy:3128", "no_proxy": "a@b"}
    made = hook_environment(proxies)
    assert "http_proxy" not in made.variables
    assert made.variables["HTTPS_PROXY"] == "http://proxy:3128"
    assert made.variables["no_proxy"] == "a@b"
    (warning,) = made.warnings
    assert warning.endswith("pass it on with --hook-env http_proxy")
    assert "secret" not in warning
    made = hook_environment(proxies, [AskedVariable("http_proxy")])
    assert (made.variables["http_proxy"], made.warnings) == (proxies["http_proxy"], ())


def test_the_cluster_is_reached_without_the_proxy() -> None:
    proxied = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "a.example, b.example"}
    assert reach_directly(proxied, "10.0.0.1") == {
        "HTTPS_PROXY": "http://proxy:3128",
        "NO_PROXY": "a.example,b.example,10.0.0.1",
        "no_proxy": "a.example,b.example,10.0.0.1",
    }
    assert reach_directly(reach_directly(proxied, "10.0.0.1"), "10.0.0.1") == reach_directly(proxied, "10.0.0.1")
    assert reach_directly(proxied, "") == proxied
    assert reach_directly({"NO_PROXY": "a"}, "10.0.0.1") == {"NO_PROXY": "a"}


@pytest.mark.parametrize("text", ["", "=x", "1A", "A B", "A*B", "A*=x", "a-b", "A=\0"])
def test_invalid_variable_names_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not NAME"):
        asked_variable(text)


def test_values_of_variables_are_never_shown() -> None:
    assert "jewel" not in repr(asked_variable("KEY=crown-jewel"))
    assert "jewel" not in repr(hook_environment(DAEMON, [AskedVariable("", is_prefix=True)]))
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        asked_variable("A KEY=crown-jewel")
    assert "jewel" not in str(caught.value)


def test_the_option_may_be_repeated() -> None:
    parser = argparse.ArgumentParser()
    add_environment_option(parser)
    assert parser.parse_args([]).hook_env == []
    assert parser.parse_args(["--hook-env", "A", "--hook-env", "B=c=d", "--hook-env", "*"]).hook_env == [
        AskedVariable("A"),
        AskedVariable("B", "c=d"),
        AskedVariable("", is_prefix=True),
    ]
