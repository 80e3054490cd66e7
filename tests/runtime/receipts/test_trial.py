"""Trials of a small package: with all rights, with too few rights, and with objects that are not ready in time."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.runtime.receipts.support import open_judge, plan, programs
from wharfinger.kube.access_rules import Access
from wharfinger.runtime.receipts.rights import Grant, Part, needed
from wharfinger.runtime.receipts.trial import Record, TrialError, run_trial


def rights(*verbs: str) -> Grant:
    return Grant({"shop": frozenset(Access("", "configmaps", verb, "shop") for verb in verbs)})


async def test_the_requests_of_a_package_are_recorded_by_part(tmp_path: Path) -> None:
    wanted = plan(chart(tmp_path / "web", "web", "1.0.0"), namespace="shop")
    record = await run_trial(wanted, None, programs(), open_judge, tmp_path / "trial")
    assert (record.failure, record.failed_in) == ("", None)
    user = wanted.subject.account.user
    verbs = {part: {each.verb for each in needed(record.requests.get(part, ()), user)} for part in Part}
    assert verbs[Part.PACKAGE] == {"get", "create", "patch"}
    assert verbs[Part.REMOVAL] == {"get", "delete"}
    assert verbs[Part.HOOKS] == set()
    assert record.refusals(user) == []


NEVER_READY = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}, annotations: {wharfinger.dev/never-scheduled: "true"}}
    spec: {containers: [{name: c, image: i}]}
"""


@pytest.mark.slow
async def test_a_package_that_is_applied_and_never_ready_is_upgraded_and_removed(tmp_path: Path) -> None:
    folder = chart(tmp_path / "web", "web", "1.0.0", {"templates/stuck.yaml": NEVER_READY})
    wanted = replace(plan(folder, namespace="shop"), limit_s=15.0)
    record = await run_trial(wanted, None, programs(), open_judge, tmp_path / "trial")
    assert (record.failure, record.failed_in) == ("", None)
    assert "stuck" in record.unready
    verbs = {each.verb for each in needed(record.requests[Part.REMOVAL], wanted.subject.account.user)}
    assert verbs == {"get", "delete"}


@pytest.mark.slow
async def test_a_package_that_is_not_applied_in_time_is_an_error(tmp_path: Path) -> None:
    wanted = replace(plan(chart(tmp_path / "web", "web", "1.0.0"), namespace="shop"), limit_s=0.0)
    with pytest.raises(ExceptionGroup) as caught:
        await run_trial(wanted, None, programs(), open_judge, tmp_path / "trial")
    assert caught.group_contains(TrialError, match="is not ready in version")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verbs", "part", "missing"),
    [(("get", "patch"), Part.PACKAGE, "create"), (("get", "create", "patch"), Part.REMOVAL, "delete")],
)
async def test_a_trial_with_too_few_rights_ends_with_the_missing_rule(
    tmp_path: Path, verbs: tuple[str, ...], part: Part, missing: str
) -> None:
    wanted = plan(chart(tmp_path / "web", "web", "1.0.0"), namespace="shop")
    record: Record = await run_trial(wanted, rights(*verbs), programs(), open_judge, tmp_path / "trial")
    assert record.failed_in is part
    assert f"verbs: [{missing}]" in record.failure
    assert {request.refused().verb for _, request in record.refusals(wanted.subject.account.user)} == {missing}
