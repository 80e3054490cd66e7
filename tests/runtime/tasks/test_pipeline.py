"""The sequence of tasks of each operation."""

import re
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import ROOT
from tests.runtime.support.notes import NO_TOOLS, Notes, instance, put
from wharfinger.packages.definition.definition import read_definition
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.tasks.pipeline import Pipeline


def pipeline() -> Pipeline:
    one = instance()
    put(one, desired={"version": "1.2.3"})
    return Pipeline(one, NO_TOOLS, Notes(), WorkScope("x"))


def test_each_operation_has_its_tasks() -> None:
    made = pipeline()
    assert [task.name for task in made.update()] == ["Download:1.2.3", "Install:1.2.3", "Load"]
    assert [task.name for task in made.reconciliation()] == [
        "Configure",
        "AwaitCRDs",
        "Startup",
        "EnsureWebhooks",
        "Run",
        "WaitReady",
    ]
    assert [task.name for task in made.crds()] == ["EnsureCRDs"]
    assert made.suspend() == ()
    assert [task.name for task in made.vote()] == ["EnabledScript"]
    assert [task.name for task in made.disable(keep=True)] == ["Disable"]
    assert made.disable(keep=True)[0].work is not made.disable(keep=False)[0].work
    assert [task.name for task in made.removal()] == ["Uninstall", "Purge", "Undeploy"]


def test_the_documentation_lists_tasks_in_the_order_of_the_code() -> None:
    text = (ROOT / "docs" / "life-of-a-package.md").read_text()
    names = [task.name for task in pipeline().reconciliation()]
    table = text.partition("6. ")[2].partition("7. ")[0]
    assert re.findall(r"^   \| (\w+) \|", table, re.MULTILINE) == ["task", *names]
    assert f"| Reconciliation | {', '.join(names)} |" in text


def test_a_loaded_version_is_disabled_before_an_update(tmp_path: Path) -> None:
    made = pipeline()
    definition = read_definition(chart(tmp_path / "web"), name="web", version="1.2.3")
    put(made.instance, files={"definition": definition})
    assert [task.name for task in made.update()] == ["Disable", "Download:1.2.3", "Install:1.2.3", "Load"]
    assert [task.name for task in made.suspend()] == ["Suspend"]


@pytest.mark.parametrize("number", [1, 2])
async def test_tasks_out_of_order_are_a_bug_that_names_the_package(number: int) -> None:
    with pytest.raises(AssertionError, match="prod/shop"):
        await pipeline().update()[number].execute()
    with pytest.raises(AssertionError, match="prod/shop"):
        await pipeline().reconciliation()[4].execute()
