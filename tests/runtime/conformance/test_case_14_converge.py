"""Case 14: in which order hooks run (spec hook-protocol §5.2, §5.3, §6.4), in addon-operator's folders.

What counts is what hooks can observe: who is run before whom, why, and with which values. The peer's tasks in between have no
counterpart. Three global hooks, of which 01 and 03 watch something and are not run for what is there; the modules alpha, which is
on, beta, which the ConfigMap switches off, and gamma, which nobody has on.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.runtime.converging import NEVER, SETTINGS, Notes, add, hook, write_hooks
from tests.runtime.world import open_world
from wharfinger.formats.json_value import find_str
from wharfinger.runtime.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.modules_dir import open_modules_dir

MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: of-alpha}
data: {colour: '{{ .Values.global.colour }}', size: '{{ .Values.alpha.size }}', more: '{{ .Values.alpha.more | default "-" }}'}
"""
STARTED = (
    "02 onStartup grey",
    "03 onStartup grey",
    "01 onStartup grey",
    "02 beforeAll grey",
    "01 beforeAll grey",
    "alpha onStartup grey",
    "alpha alpha-maps:Synchronization grey",
    "alpha beforeHelm grey",
    "alpha afterHelm grey",
    "03 afterAll grey",
)


def watching(name: str, more: str = "") -> str:
    selector = f'"labelSelector": {{"matchLabels": {{"for": "{name}"}}}}'
    return f'"kubernetes": [{{"name": "{name}-maps", "kind": "ConfigMap", {selector}{more}}}]'


def ticking(name: str) -> str:
    return f'"schedule": [{{"name": "{name}-tick", "crontab": "{NEVER}"}}]'


def config(*bindings: str) -> str:
    return f'{{"configVersion": "v1", {", ".join(bindings)}}}'


def value_of(place: str) -> str:
    """What the object of the first event has in a place of its data."""
    return f'\\"$(jq -r .[0].object.data.{place} "$BINDING_CONTEXT_PATH")\\"'


def write_folders(folder: Path) -> None:
    quiet = ', "executeHookOnSynchronization": false'
    watched = {"01-maps": add("/global/colour", value_of("colour"))}
    one = hook(folder, "01", config('"onStartup": 20', '"beforeAll": 20', watching("01", quiet)), **watched)
    two = hook(
        folder,
        "02",
        config('"onStartup": 1', '"beforeAll": 10', ticking("02")),
        **{"02-tick": add("/gammaEnabled", '$(cat "$(dirname "$0")/../../gamma" 2>/dev/null || echo true)')},
    )
    three = hook(folder, "03", config('"onStartup": 10', '"afterAll": 10', watching("03", quiet), ticking("03")))
    write_hooks(folder / "global-hooks", {"hooks/hook01.sh": one, "hooks/hook02.sh": two, "hooks/hook03.sh": three})
    bindings = ('"onStartup": 1', '"beforeHelm": 1', '"afterHelm": 1', watching("alpha"), ticking("alpha"))
    patches = {
        "alpha-tick": add("/alpha/more", '\\"tick\\"'),
        "alpha-maps": f'[[ $(jq -r ".[0].type" "$BINDING_CONTEXT_PATH") == Event ]] && {add("/alpha/more", value_of("more"))} || true',
    }
    for name in ("beta", "gamma"):
        own = hook(folder, name, config('"beforeHelm": 1', '"afterDeleteHelm": 1'))
        write_hooks(
            folder / "modules" / f"200-{name}", {"hooks/hook01.sh": own, "openapi/values.yaml": "type: object\n"}
        )
    write_hooks(
        folder / "modules",
        {
            "values.yaml": "global: {colour: grey}\nalpha: {size: 1}\nalphaEnabled: true\nbetaEnabled: true\n",
            "100-alpha/hooks/hook01.sh": hook(folder, "alpha", config(*bindings), **patches),
            "100-alpha/templates/map.yaml": MAP,
        },
    )


@asynccontextmanager
async def converged(folder: Path) -> AsyncIterator[Notes]:
    """Everything is installed and at rest, and that was as expected."""
    write_folders(folder)
    async with open_world(folder) as world:
        notes = Notes(world, folder / "notes")
        await notes.configure(betaEnabled="false")
        async with open_modules_dir(
            world.client,
            [folder / "modules"],
            global_hooks=folder / "global-hooks",
            config_map=SETTINGS,
            rescan_s=60,
        ):
            await notes.tell(*STARTED)
            yield notes


async def of_alpha(notes: Notes, key: str) -> str:
    return find_str(await notes.world.config_map(SYSTEM_NAMESPACE, "of-alpha"), "data", key)


async def test_the_start(tmp_path: Path) -> None:
    """onStartup by order number, nobody for what is there already, beforeAll by order, modules by weight, afterAll."""
    async with converged(tmp_path) as notes:
        assert await of_alpha(notes, "colour") == "grey"
        for name in ("beta", "gamma"):
            await notes.world.until_state("", name, "Disabled")


async def test_a_change_of_global_settings(tmp_path: Path) -> None:
    """Everything again, with the new values; nobody is started again."""
    async with converged(tmp_path) as notes:
        await notes.configure(**{"global": "colour: red", "betaEnabled": "false"})
        await notes.tell(
            "02 beforeAll red", "01 beforeAll red", "alpha beforeHelm red", "alpha afterHelm red", "03 afterAll red"
        )
        assert await of_alpha(notes, "colour") == "red"


async def test_a_change_of_a_modules_settings(tmp_path: Path) -> None:
    """That module alone."""
    async with converged(tmp_path) as notes:
        await notes.configure(alpha="size: 2", betaEnabled="false")
        await notes.tell("alpha beforeHelm grey", "alpha afterHelm grey")
        assert await of_alpha(notes, "size") == "2"
