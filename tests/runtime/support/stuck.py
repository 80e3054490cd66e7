"""Packages that get stuck, in few words: how they are made, and how it is known that they are.

In the worlds of `tests/runtime/test_why.py` a task that failed waits a minute for its next attempt, so each is seen after its
first.
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
    """``subject`` is asked about once it ``holds`` of it, and ``is_so`` of another package that has to be as wanted, too."""

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
    """A package.yaml package that needs Modules, each ``name constraint``; ``more`` goes into its requirements."""
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
    """An Application in ``prod`` of a package of its own."""
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
    """A Module of a package of its own."""
    await push(world, name, *needs, kind="Module", hooks=hooks, files=files, top=top)
    await world.create_module(name, spec=spec)


def says(reason: str) -> Holds:
    """A condition has this reason."""
    return lambda package: any(each.reason == reason for each in package.conditions)


def backs_off(text: str) -> Holds:
    """A task of it failed with this in its error, and waits for its next attempt."""
    return lambda package: any(task.retry_in_s is not None and text in task.error for task in package.queue.tasks)


def parked(reason: str) -> Holds:
    """A task of it failed for good for this reason."""
    return lambda package: any(task.parked and task.error.startswith(reason) for task in package.queue.tasks)


def runs(task: str) -> Holds:
    """A task of it is at work."""
    return lambda package: any(each.running and each.name == task for each in package.queue.tasks)


def in_hook(package: PackageSnapshot) -> bool:
    """A hook of Helm's steps is at work."""
    return any(step.startswith("beforeHelm") for each in package.operations for step in each.in_flight)


def said(text: str) -> Holds:
    """Its summary names this."""
    return lambda package: text in package.message


def state(wanted: str) -> Holds:
    """Its summary's state."""
    return lambda package: package.state == wanted and not package.queue.tasks


async def until_known(world: World, name: str, holds: Holds) -> None:
    """Wait until a package is as wanted; the error shows how it was last."""
    found: PackageSnapshot | None = None
    inspector = RuntimeInspector("here", world.runtime.now(), world.runtime)
    with trio.move_on_after(PATIENCE_S):
        while (found := await inspector.package(name)) is None or not holds(found):
            await trio.testing.wait_all_tasks_blocked(0.01)
        return
    raise AssertionError(f"{name} did not become as wanted; last: {found}")


async def come_about(world: World, situation: Situation) -> None:
    """Bring a situation about, and return when it is there."""
    await situation.begin(world)
    if situation.other:
        await until_known(world, situation.other, situation.is_so)
    await until_known(world, situation.subject, situation.holds)


def left_alone(package: PackageSnapshot) -> bool:
    """It is in maintenance, and ready again."""
    return bool(package.maintenance) and state("Ready")(package)
