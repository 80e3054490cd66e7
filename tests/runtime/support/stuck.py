"""Functions that create packages which get stuck, and functions that wait until a package is stuck.

In `tests/runtime/test_why.py`, a failed task waits a minute for its next attempt, so each package is examined between the first
and the second attempt of its task.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio
import trio.testing

from tests.packages.support.charts import write
from tests.runtime.support.world import World
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.inspection.snapshots import RuntimeInspector
from wharfinger.runtime.inspector import PackageSnapshot

ON_STARTUP = "{configVersion: v1, onStartup: 1}"
SLEEPING = "exec sleep 1000"
PATIENCE_S = 300
TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: of-{name}}}\n"
SETTINGS = "type: object\nproperties: {size: {type: integer, minimum: 1}}\n"
NEVER_READY = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: main, annotations: {wharfinger.dev/never-ready: "true"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: main}}
  template:
    metadata: {labels: {app: main}}
    spec: {containers: [{name: main, image: example/main}]}
"""

Begin = Callable[[World], Awaitable[None]]
Holds = Callable[[PackageSnapshot], bool]


@dataclass(frozen=True, slots=True)
class Situation:
    """A situation that `wharfinger why` has to explain.

    ``begin`` creates the situation. The test waits until ``is_so`` is true for the package ``other`` (if there is one), and then
    until ``holds`` is true for the package ``subject``. After that, it asks `wharfinger why` about ``subject``.
    """

    name: str
    subject: str
    begin: Begin
    holds: Holds
    other: str = ""
    is_so: Holds = bool


async def push(
    world: World,
    name: str,
    *needs: str,
    kind: str = "Application",
    more: str = "",
    top: str = "",
    hooks: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    version: str = "1.0.0",
) -> None:
    """Push a package with a ``package.yaml`` that requires the Modules ``needs``, each given as ``name constraint``.

    ``more`` is text that is added to the requirements, and ``top`` is text that is added to the top level of the file.
    """
    wanted = ", ".join("{{name: {}, constraint: '{}'}}".format(*need.split(" ", 1)) for need in needs)
    text = (
        f"apiVersion: v1\ntype: {kind}\nname: {name}\nversion: {version}\n{top}"
        f"requirements: {{modules: {{mandatory: [{wanted}]{more}}}}}\n"
    )
    folder = write(
        world.folder / "made" / f"{name}-{version}",
        {
            "package.yaml": text,
            "openapi/settings.yaml": SETTINGS,
            "templates/out.yaml": TEMPLATE.format(name=name),
            **{f"hooks/{hook}": body for hook, body in (hooks or {}).items()},
            **(files or {}),
        },
    )
    for script in (*(folder / "hooks").glob("*"), *folder.glob("enabled")):
        script.chmod(0o755)
    await world.push_folder(folder, name, version)


async def app(world: World, name: str, *needs: str, more: str = "", spec: JsonObject | None = None) -> None:
    """Push a package, and create an Application of the same name in the namespace ``prod``."""
    await push(world, name, *needs, more=more)
    await world.create("prod", name, package=name, more=spec)


async def mod(
    world: World,
    name: str,
    *needs: str,
    hooks: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    spec: JsonObject | None = None,
    top: str = "",
) -> None:
    """Push a package, and create a Module of the same name."""
    await push(world, name, *needs, kind="Module", hooks=hooks, files=files, top=top)
    await world.create_module(name, spec=spec)


def says(reason: str) -> Holds:
    """Return a check that at least one condition has this reason."""
    return lambda package: any(each.reason == reason for each in package.conditions)


def backs_off(text: str) -> Holds:
    """Return a check that a task failed with this text in its error, and waits for its next attempt."""
    return lambda package: any(task.retry_in_s is not None and text in task.error for task in package.queue.tasks)


def parked(reason: str) -> Holds:
    """Return a check that a task failed permanently for this reason."""
    return lambda package: any(task.parked and task.error.startswith(reason) for task in package.queue.tasks)


def runs(task: str) -> Holds:
    """Return a check that this task is running."""
    return lambda package: any(each.running and each.name == task for each in package.queue.tasks)


def in_hook(package: PackageSnapshot) -> bool:
    """Return whether a beforeHelm hook is running."""
    return any(step.startswith("beforeHelm") for each in package.operations for step in each.in_flight)


def said(text: str) -> Holds:
    """Return a check that the summary contains this text."""
    return lambda package: text in package.message


def state(wanted: str) -> Holds:
    """Return a check that the summary has this state, and that the queue is empty."""
    return lambda package: package.state == wanted and not package.queue.tasks


async def until_known(world: World, name: str, holds: Holds) -> None:
    """Wait until the check holds for a package. If that takes too long, the AssertionError shows the package's last state."""
    found: PackageSnapshot | None = None
    inspector = RuntimeInspector("here", world.runtime.now(), world.runtime)
    with trio.move_on_after(PATIENCE_S):
        while (found := await inspector.package(name)) is None or not holds(found):
            await trio.testing.wait_all_tasks_blocked(0.01)
        return
    raise AssertionError(f"{name} did not become as wanted; last: {found}")


async def come_about(world: World, situation: Situation) -> None:
    """Create a situation, and wait until its checks hold."""
    await situation.begin(world)
    if situation.other:
        await until_known(world, situation.other, situation.is_so)
    await until_known(world, situation.subject, situation.holds)


def left_alone(package: PackageSnapshot) -> bool:
    """Return whether the package is in maintenance, and ready again."""
    return bool(package.maintenance) and state("Ready")(package)
