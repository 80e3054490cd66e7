"""Helpers that create packages which require each other, and whose hooks note when the packages are deleted."""

from pathlib import Path

from tests.packages.support.charts import write
from tests.runtime.support.world import World
from tests.runtime.tasks.test_hook_runs import bash
from wharfinger.formats.json.value import JsonObject, find_str


def package(folder: Path, name: str, needs: str = "", *, version: str = "1.0.0", config: str = "") -> Path:
    """Write a package that requires the Modules in ``needs``. Its delete hooks note ``going-NAME`` and then ``gone-NAME``.

    A package named ``shop`` is for an Application, and all others are for Modules. ``config`` contains commands that the hooks
    run first, also when they are run with ``--config``.
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
    """Push a package that `package` has written."""
    name, _, version = place.name.rpartition("-")
    await world.push_folder(place, name, version)


async def modules(world: World, folder: Path, **needs: str) -> None:
    """Install Modules one after the other, and wait for each until it is Ready. A keyword is the name of a Module, and its
    value states the Modules that it requires.
    """
    for name, what in needs.items():
        await push(world, package(folder, name, what))
        await world.create_module(name)
        await world.until_state("", name, "Ready")


async def application(world: World, folder: Path, name: str, needs: str) -> None:
    """Install an Application in ``prod`` from a package with the same name, and wait until it is Ready."""
    await push(world, package(folder, name, needs))
    await world.create("prod", name, package=name)
    await world.until_state("prod", name, "Ready")


def message(obj: JsonObject) -> str:
    return find_str(obj, "status", "summary", "message")


def went(folder: Path) -> list[str]:
    """Return the notes of the delete hooks."""
    path = folder / "notes"
    return path.read_text().split() if path.exists() else []
