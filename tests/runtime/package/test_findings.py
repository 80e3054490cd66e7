"""Findings are facts about a package that tasks report. A task changes a package in no other way."""

import ast
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Final, get_args

import pytest

from wharfinger.runtime.package import events, facts, findings

ROOT: Final = Path(__file__).resolve().parents[3] / "wharfinger" / "runtime"
SHELL: Final = "package/instance.py"
LOOP: Final = "core/packages.py"
REPLAY: Final = "recording/package_machine.py"
"""The module that steps a recorded package again. It has no instance of the package."""
WRITERS: Final = frozenset({"wharfinger.runtime.package.transitions", "wharfinger.runtime.package.machine"})
"""The modules whose functions return a changed package."""


def calls(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the object and the name of each method call: ``self.instance`` and ``take`` for ``self.instance.take(event)``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield ast.unparse(node.func.value), node.func.attr


def steps_a_package(tree: ast.Module) -> bool:
    return any(called == "take" and owner.endswith("instance") for owner, called in calls(tree))


def writes_a_package(tree: ast.Module) -> bool:
    """Return whether a module changes packages: by an imported function, by a step of an instance, or by setting a state."""
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    named = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    sets_state = any(
        isinstance(node, ast.Attribute) and node.attr == "state" and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value).endswith("instance")
        for node in ast.walk(tree)
    )  # fmt: skip
    return bool((imported | named) & WRITERS) or steps_a_package(tree) or sets_state


def modules(room: str = "") -> dict[str, ast.Module]:
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in (ROOT / room).rglob("*.py")}


def test_no_task_writes_a_package() -> None:
    """A task returns its result, or reports it to its host, but never changes the package itself."""
    tasks = modules("tasks")
    assert len(tasks) > 20
    assert [name for name, tree in tasks.items() if writes_a_package(tree)] == []


def test_a_package_is_stepped_in_one_place() -> None:
    assert {name for name, tree in modules().items() if steps_a_package(tree)} == {LOOP}


def test_only_the_shell_and_the_replay_write_a_package() -> None:
    writers = {name for name, tree in modules().items() if writes_a_package(tree)}
    assert {name for name in writers if not name.startswith("package/")} == {LOOP, REPLAY}
    assert SHELL in writers


@pytest.mark.parametrize(
    "text",
    [
        "from wharfinger.runtime.package.transitions import applied",
        "from wharfinger.runtime.package import transitions",
        "from wharfinger.runtime.package.machine import step",
        "self.instance.take(event, around)",
        "instance.state = other",
    ],
)
def test_the_check_detects_writes(text: str) -> None:
    assert writes_a_package(ast.parse(text))
    assert not writes_a_package(ast.parse("host.emit(instance, Verified())\nsources.take(5)\nstate = instance.state"))


@pytest.mark.parametrize("finding", get_args(findings.Finding), ids=lambda finding: finding.__name__)
def test_a_finding_is_a_fact_and_no_report_outcome_or_request(finding: type) -> None:
    assert finding in get_args(facts.Fact)
    assert finding in get_args(events.Event)
    assert not issubclass(finding, events.ReportBase | events.OutcomeBase | events.RequestBase)
    assert is_dataclass(finding)


def test_every_class_of_the_module_is_a_finding_or_a_base() -> None:
    own = {each for each in vars(findings).values() if isinstance(each, type) and each.__module__ == findings.__name__}
    assert {each for each in own if not each.__name__.endswith("Base")} == set(get_args(findings.Finding))
