"""The contract of every Inspector (`wharfinger.runtime.inspector`): the daemon's, the socket client and the canned one."""

from dataclasses import FrozenInstanceError, astuple
from itertools import pairwise

import pytest
import trio

from tests.exposition import parse
from wharfinger.runtime.inspector import (
    HookSnapshot,
    Inspector,
    InvalidSettings,
    PackageSnapshot,
    QueueSnapshot,
    TaskSnapshot,
    UnknownSettings,
    ValidSettings,
)
from wharfinger.runtime.scheduler_details import NodeSnapshot

UNKNOWN_NAMES = ("", "no.such", "../../etc/passwd", "a b&name=c", "%", "ü✓", "x" * 1000)


async def check_inspector(inspector: Inspector) -> None:
    """Check the whole contract of an Inspector. The inspected daemon must not gain or lose packages meanwhile."""
    await check_packages(inspector)
    await check_queues(inspector)
    await check_scheduler(inspector)
    await check_explanations(inspector)
    await check_rendering(inspector)
    await check_validation(inspector)
    await check_daemon(inspector)
    await check_statistics(inspector)
    await check_memory(inspector)
    await check_details(inspector)
    await check_metrics(inspector)
    await check_many_at_once(inspector)


async def check_packages(inspector: Inspector) -> None:
    """Check that packages are sorted and can be found by name, and that the answer for any other name is None."""
    packages = await inspector.packages()
    names = [package.name for package in packages]
    assert names == sorted(set(names))
    for package in packages:
        check_package(package)
        found = await inspector.package(package.name)
        assert found is not None
        assert (found.name, found.kind, found.namespace) == (package.name, package.kind, package.namespace)
    for name in set(UNKNOWN_NAMES) - set(names):
        assert await inspector.package(name) is None


def check_package(package: PackageSnapshot) -> None:
    """Check that one package is consistent."""
    assert package.kind in {"Application", "Module"}
    assert bool(package.namespace) == (package.kind == "Application")
    assert package.name.startswith(f"{package.namespace}.") or package.kind == "Module"
    assert package.release_revision >= 0
    assert package.queue.name == package.name
    check_queue(package.queue)
    for condition in package.conditions:
        assert condition.status in {"True", "False", "Unknown"}
        assert condition.type
        assert condition.last_transition.tzinfo is not None
    for hook in package.hooks:
        check_hook(hook)
    check_work(package)
    assert len({hook.name for hook in package.hooks}) == len(package.hooks)
    for field in ("state", "settings"):
        with pytest.raises(FrozenInstanceError):
            setattr(package, field, None)


def check_work(package: PackageSnapshot) -> None:
    """Check the work on a package: each operation occurs once, each of its steps is either completed, in flight or interrupted,
    monitors belong to existing hooks, and progress is reported only while objects remain.
    """
    assert len({operation.operation for operation in package.operations}) == len(package.operations)
    for operation in package.operations:
        steps = [*operation.completed, *operation.in_flight, *operation.interrupted]
        assert len(set(steps)) == len(steps)
    assert {monitor.hook for monitor in package.monitors} <= {hook.name for hook in package.hooks}
    assert package.progress is None or package.progress.remaining > 0


def check_hook(hook: HookSnapshot) -> None:
    """Check that a hook that never ran has not failed."""
    assert hook.name
    assert hook.runs >= 0
    assert hook.last_run is None or hook.last_run.tzinfo is not None
    if hook.runs == 0:
        assert (hook.last_run, hook.last_error) == (None, "")


async def check_scheduler(inspector: Inspector) -> None:
    """Check that the scheduler's nodes are sorted and consistent."""
    nodes = await inspector.scheduler()
    names = [node.name for node in nodes]
    assert names == sorted(set(names))
    for node in nodes:
        check_node(node)


def check_node(node: NodeSnapshot) -> None:
    """Check that one node is consistent. For example, a node is scheduled only if its package is on."""
    assert node.name
    assert node.state in {"idle", "scheduled", "active"}
    assert node.decision in {"Enable", "Disable", "Forbid", "Undefined"}
    assert node.state != "scheduled" or node.decision == "Enable"
    dependencies = [dependency.name for dependency in node.dependencies]
    assert dependencies == sorted(set(dependencies))


async def check_explanations(inspector: Inspector) -> None:
    """Check that exactly the existing packages have an explanation.

    An explanation must begin with the package itself, and have a remedy if the package is not ready.
    """
    names = {package.name for package in await inspector.packages()}
    for name in names:
        explanation = await inspector.why(name)
        assert explanation is not None
        assert explanation.name == name
        assert explanation.ready == (not explanation.causes) == (not explanation.remedy)
        assert all(cause.subject == name for cause in explanation.causes[:1])
        subjects = [cause.subject for cause in explanation.causes]
        assert len(set(subjects)) == len(subjects)
        assert all(cause.state for cause in explanation.causes)
        assert all(cause.since is None or cause.since.tzinfo is not None for cause in explanation.causes)
    for name in set(UNKNOWN_NAMES) - names:
        assert await inspector.why(name) is None


async def check_rendering(inspector: Inspector) -> None:
    """Check that exactly the existing packages have a rendering: a manifest, a problem, or the answer that the package has no
    chart.
    """
    names = {package.name for package in await inspector.packages()}
    for name in names:
        rendered = await inspector.render(name)
        assert rendered is not None
        assert rendered.has_chart or not (rendered.manifest or rendered.problem)
        assert not (rendered.manifest and rendered.problem)
        assert "manifest" not in repr(rendered)
    for name in {*UNKNOWN_NAMES, ".", ".."} - names:
        assert await inspector.render(name) is None


async def check_validation(inspector: Inspector) -> None:
    """Check that settings get an answer if and only if the package exists, and that the answer names the problems of invalid
    ones.
    """
    names = {package.name for package in await inspector.packages()}
    for name in names:
        for version in (0, 1):
            match await inspector.validate(name, {"a": {"b": [1, None, "ü"]}}, version):
                case InvalidSettings(_, problems, _):
                    assert problems
                    assert all(problem.message for problem in problems)
                case UnknownSettings(why):
                    assert why
                case answer:
                    assert isinstance(answer, ValidSettings)
    for name in {*UNKNOWN_NAMES, ".", ".."} - names:
        assert await inspector.validate(name, {}) is None


async def check_queues(inspector: Inspector) -> None:
    """Check that queues are sorted, and that every package has a queue."""
    queues = await inspector.queues()
    names = [queue.name for queue in queues]
    assert names == sorted(set(names))
    for queue in queues:
        check_queue(queue)
    assert {package.name for package in await inspector.packages()} <= set(names)


def check_queue(queue: QueueSnapshot) -> None:
    """Check that the tasks of a queue are numbered from its head, and that each task is consistent."""
    assert [task.index for task in queue.tasks] == list(range(1, len(queue.tasks) + 1))
    for task in queue.tasks:
        check_task(task)


def check_task(task: TaskSnapshot) -> None:
    """Check that one task is consistent. For example, a task that waits for another attempt is not running, and has an error."""
    assert task.name
    assert task.enqueued_s_ago >= 0
    assert task.attempt >= 0
    if task.retry_in_s is not None:
        assert not task.running
        assert task.error
    assert task.running or not task.waits_for
    if task.parked:
        assert not task.running
        assert task.retry_in_s is None
        assert task.cause


async def check_daemon(inspector: Inspector) -> None:
    """Check that the daemon reports the number of its packages, and that it is not ready while it drains."""
    daemon = await inspector.daemon()
    assert daemon.packages == len(await inspector.packages())
    assert daemon.version
    assert daemon.pid > 0
    assert daemon.started.tzinfo is not None
    assert not (daemon.ready and daemon.draining)


async def check_statistics(inspector: Inspector) -> None:
    """Check that a ready daemon has statistics, that no number is negative, and that no part exceeds its total."""
    found = await inspector.statistics()
    if found is None:
        assert not (await inspector.daemon()).ready
        return
    tasks, monitors = found.tasks, found.monitors
    assert min(astuple(tasks)) >= 0
    assert min(astuple(monitors)) >= 0
    assert tasks.running + tasks.backing_off + tasks.parked <= tasks.tasks
    assert tasks.bugs <= tasks.failures
    assert monitors.listed <= monitors.monitors
    kinds = [each.kind for each in found.slots]
    assert kinds[0] == "work"
    assert len(set(kinds)) == len(kinds)
    for each in found.slots:
        assert 0 <= each.used <= each.limit
        assert each.waiting >= 0
    assert list(found.trying_crds) == sorted(set(found.trying_crds))


async def check_memory(inspector: Inspector) -> None:
    """Check that the daemon reports its memory use, and names each program and each part of the memory once."""
    found = await inspector.memory()
    assert found.own_bytes > 0
    assert found.peak_bytes > 0
    for each in (found.programs, found.parts):
        names = [one.part for one in each]
        assert len(names) == len(set(names))
        assert all(one.items >= 0 and (one.bytes is None or one.bytes >= 0) for one in each)
    assert all(one.items and one.bytes is not None for one in found.programs)


async def check_metrics(inspector: Inspector) -> None:
    """Check that a scraper can read all metrics together: metrics of hooks must not have the names of the daemon's metrics."""
    own, hooks = await inspector.metrics(), await inspector.hook_metrics()
    assert {name.split("_")[0] for name in parse(own)} == {"wharfinger"}
    assert set(parse(own + hooks)) == {*parse(own), *parse(hooks)}
    assert not parse(own).keys() & parse(hooks).keys()


async def check_many_at_once(inspector: Inspector) -> None:
    """Check that several requests can be made at the same time."""
    answers: list[list[str]] = []

    async def ask() -> None:
        answers.append([package.name for package in await inspector.packages()])

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(ask)
    assert len(answers) == 10
    assert all(answer == answers[0] for answer in answers)


HEALTHS = {"Current", "InProgress", "Failed", "Absent", "Unknown"}
CHANGES = {"create", "change", "delete", "keep", "unknown"}


async def check_details(inspector: Inspector) -> None:
    """Check the tasks of the daemon, and the details of each package, such as its objects, its events and its next apply."""
    for name in UNKNOWN_NAMES:
        assert await inspector.resources(name) is None
        assert await inspector.events(name) is None
        assert await inspector.logs(name) is None
        assert await inspector.difference(name) is None
        assert await inspector.hook_snapshots(name) is None
    for package in await inspector.packages():
        await check_package_details(inspector, package)
    tasks = await inspector.tasks()
    assert tasks
    assert tasks[0].depth == 0
    for before, task in pairwise(tasks):
        assert task.name
        assert 0 < task.depth <= before.depth + 1


async def check_package_details(inspector: Inspector, package: PackageSnapshot) -> None:
    resources = await inspector.resources(package.name)
    assert resources is not None
    for each in resources:
        assert each.package == package.name
        assert each.health in HEALTHS
        assert all("=" in label for label in each.labels)
    log = await inspector.logs(package.name)
    if log is not None:
        numbers = [line.number for line in log.lines]
        assert numbers == sorted(set(numbers))
        assert log.package == package.name
        rest = await inspector.logs(package.name, numbers[-1] if numbers else 0)
        assert rest is not None
        assert not rest.lines
    hooks = await inspector.hook_snapshots(package.name)
    assert hooks is not None
    assert {each.hook for each in hooks} <= {hook.name for hook in package.hooks}
    difference = await inspector.difference(package.name)
    assert difference is not None
    assert difference.package == package.name
    assert not (difference.problem and difference.changes)
    assert {change.change for change in difference.changes} <= CHANGES
