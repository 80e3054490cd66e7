"""Case 14: the order in which hooks run (spec hook-protocol §5.2, §5.3, §6.4), in addon-operator's folders.

Only what hooks can observe is compared: the order of their runs, their contexts, and their values. The tasks that
addon-operator runs between the hooks have no counterpart here. There are three global hooks. The hooks 01 and 03 watch objects,
and have turned Synchronization off. There are three modules: alpha is on, beta is disabled by the ConfigMap, and nothing
enables gamma.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.runtime.support.converging import NEVER, SETTINGS, Notes, add, hook, write_hooks
from tests.runtime.support.world import open_world
from wharfinger.formats.json.value import find_str
from wharfinger.runtime.controllers.modules_dir import open_modules_dir
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE

pytestmark = pytest.mark.unmeasured

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


def ticking(name: str, minute: int) -> str:
    return f'"schedule": [{{"name": "{name}-tick", "crontab": "{minute} {NEVER}"}}]'


def config(*bindings: str) -> str:
    return f'{{"configVersion": "v1", {", ".join(bindings)}}}'


def of_event(key: str) -> str:
    """Return shell text that reads a value from the data of the event's object."""
    return f'\\"$(jq -r .[0].object.data.{key} "$BINDING_CONTEXT_PATH")\\"'


def write_folders(folder: Path) -> None:
    quiet = ', "executeHookOnSynchronization": false'
    write_hooks(
        folder / "global-hooks" / "hooks",
        {
            "hook01.sh": hook(
                folder,
                "01",
                config('"onStartup": 20', '"beforeAll": 20', watching("01", quiet)),
                {"01-maps": add("/global/colour", of_event("colour"))},
            ),
            "hook02.sh": hook(
                folder,
                "02",
                config('"onStartup": 1', '"beforeAll": 10', ticking("02", 2)),
                {"02-tick": add("/gammaEnabled", f"$(cat {folder}/gamma)") + ";" + add("/betaEnabled", "true")},
            ),
            "hook03.sh": hook(
                folder, "03", config('"onStartup": 10', '"afterAll": 10', watching("03", quiet), ticking("03", 3))
            ),
        },
    )
    write_hooks(
        folder / "modules",
        {
            "values.yaml": "global: {colour: grey}\nalpha: {size: 1}\nalphaEnabled: true\nbetaEnabled: true\n",
            "100-alpha/templates/map.yaml": MAP,
            "100-alpha/hooks/hook01.sh": hook(
                folder,
                "alpha",
                config('"onStartup": 1', '"beforeHelm": 1', '"afterHelm": 1', watching("alpha"), ticking("alpha", 1)),
                {
                    "alpha-tick": add("/alpha/more", '\\"tick\\"'),
                    "alpha-maps": f'[ "$type" != Event ] || {add("/alpha/more", of_event("more"))}',
                    "afterHelm": f'[ $(jq .alpha.size "$VALUES_PATH") != 3 ] || {add("/alpha/more", "3")}',
                },
            ),
            **{f"200-{name}/hooks/hook01.sh": switched(folder, name) for name in ("beta", "gamma")},
        },
    )


def switched(folder: Path, name: str) -> str:
    return hook(folder, name, config('"onStartup": 1', '"beforeHelm": 1', '"afterDeleteHelm": 1'))


@asynccontextmanager
async def converged(folder: Path) -> AsyncIterator[Notes]:
    """Install everything, check that exactly the hooks in ``STARTED`` have run, and yield the notes once everything is idle."""
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


@pytest.mark.slow
async def test_hooks_of_the_start_run_in_order(tmp_path: Path) -> None:
    """The global onStartup hooks run first, then the beforeAll hooks, both by order number. The modules follow by weight, and
    then the afterAll hooks.
    """
    async with converged(tmp_path) as notes:
        assert await of_alpha(notes, "colour") == "grey"
        for name in ("beta", "gamma"):
            await notes.world.until_state("", name, "Disabled")


@pytest.mark.slow
async def test_changed_global_settings_start_a_full_round(tmp_path: Path) -> None:
    """The round uses the new values, and onStartup hooks do not run again."""
    async with converged(tmp_path) as notes:
        await notes.configure(**{"global": "colour: red", "betaEnabled": "false"})
        await notes.tell(
            "02 beforeAll red", "01 beforeAll red", "alpha beforeHelm red", "alpha afterHelm red", "03 afterAll red"
        )
        assert await of_alpha(notes, "colour") == "red"


@pytest.mark.slow
async def test_changed_settings_of_a_module_run_only_that_module(tmp_path: Path) -> None:
    async with converged(tmp_path) as notes:
        await notes.configure(alpha="size: 2", betaEnabled="false")
        await notes.tell("alpha beforeHelm grey", "alpha afterHelm grey")
        assert await of_alpha(notes, "size") == "2"


@pytest.mark.slow
async def test_values_changed_by_an_afterhelm_hook_are_applied_at_once(tmp_path: Path) -> None:
    """The module's beforeHelm hooks do not run again, although they do in addon-operator."""
    async with converged(tmp_path) as notes:
        await notes.configure(alpha="size: 3", betaEnabled="false")
        await notes.tell("alpha beforeHelm grey", "alpha afterHelm grey", "alpha afterHelm grey")
        assert await of_alpha(notes, "more") == "3"


@pytest.mark.slow
async def test_an_event_that_changes_module_values_runs_only_that_module(tmp_path: Path) -> None:
    """The hook runs at each event, but the module is applied only if the event has changed values."""
    async with converged(tmp_path) as notes:
        await notes.label("alpha", more="watched")
        await notes.tell("alpha alpha-maps:Event grey", "alpha beforeHelm grey", "alpha afterHelm grey")
        assert await of_alpha(notes, "more") == "watched"
        notes.tick(1)
        await notes.tell("alpha alpha-tick:Schedule grey", "alpha beforeHelm grey", "alpha afterHelm grey")
        assert await of_alpha(notes, "more") == "tick"
        notes.tick(1)
        await notes.tell("alpha alpha-tick:Schedule grey")


@pytest.mark.slow
async def test_an_event_that_changes_global_values_starts_a_round(tmp_path: Path) -> None:
    """The hook runs at each event, but a round starts only if the event has changed global values."""
    async with converged(tmp_path) as notes:
        notes.tick(3)
        await notes.tell("03 03-tick:Schedule grey")
        await notes.label("03", colour="black")
        await notes.tell("03 03-maps:Event grey")
        await notes.label("01", colour="blue")
        await notes.tell(
            "01 01-maps:Event grey",
            "02 beforeAll blue",
            "01 beforeAll blue",
            "alpha beforeHelm blue",
            "alpha afterHelm blue",
            "03 afterAll blue",
        )
        assert await of_alpha(notes, "colour") == "blue"


@pytest.mark.slow
async def test_a_global_hook_may_switch_modules_in_a_round(tmp_path: Path) -> None:
    """The hook switches gamma, so gamma is the only module that runs in the round. The hook also enables beta, but the
    ConfigMap disables beta.
    """
    async with converged(tmp_path) as notes:
        (tmp_path / "gamma").write_text("true")
        notes.tick(2)
        await notes.tell(
            "02 02-tick:Schedule grey",
            "02 beforeAll grey",
            "01 beforeAll grey",
            "gamma onStartup grey",
            "gamma beforeHelm grey",
            "03 afterAll grey",
        )
        await notes.world.until_state("", "gamma", "Ready")
        await notes.world.until_state("", "beta", "Disabled")
        (tmp_path / "gamma").write_text("false")
        notes.tick(2)
        await notes.tell(
            "02 02-tick:Schedule grey",
            "02 beforeAll grey",
            "01 beforeAll grey",
            "gamma afterDeleteHelm grey",
            "03 afterAll grey",
        )


@pytest.mark.slow
async def test_modules_switched_by_the_config_map_start_a_round(tmp_path: Path) -> None:
    """In addon-operator, a switched module waits for the beforeAll hooks. Here the module's hooks may run at the same time as
    the beforeAll hooks.
    """
    async with converged(tmp_path) as notes:
        await notes.configure(betaEnabled="true")
        round_of_beta = ("02 beforeAll grey", "01 beforeAll grey", "03 afterAll grey")
        await notes.tell(*round_of_beta, "beta onStartup grey", "beta beforeHelm grey", apart="beta")
        await notes.configure(betaEnabled="false")
        await notes.tell(*round_of_beta, "beta afterDeleteHelm grey", apart="beta")
