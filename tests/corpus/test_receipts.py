"""Receipts of the charts in the corpus. A receipt contains the rights that a package needs.

Each right in a receipt is necessary, and together they are sufficient.
"""

import random
from pathlib import Path

import pytest

from tests.corpus.charts import NAMES, unpack
from tests.runtime.receipts.support import open_judge, programs
from tests.scale import scaled
from wharfinger.runtime.receipts.receipt import make_receipt
from wharfinger.runtime.receipts.rights import grown, single_rules, without
from wharfinger.runtime.receipts.subject import next_version, read_subject
from wharfinger.runtime.receipts.trial import Plan, run_trial

UNREADY = {"admission": "have no addresses with port name"}
"""Charts that cannot become ready, each with the reason: the pods behind its APIService are not in the chart."""
RULES = scaled(1000, 1)
"""The number of a chart's rules that are removed, each in a trial of its own."""
LEASE = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: planted}\nspec: {holderIdentity: x}\n"
LIMIT_S = 300.0
UNREADY_S = 30.0
"""The limit for a chart that cannot become ready."""


def plan_of_chart(name: str, folder: Path, *, planted: bool = False) -> Plan:
    """Return the plan for a chart of the corpus. Its first version is installed, and then upgraded to the second one."""
    one, two = unpack(name, folder)
    if planted:
        (two.folder / "templates" / "planted.yaml").write_text(LEASE)
    old = read_subject(one.folder, "", one.values, as_module=True)
    subject = read_subject(two.folder, "", two.values, as_module=True)
    version = subject.version if subject.version != old.version else next_version(old.version)
    return Plan(subject, one.folder, (old.version, version), (), UNREADY_S if name in UNREADY else LIMIT_S)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
async def test_the_rights_of_each_chart_are_sufficient_and_necessary(tmp_path: Path, name: str) -> None:
    plan = plan_of_chart(name, tmp_path / "charts")
    receipt = await make_receipt(plan, programs(), open_judge, tmp_path / "receipt")
    assert UNREADY.get(name, "") in receipt.unready
    assert bool(receipt.unready) == (name in UNREADY)
    rules = single_rules(receipt.grant)
    assert rules
    chosen = random.Random(name).sample(rules, min(RULES, len(rules)))  # noqa: S311 - repeatable on purpose
    for number, (place, access) in enumerate(chosen):
        less = without(receipt.grant, place, access)
        record = await run_trial(plan, less, programs(), open_judge, tmp_path / f"without-{number}")
        assert record.failure, f"{access.rule()} is not needed"


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NAMES)
async def test_rights_that_are_planted_in_a_chart_are_found(tmp_path: Path, name: str) -> None:
    before = await make_receipt(plan_of_chart(name, tmp_path / "a"), programs(), open_judge, tmp_path / "before")
    planted = plan_of_chart(name, tmp_path / "b", planted=True)
    after = await make_receipt(planted, programs(), open_judge, tmp_path / "after")
    found = {each for accesses in grown(before.rights, after.rights).values() for each in accesses}
    assert {(each.resource, each.verb) for each in found} == {
        ("leases", verb) for verb in ("get", "create", "patch", "delete")
    }
