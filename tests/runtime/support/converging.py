"""Hooks that note their runs in a file, and a reader that checks the notes once all packages are idle."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio
import trio.testing

from tests.packages.support.charts import write
from tests.runtime.support.world import World
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.resources import CONFIG_MAP

SETTINGS: Final = ObjectKey(CONFIG_MAP, "prod", "settings")
"""The ConfigMap of settings, in tests that have one."""
NEVER: Final = "0 29 2 *"
"""The fields after the minute in a crontab that comes due by itself only on one day in four years."""
NOTHING: Final[Mapping[str, str]] = {}
PATIENCE_S: Final = 300
QUIET_S: Final = 0.01
HOOK: Final = """\
#!/usr/bin/env bash
set -e
if [[ ${1:-} == --config ]]; then echo 'CONFIG'; exit; fi
colour=$(jq -r '.global.colour // "-"' "$VALUES_PATH")
type=$(jq -r '.[0].type // ""' "$BINDING_CONTEXT_PATH")
echo "NAME $(jq -r '[.[].binding] | join(",")' "$BINDING_CONTEXT_PATH")${type:+:$type} $colour" >>NOTES
case $(jq -r '.[0].binding' "$BINDING_CONTEXT_PATH") in
MORE
esac
"""


def hook(folder: Path, name: str, config: str, does: Mapping[str, str] = NOTHING) -> str:
    """Return the script of a hook that notes its name, the reason of its run, and the value ``global.colour`` that it sees.

    ``does`` has additional commands for some bindings.
    """
    lines = (f"{binding}) {commands} ;;" for binding, commands in does.items())
    script = HOOK.replace("CONFIG", config).replace("NAME", name).replace("MORE", "\n".join(lines))
    return script.replace("NOTES", str(folder / "notes"))


def add(path: str, value: str) -> str:
    """Return a shell command that adds a value to the values patch; ``value`` is JSON, quoted for the shell."""
    return f'echo "{{\\"op\\":\\"add\\",\\"path\\":\\"{path}\\",\\"value\\":{value}}}" >>"$VALUES_JSON_PATCH_PATH"'


def write_hooks(folder: Path, files: dict[str, str]) -> Path:
    """Write the files, and make the scripts among them executable."""
    write(folder, files)
    for name in files:
        if name.endswith(".sh") or name.rpartition("/")[2] == "enabled":
            (folder / name).chmod(0o755)
    return folder


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of all hooks in ``world``."""

    world: World
    path: Path

    def lines(self) -> list[str]:
        """Return all lines that were noted so far."""
        return self.path.read_text().splitlines() if self.path.exists() else []

    async def rest(self) -> None:
        """Wait until every package is idle, and will stay idle unless an event happens."""
        runtime = self.world.runtime
        with trio.fail_after(PATIENCE_S):
            while runtime.queues.names() or not runtime.scheduler.at_rest:
                await trio.testing.wait_all_tasks_blocked(QUIET_S)

    async def until(self, count: int) -> None:
        """Wait until this many lines were noted, or until a timeout."""
        with trio.move_on_after(PATIENCE_S):
            while len(self.lines()) < count:
                await trio.testing.wait_all_tasks_blocked(QUIET_S)

    async def tell(self, *expected: str, apart: str = "") -> None:
        """Check that exactly these hooks run, in this order, and then clear the notes.

        First wait until as many hooks have run as are expected, and until all packages are idle. If ``apart`` is given, the hooks
        of that package may run before or between the other hooks, but must not run last.
        """
        await self.until(len(expected))
        await self.rest()
        told, wanted = self.lines(), [*expected]
        shown = "\n".join(("these have run:", *told))
        if apart:
            assert not told[-1].startswith(apart), shown
            told.sort(key=lambda line: line.startswith(apart))
        assert told == wanted, shown
        self.path.unlink(missing_ok=True)

    async def configure(self, **data: str) -> None:
        """Write the ConfigMap of settings with exactly this data."""
        metadata: JsonObject = {"namespace": SETTINGS.namespace, "name": SETTINGS.name}
        obj: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**data}}
        await self.world.client.apply(obj, field_manager="person", force=True)

    async def label(self, name: str, **data: str) -> None:
        """Write a ConfigMap with the label ``for: <name>``, by which hooks can watch it."""
        metadata: JsonObject = {"namespace": "prod", "name": f"for-{name}", "labels": {"for": name}}
        obj: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {**data}}
        await self.world.client.apply(obj, field_manager="person", force=True)

    def tick(self, minute: int) -> None:
        """Run the tasks of one schedule at once, without waiting for its time. The schedule consists of this minute and
        `NEVER`.
        """
        self.world.runtime.submit(self.world.runtime.build_schedule_tasks(f"{minute} {NEVER}"))
