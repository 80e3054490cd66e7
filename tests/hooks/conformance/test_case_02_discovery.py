"""Conformance case 2 (spec hook-protocol §6.5): which files are hooks, their names, and their start order.

The rules for discovery and names are in §1.2 and §1.5, and those for the order in §5.2. The contract describes one main queue of
tasks, but here, each package has its own queue. So these tests compare only what hooks observe: which hook runs, for which
reason, and after which other hook.
"""

from pathlib import Path

import pytest

from tests.hooks.support.scripts import bash, write_hook
from tests.process.children import PATH
from tests.runtime.support.world import open_world
from wharfinger.hooks.config.bindings import HookScope
from wharfinger.hooks.config.problems import HookConfigError
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.config_reader import ProcessConfigReader
from wharfinger.hooks.running.discovery import discover_hooks
from wharfinger.packages.definition.definition import Layout

ASKED = """if [ "${1:-}" = --config ]; then echo '%s'; exit; fi"""


@pytest.fixture
def reader() -> ProcessConfigReader:
    return ProcessConfigReader(environment={"PATH": PATH})


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "001-mod" / "hooks").mkdir(parents=True)
    return tmp_path / "001-mod"


def hook(package: Path, name: str, config: str = "onStartup: 1") -> Path:
    path = package / "hooks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return bash(path.parent, ASKED % config, name=path.name)


async def names(package: Path, reader: ProcessConfigReader, layout: Layout = Layout.MODULE_FOLDER) -> list[str]:
    return [found.name for found in await discover_hooks(package, layout, reader)]


@pytest.mark.parametrize("layout", [Layout.PACKAGE, Layout.MODULE_FOLDER])
async def test_hooks_are_named_by_path_and_sorted_by_bytes(
    layout: Layout, package: Path, reader: ProcessConfigReader
) -> None:
    for name in ("podHooks/hook2.sh", "002-prom/startup_hook", "b.sh", "a/x", "a.sh", "Z.sh", "100-hook", "20-hook"):
        hook(package, name)
    assert await names(package, reader, layout) == [
        "hooks/002-prom/startup_hook",
        "hooks/100-hook",
        "hooks/20-hook",
        "hooks/Z.sh",
        "hooks/a.sh",
        "hooks/a/x",
        "hooks/b.sh",
        "hooks/podHooks/hook2.sh",
    ]


async def test_non_hook_files_are_skipped(
    package: Path, reader: ProcessConfigReader, caplog: pytest.LogCaptureFixture
) -> None:
    """None of the skipped files may be run, because each of them would fail."""
    folder = package / "hooks"
    for name in (
        ".gitkeep", ".hidden.sh", ".git/x.sh", "lib/x.sh", "a/lib/x.sh", "a/.cache/b/x.sh", "venv/bin/python3",
        "values.yaml", "a/some.json", "README.md", "notes.txt",
    ):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        bash((folder / name).parent, "exit 1", name=Path(name).name)
    write_hook(folder, "#!/bin/sh\nexit 1\n", name="functions.sh", mode=0o644)
    hook(package, "good.sh")
    assert await names(package, reader) == ["hooks/good.sh"]
    assert sorted(record.getMessage().partition(":")[0] for record in caplog.records) == [
        "hooks/functions.sh",
        "hooks/lib/x.sh",
    ]


@pytest.mark.parametrize("name", ["a.yml", "a.YAML", "a.JSON", "libs/a", "lib.d/a", "a.txt.sh"])
async def test_files_with_names_similar_to_skipped_ones_are_hooks(
    name: str, package: Path, reader: ProcessConfigReader
) -> None:
    hook(package, name)
    assert await names(package, reader) == [f"hooks/{name}"]


async def test_hooks_mounted_from_a_config_map_are_found(package: Path, reader: ProcessConfigReader) -> None:
    """In a mounted ConfigMap, each file is a link (mode 0777) to a file in a hidden folder beside it. The links must be found
    as hooks.
    """
    hook(package, "..2024_06_01/hook.sh")
    (package / "hooks" / "..data").symlink_to("..2024_06_01")
    (package / "hooks" / "hook.sh").symlink_to("..data/hook.sh")
    assert await names(package, reader) == ["hooks/hook.sh"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\nexit 3\n", "cannot get its configuration: --config ended with exit status 3"),
        ("#!/bin/sh\necho 'configVersion: v9'\n", "'configVersion' value 'v9' is unsupported"),
        ("echo 'onStartup: 1'\n", "exec format error"),
    ],
)
async def test_one_invalid_hook_fails_its_package_and_is_named(
    text: str, said: str, package: Path, tmp_path: Path, reader: ProcessConfigReader
) -> None:
    hook(package, "1.sh")
    write_hook(package / "hooks", text, name="2.sh")
    with pytest.raises(HookError) as caught:
        await names(package, reader)
    assert caught.value.hook == "hooks/2.sh"
    assert said in str(caught.value)
    other = tmp_path / "002-other"
    hook(other, "a.sh")
    assert await names(other, reader) == ["hooks/a.sh"]


async def test_version_0_orders_of_modules_and_global_hooks_are_read(
    package: Path, tmp_path: Path, reader: ProcessConfigReader
) -> None:
    hook(package, "100-nested/hook", "afterHelm: 3")
    (found,) = await discover_hooks(package, Layout.MODULE_FOLDER, reader)
    assert (found.name, found.config.version, found.config.after_helm) == ("hooks/100-nested/hook", "v0", 3)
    hook(tmp_path / "operator", "100-nested/hook", "{beforeAll: 1, afterAll: 4}")
    for folder, name in ((tmp_path / "operator", "hooks"), (tmp_path / "operator/hooks/100-nested", "global-hooks")):
        (found,) = await discover_hooks(folder, Layout.MODULE_FOLDER, reader, scope=HookScope.GLOBAL)
        assert (found.name.partition("/")[0], found.config.before_all, found.config.after_all) == (name, 1, 4)
    with pytest.raises(HookConfigError, match="beforeAll is a forbidden property"):
        await discover_hooks(tmp_path / "operator", Layout.MODULE_FOLDER, reader)


NOTED = """
if [ "${1:-}" = --config ]; then echo '%s'; exit; fi
jq -r '.[] | "%s \\(.binding) \\(.type // "")"' "$BINDING_CONTEXT_PATH" >>%s
"""
WATCHING = '{"name":"own","apiVersion":"v1","kind":"ConfigMap","nameSelector":{"matchNames":["nobody"]}}'
START: dict[str, str] = {
    "h01": '{"configVersion":"v1","onStartup":20,"kubernetes":[%s]}' % WATCHING,  # noqa: UP031 - the text has braces
    "h02": '{"configVersion":"v1","onStartup":1,"schedule":[{"name":"never","crontab":"0 0 29 2 *"}]}',
    "h03": (
        '{"configVersion":"v1","onStartup":10,"kubernetes":[%s],"schedule":[{"name":"never","crontab":"0 0 29 2 *"}]}'  # noqa: UP031
        % WATCHING
    ),
    "h04": '{"configVersion":"v1","onStartup":10}',
}


async def test_hooks_start_by_order_then_path(tmp_path: Path) -> None:
    """Hooks with ``onStartup`` run first, by order and then by path. Then one hook after the other is synchronized, by path."""
    notes, folder = tmp_path / "notes", tmp_path / "modules" / "001-mod"
    (folder / "hooks").mkdir(parents=True)
    for name, config in START.items():
        bash(folder / "hooks", NOTED % (config, name, notes), name=f"{name}.sh")
    async with open_world(tmp_path) as world:
        await world.local_repository(tmp_path / "modules")
        await world.create_module("mod", package="001-mod", version="0.0.0")
        await world.until_state("", "mod", "Ready")
        assert notes.read_text().splitlines() == [
            "h02 onStartup ",
            "h03 onStartup ",
            "h04 onStartup ",
            "h01 onStartup ",
            "h01 own Synchronization",
            "h03 own Synchronization",
        ]
        started = world.runtime.instances["mod"].hooks.started
        assert started is not None
        assert started.crontabs() == ("0 0 29 2 *",)
        assert [box.hook.name for box in started.tick("0 0 29 2 *")] == ["hooks/h02.sh", "hooks/h03.sh"]
