"""The shard that owns an Application, and the decision of each shard whether it manages the Application."""

import pytest

from tests.runtime.support.objects import application, module
from wharfinger.formats.json.value import JsonObject, find_object
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.resources import APPLICATION, FINALIZER, MODULE
from wharfinger.runtime.shards.ownership import MAIN, Verdict, judge, lease_name, owner_of, shard_problem

KEY = ObjectKey(APPLICATION, "team", "app")


def owned(shard: str | None, *, deleting: bool = False) -> JsonObject:
    """Return an Application of a shard, or an Application without an owner if the shard is None."""
    obj = application("team", "app")
    if shard is not None:
        find_object(obj, "metadata")["finalizers"] = [FINALIZER]
        obj["status"] = {"shard": shard} if shard else {}
    if deleting:
        find_object(obj, "metadata")["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return obj


def test_the_owner_is_read_from_the_status() -> None:
    assert owner_of(owned(None)) is None
    assert owner_of(owned("blue")) == "blue"
    assert owner_of(owned(MAIN)) == MAIN
    assert owner_of({**application("team", "app"), "status": {"summary": {"state": "Failed"}}}) == MAIN


@pytest.mark.parametrize(
    ("shard", "owner", "wanted", "verdict"),
    [
        (MAIN, None, MAIN, Verdict.OURS),
        ("blue", None, "blue", Verdict.CLAIM),
        (MAIN, None, "blue", Verdict.FOREIGN),
        ("blue", None, "red", Verdict.FOREIGN),
        ("blue", "blue", "blue", Verdict.OURS),
        (MAIN, MAIN, MAIN, Verdict.OURS),
        (MAIN, MAIN, "blue", Verdict.HAND_OVER),
        ("blue", "blue", MAIN, Verdict.HAND_OVER),
        ("blue", MAIN, "blue", Verdict.AWAITED),
        (MAIN, "blue", MAIN, Verdict.AWAITED),
        ("blue", "red", MAIN, Verdict.FOREIGN),
    ],
)
def test_each_shard_has_a_verdict_about_an_application(
    shard: str, owner: str | None, wanted: str, verdict: Verdict
) -> None:
    assert judge(shard, KEY, owned(owner), wanted) is verdict


@pytest.mark.parametrize("owner", [None, MAIN, "blue", "red"])
@pytest.mark.parametrize("wanted", [MAIN, "blue", "red", "green"])
@pytest.mark.parametrize("deleting", [False, True])
def test_at_most_one_of_all_shards_acts(owner: str | None, wanted: str, deleting: bool) -> None:
    verdicts = [judge(each, KEY, owned(owner, deleting=deleting), wanted) for each in (MAIN, "blue", "red")]
    acting = [each for each in verdicts if each in (Verdict.OURS, Verdict.CLAIM, Verdict.HAND_OVER)]
    assert len(acting) == (0 if owner is None and wanted == "green" else 1)


def test_a_removal_is_finished_by_its_owner() -> None:
    assert judge("blue", KEY, owned("blue", deleting=True), "red") is Verdict.OURS


def test_modules_belong_to_the_main_daemon() -> None:
    key = ObjectKey(MODULE, "", "ingress")
    assert judge(MAIN, key, module("ingress"), MAIN) is Verdict.OURS
    assert judge("blue", key, module("ingress"), MAIN) is Verdict.FOREIGN


@pytest.mark.parametrize("name", ["Blue", "-a", "a-", "a.b", "x" * 41, ""])
def test_invalid_names_of_shards_are_refused(name: str) -> None:
    assert "is not the name of a shard" in shard_problem(name)


def test_each_shard_has_a_lease() -> None:
    assert (lease_name(MAIN), lease_name("blue")) == ("wharfinger", "wharfinger-blue")
    assert shard_problem("blue-2") == ""
