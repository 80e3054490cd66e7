"""Rounds that are cut short: by a restart, by what is wanted of the Module ``global`` itself, by hooks that fail."""

from pathlib import Path

import trio

from tests.packages.charts import write
from tests.runtime.converging import Notes, add, hook, write_hooks
from tests.runtime.test_bring_tasks import has_reason
from tests.runtime.world import World, one_error, open_ground, open_world
from wharfinger.formats.json_value import JsonObject, find_str
from wharfinger.runtime.identity import SYSTEM_NAMESPACE

MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: of-NAME}
data: {colour: '{{ .Values.global.colour }}'}
"""


def config(*bindings: str) -> str:
    return f'{{"configVersion": "v1", {", ".join(bindings)}}}'


def global_hooks(folder: Path, package: str = "global-hooks", **hooks: str) -> None:
    write_hooks(folder / "modules" / package, {f"hooks/{name}.sh": text for name, text in hooks.items()})


def a_module(folder: Path, name: str, *bindings: str) -> None:
    files = {"templates/map.yaml": MAP.replace("NAME", name), "openapi/values.yaml": "type: object\n"}
    own = hook(folder, name, config(*bindings or ('"beforeHelm": 1', '"afterDeleteHelm": 1')))
    write_hooks(folder / "modules" / name, files | {"hooks/own.sh": own})


async def begin(world: World, *names: str, **settings: JsonObject) -> Notes:
    await world.local_repository(world.folder / "modules")
    spec: JsonObject = {"settings": settings.get("settings", {})}
    await world.create_module("global", package="global-hooks", version="0.0.0", spec=spec)
    for name in names:
        await world.create_module(name, version="0.0.0")
    return Notes(world, world.folder / "notes")


async def test_after_a_restart_there_is_one_round(tmp_path: Path) -> None:
    """And what only a global hook has on is not taken away until it has said so again."""
    flag = add("/gammaEnabled", "true")
    global_hooks(tmp_path, all=hook(tmp_path, "all", config('"beforeAll": 1', '"afterAll": 1'), {"beforeAll": flag}))
    a_module(tmp_path, "alpha")
    a_module(tmp_path, "gamma")
    with one_error():
        async with open_ground(tmp_path) as ground:
            async with ground.open_world() as world:
                notes = await begin(world, "alpha")
                await notes.tell("all beforeAll -", "alpha beforeHelm -", "all afterAll -")
                await world.create_module("gamma", version="0.0.0")
                await world.annotate("", "gamma", "wharfinger.dev/enabled-by-default", "false")
                await world.until_state("", "gamma", "Ready")
                await notes.rest()
                notes.path.unlink()
            async with ground.open_world() as world:
                notes = Notes(world, tmp_path / "notes")
                await notes.until(4)
                await notes.rest()
                lines = notes.lines()
                assert sorted(lines) == sorted(
                    ("all beforeAll -", "alpha beforeHelm -", "gamma beforeHelm -", "all afterAll -")
                )
                assert (lines[0], lines[-1]) == ("all beforeAll -", "all afterAll -")
