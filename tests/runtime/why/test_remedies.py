"""The remedies of `wharfinger why`, as commands that a user can type."""

import json
import shlex

import pytest

from wharfinger.runtime.status.reasons import UNKNOWN_TIP, Reason
from wharfinger.runtime.why.remedies import (
    WAIT,
    Member,
    kubectl_name,
    of_absence,
    of_circle,
    of_closing,
    of_failed_hook,
    of_group,
    of_hook,
    of_more,
    of_reason,
    of_shares,
    of_slots,
    of_version,
    of_work,
    patch,
)


def test_names_are_printed_as_kubectl_arguments() -> None:
    assert kubectl_name("db") == "modules.wharfinger.dev db"
    assert kubectl_name("shop.web") == "applications.wharfinger.dev web -n shop"
    assert kubectl_name("shop.web.v2") == "applications.wharfinger.dev web.v2 -n shop"


def test_a_patch_can_be_typed() -> None:
    words = shlex.split(patch("shop.web", '{"suspend":false}'))
    assert words[:7] == ["kubectl", "patch", "applications.wharfinger.dev", "web", "-n", "shop", "--type=merge"]
    assert json.loads(words[-1]) == {"spec": {"suspend": False}}


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.tip])
def test_every_reason_with_a_tip_has_it_as_remedy(reason: Reason) -> None:
    for permanent in (True, False):
        remedy = of_reason("db", str(reason), permanent=permanent)
        assert remedy.startswith(reason.tip.replace(" NAME`", " db`"))
        assert "\n" not in remedy


def test_a_remedy_may_contain_a_command() -> None:
    said = of_reason("db", "DynamicallyDisabled")
    assert said.startswith(
        "set spec.enabled to true to enable the package again: kubectl patch modules.wharfinger.dev db "
    )
    assert said.endswith("""'{"spec":{"enabled":true}}'""")


def test_a_suspended_package_names_the_command_that_resumes_it() -> None:
    said = of_reason("prod.shop", "Suspended")
    assert said.startswith(
        "run `wharfinger resume prod.shop`, or set spec.suspend to false to resume the package: kubectl patch "
    )


def test_reasons_without_a_tip_have_general_remedies() -> None:
    assert of_reason("db", "Downloading") == WAIT
    assert of_reason("db", "FromTheFuture") == UNKNOWN_TIP


def test_remedies_mention_automatic_retries_unless_permanent() -> None:
    assert of_reason("db", "ClusterFailed").endswith("the daemon retries automatically")
    assert "retried" not in of_reason("db", "ClusterFailed", permanent=True)


def test_a_missing_package_has_a_remedy() -> None:
    assert of_absence("db", ">=1.0", "shop.web") == (
        "create the Module db in a version that matches >=1.0, or use a version of shop.web that does not need it; "
        "the daemon then continues automatically"
    )
    assert (
        of_absence("shop.db", "", "")
        == "create the Application db in namespace shop; the daemon then continues automatically"
    )


def test_a_missing_dependency_of_the_resource_has_a_remedy() -> None:
    edit = "edit spec.dependsOn of applications.wharfinger.dev web -n shop"
    assert of_absence("db", "", "shop.web", by_resource=True) == (
        f"create the Module db, or {edit}; the daemon then continues automatically"
    )
    assert of_version("db", ">=2", "shop.web", by_resource=True) == (
        f"set spec.packageVersion of modules.wharfinger.dev db to a version that matches >=2, or {edit}"
    )
    assert of_closing("shop.web", ("a", "b")) == f"{edit}: these entries close the cycle: a, b"
    assert of_closing("shop.web", ()) == Reason.DEPENDENCY_CYCLE.tip


def test_the_remedy_of_a_large_group_is_shortened() -> None:
    members = [Member(f"m{number}", "", "", there=False) for number in range(7)]
    assert of_group(tuple(members)) == (
        "create the Module m0; or create the Module m1; or create the Module m2; or create the Module m3; "
        "or create the Module m4; or use one of 2 other packages; the daemon then continues automatically"
    )
    assert of_group(()) == "enable one of the named packages; the daemon then continues automatically"


def test_versions_hooks_work_and_cycles_have_remedies() -> None:
    assert of_version("db", ">=2", "shop.web") == (
        "set spec.packageVersion of modules.wharfinger.dev db to a version that matches >=2, "
        "or set the version of applications.wharfinger.dev web -n shop to one that accepts the installed version of db"
    )
    assert "`wharfinger logs shop.web --hook hooks/a.sh`" in of_hook("shop.web", "hooks/a.sh")
    assert "registry answers" in of_work("Download:1.0.0")
    assert "--config" in of_work("Load")
    assert of_work("Install:1.0.0") == of_work("") == WAIT
    assert "`wharfinger logs shop.web --hook hooks/a.sh`" in of_failed_hook("shop.web", "hooks/a.sh")
    assert "--max-renders N" in of_slots("renders")
    assert "--max-namespace-share" in of_shares()
    assert "a → b → a" in of_circle("a → b → a")
    assert of_more("db") == "the chain of causes is longer; continue with `wharfinger why db`"
