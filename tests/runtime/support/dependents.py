"""Packages that need each other, and that say when they go."""

from pathlib import Path

from tests.packages.support.charts import write
from tests.runtime.support.world import World
from tests.runtime.tasks.test_hook_runs import bash
from wharfinger.formats.json.value import JsonObject, find_str


def package(folder: Path, name: str, needs: str = "", *, version: str = "1.0.0", config: str = "") -> Path:
    """A package, with modules it ``needs``; its hooks note when it is ``going``, and when it is ``gone``.

    One named ``shop`` is for an Application, all others are for Modules.

    ``config`` is what its hooks do first when they are asked what they want.
    """
    said = f"requirements: {{modules: {{{needs}}}}}\n" if needs else ""
    kind = "Application" if name == "shop" else "Module"
    place = folder / f"{name}-{version}"
    files = {
        "package.yaml": f"apiVersion: v1\ntype: {kind}\nname: {name}\nversion: {version}\n{said}",
        "openapi/settings.yaml": "type: object\nproperties: {mode: {type: string, default: none}}\n",
        "templates/out.yaml": "apiVersion: v1\nkind: ConfigMap\n"
        f'metadata: {{name: of-{name}}}\ndata: {{version: "{version}", mode: {{{{ .Values.mode | quote }}}}}}\n',
    }
    write(place, files)
    for word, binding in (("going", "beforeDeleteHelm"), ("gone", "afterDeleteHelm")):
        body = f'echo {word}-{name} >>"{folder}/notes"\n'
        text = bash(f"{{configVersion: v1, {binding}: 1}}", body)
        write(place, {f"hooks/{word}.sh": text.replace("set -eu\n", f"set -eu\n{config}\n", 1)})
        (place / "hooks" / f"{word}.sh").chmod(0o755)
    return place


def mandatory(name: str, constraint: str = ">=1.0") -> str:
    return f"mandatory: [{{name: {name}, constraint: '{constraint}'}}]"


def any_of(*names: str) -> str:
    members = ", ".join(f"{{name: {name}}}" for name in names)
    return f"anyOf: [{{name: either, modules: [{members}]}}]"


async def push(world: World, place: Path) -> None:
    """Push what `package` has made."""
    name, _, version = place.name.rpartition("-")
    await world.push_folder(place, name, version)


async def modules(world: World, folder: Path, **needs: str) -> None:
    """Modules by name, each with what it needs; Ready in this order."""
    for name, what in needs.items():
        await push(world, package(folder, name, what))
        await world.create_module(name)
        await world.until_state("", name, "Ready")


async def application(world: World, folder: Path, name: str, needs: str) -> None:
    """An Application in ``prod``, of a package named like itself, Ready."""
    await push(world, package(folder, name, needs))
    await world.create("prod", name, package=name)
    await world.until_state("prod", name, "Ready")


def message(obj: JsonObject) -> str:
    return find_str(obj, "status", "summary", "message")


def went(folder: Path) -> list[str]:
    """What the delete hooks have noted."""
    path = folder / "notes"
    return path.read_text().split() if path.exists() else []
