"""The page of a package in the dashboard."""

from dataclasses import replace

from tests.debug.support.dashboard_samples import ONE
from tests.debug.support.samples import BUSY, WHY_READY
from wharfinger.debug.dashboard.blocks import Block, Cell, Facts, Folded, Items, Page, Preformatted, Table, Tone
from wharfinger.debug.dashboard.package_page import missing_page, package_page


def blocks(page: Page, key: str) -> tuple[Block, ...]:
    return next(section.blocks for section in page.sections if section.key == key)


def texts(block: Block) -> list[list[str]]:
    assert isinstance(block, Table)
    return [[cell.text for cell in row] for row in block.rows]


def test_a_package_page_has_all_its_sections() -> None:
    page = package_page(ONE, None)
    assert [section.key for section in page.sections] == [
        "state",
        "conditions",
        "resources",
        "drift",
        "hooks",
        "queue",
        "history",
        "events",
        "log",
        "graph",
    ]
    assert (page.title, page.address, page.announcement) == (
        "prod.shop",
        "package?name=prod.shop",
        "prod.shop: Failed",
    )
    assert texts(blocks(page, "conditions")[0]) == [["Loaded", "True", "Loaded", "", "2026-05-17T12:30:45Z"]]
    assert texts(blocks(page, "resources")[0]) == [
        ["Deployment.apps prod/shop", "InProgress", "Done", "1 of 2 available"],
        ["ConfigMap prod/shop", "Absent", "Error", "no quota\x1b[31m"],
    ]
    assert texts(blocks(page, "history")[0])[0][:4] == [
        "2026-11-21T04:03:02Z",
        "status",
        "Loaded False",
        "Pending → Failed",
    ]


def test_causes_and_remedies_are_shown() -> None:
    _, causes, todo = blocks(package_page(ONE, None), "state")
    assert [row[0] for row in texts(causes)] == ["prod.shop", "ingress"]
    assert isinstance(todo, Items)
    assert [cell.text for cell in todo.texts] == [
        "What to do: look at the hook's lines in the daemon's log",
        "Also: prod.shop needs metrics",
    ]
    for explanation in (WHY_READY, None):
        ready = replace(ONE, description=replace(ONE.description, explanation=explanation))
        assert len(blocks(package_page(ready, None), "state")) == 1


def test_drift_is_shown_with_the_manager_that_wrote_it() -> None:
    drift = blocks(package_page(ONE, None), "drift")[0]
    assert isinstance(drift, Items)
    assert drift.texts == (Cell("Deployment.apps prod/shop: /spec/replicas by kubectl", Tone.WARNING),)
    busy = replace(ONE, description=replace(ONE.description, package=BUSY))
    both = blocks(package_page(busy, None), "drift")[0]
    assert isinstance(both, Items)
    assert [cell.tone for cell in both.texts] == [Tone.WARNING, Tone.BAD]


def test_hooks_are_shown_with_their_output() -> None:
    hooks = (replace(ONE.description.package.hooks[0], name="hooks/a.sh"),)
    changed = replace(ONE, description=replace(ONE.description, package=replace(ONE.description.package, hooks=hooks)))
    table, output = blocks(package_page(changed, None), "hooks")
    assert texts(table)[0][:3] == ["hooks/a.sh", "3", "never"]
    assert isinstance(output, Folded)
    assert output.summary == "Output of hooks/a.sh (1 line)"
    assert output.lines.lines == ("2026-05-17T12:30:45.123456Z WARNING a.sh: red \\x1b[31m",)


def test_missing_parts_are_shown_with_a_reason() -> None:
    bare = replace(
        ONE,
        log=None,
        description=replace(ONE.description, history=None, resources=(), events=(), events_problem="no answer"),
    )
    page = package_page(bare, None)
    log = blocks(page, "log")[0]
    assert isinstance(log, Preformatted)
    assert log.lines == ()
    events = blocks(page, "events")[0]
    assert isinstance(events, Table)
    assert events.when_empty == "no answer"
    state = blocks(missing_page("a.b", "it is gone"), "state")[0]
    assert state == Items((Cell("it is gone", Tone.BAD),), "")


def test_facts_without_a_value_are_omitted() -> None:
    facts = blocks(package_page(ONE, None), "state")[0]
    assert isinstance(facts, Facts)
    assert "Suspended" not in dict(facts.pairs)
    busy = blocks(package_page(replace(ONE, description=replace(ONE.description, package=BUSY)), None), "state")[0]
    assert isinstance(busy, Facts)
    assert {"Suspended", "Maintenance", "Warning", "URLs"} <= set(dict(busy.pairs))
