"""Hooks asked for their configuration: real bash and Python programs, asked by the real reader."""

import logging
import os
from pathlib import Path

import pytest
import trio

from tests.hooks.scripts import bash, python, write_hook
from tests.process.children import PATH
from wharfinger.hooks import discovery
from wharfinger.hooks.config import HookConfigError
from wharfinger.hooks.discovery import ConfigReader, Hook, ProcessConfigReader, discover_hooks, read_hook
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.hook_files import HookFile, hook_file
from wharfinger.packages.definition import Layout
from wharfinger.process.command import Limits
from wharfinger.process.journal_file import JournalFile
from wharfinger.process.ledger import ProcessLedger

CONFIG = """if [ "$*" = --config ]; then echo '{"configVersion":"v1","onStartup":%d}'; exit 0; fi; exit 9"""


@pytest.fixture
def hooks(tmp_path: Path) -> Path:
    folder = tmp_path / "package" / "hooks"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def reader() -> ProcessConfigReader:
    return ProcessConfigReader(environment={"PATH": PATH})


async def discovered(hooks: Path, reader: ConfigReader, layout: Layout = Layout.PACKAGE) -> tuple[Hook, ...]:
    return await discover_hooks(hooks.parent, layout, reader)


async def refused(hooks: Path, reader: ConfigReader) -> HookError:
    with pytest.raises(HookError) as caught:
        await discovered(hooks, reader)
    return caught.value


async def test_hooks_come_in_the_order_of_their_paths_with_what_they_ask_for(
    hooks: Path, reader: ProcessConfigReader
) -> None:
    for number in (20, 3, 10):
        bash(hooks, CONFIG % number, name=f"{number:03}-hook.sh")
    (hooks / "folder").mkdir()
    path = python(hooks / "folder", "print('onStartup: 7') if sys.argv[1:] == ['--config'] else sys.exit(9)", name="p")
    found = await discovered(hooks, reader)
    assert [(hook.name, hook.config.on_startup) for hook in found] == [
        ("hooks/003-hook.sh", 3),
        ("hooks/010-hook.sh", 10),
        ("hooks/020-hook.sh", 20),
        ("hooks/folder/p", 7),
    ]
    assert (found[-1].executable, found[-1].argv, found[-1].cwd) == (path, (), path.parent)
    assert found[-1].config.version == "v0"


async def test_a_package_without_hooks(tmp_path: Path, reader: ProcessConfigReader) -> None:
    assert await discover_hooks(tmp_path, Layout.CHART, reader) == ()


@pytest.mark.parametrize(("layout", "folder"), [(Layout.PACKAGE, "hooks"), (Layout.MODULE_FOLDER, "package")])
async def test_where_and_with_what_a_hook_is_asked(
    layout: Layout, folder: str, hooks: Path, reader: ProcessConfigReader
) -> None:
    """No input, no variable of a run: an old example reads its input, since the variable it means is not set."""
    (hooks / "a").mkdir()
    bash(hooks / "a", f'echo "onStartup: $(cat | wc -c)$(env | grep -c _PATH=)"; [ "${{PWD##*/}}" = {folder} ]')
    (hook,) = await discovered(hooks, reader, layout)
    assert hook.config.on_startup == 0


async def test_what_looks_wrong_beside_hooks_is_logged(
    hooks: Path, reader: ProcessConfigReader, caplog: pytest.LogCaptureFixture
) -> None:
    write_hook(hooks, "#!/bin/sh\n", mode=0o644)
    with caplog.at_level(logging.WARNING):
        assert await discovered(hooks, reader) == ()
    assert "hooks/10-hook.sh: no executable permissions, chmod +x is required" in caplog.text


async def test_nothing_is_run_that_is_not_a_hook_and_no_hook_in_any_other_way(
    hooks: Path, tmp_path: Path, reader: ProcessConfigReader
) -> None:
    ran = tmp_path / "ran"
    script = f'echo "${{0##*/}} $*" >>{ran}; echo "onStartup: 1"'
    (hooks / "lib").mkdir()
    for folder, name in ((hooks, "batch"), (hooks, "notes.txt"), (hooks, ".hidden"), (hooks / "lib", "library")):
        bash(folder, script, name=name)
    assert [hook.name for hook in await discovered(hooks, reader)] == ["hooks/batch"]
    assert ran.read_text() == "batch --config\n"


async def test_one_hook_that_fails_fails_all_and_the_first_is_told(hooks: Path, reader: ProcessConfigReader) -> None:
    bash(hooks, CONFIG % 1, name="1.sh")
    bash(hooks, "echo 'no such tool: jp' >&2; exit 3", name="2.sh")
    bash(hooks, "exit 4", name="3.sh")
    error = await refused(hooks, reader)
    assert str(error) == (
        "hook hooks/2.sh: cannot get its configuration: --config ended with exit status 3: no such tool: jp"
    )
    assert (error.hook, error.transient) == ("hooks/2.sh", False)
    (hooks / "2.sh").unlink()
    assert str(await refused(hooks, reader)).endswith("hooks/3.sh: cannot get its configuration: --config ended with "
                                                      "exit status 4 and wrote nothing to stderr")  # fmt: skip


async def test_a_wrong_configuration_is_told_with_its_hook(hooks: Path, reader: ProcessConfigReader) -> None:
    bash(hooks, "echo 'configVersion: v1'; echo 'kubernetes: [{}]'")
    error = await refused(hooks, reader)
    assert isinstance(error, HookConfigError)
    assert str(error) == "hook hooks/10-hook.sh: its configuration is refused: kubernetes.kind is required"


async def test_a_script_without_a_first_line_is_told_what_to_add(hooks: Path, reader: ProcessConfigReader) -> None:
    write_hook(hooks, "echo 'onStartup: 1'\n")
    error = await refused(hooks, reader)
    assert "exec format error; add a shebang line such as #!/usr/bin/env bash" in str(error)
    assert not error.transient


async def test_a_script_whose_interpreter_is_missing(hooks: Path, reader: ProcessConfigReader) -> None:
    write_hook(hooks, "#!/no/such/interpreter\n")
    assert "install the interpreter, or correct the first line" in str(await refused(hooks, reader))


async def test_a_hook_that_does_not_end_is_ended_and_may_be_tried_again(hooks: Path) -> None:
    bash(hooks, "sleep 1000")
    reader = ProcessConfigReader(
        environment={"PATH": PATH}, limits=Limits(wall_s=0.2, stdout_bytes=1000, term_grace_s=0.05, drain_s=0.05)
    )
    error = await refused(hooks, reader)
    assert "--config ended with deadline passed (killed by SIG" in str(error)
    assert error.transient


async def test_a_hook_that_prints_without_end_is_ended(hooks: Path) -> None:
    bash(hooks, "yes")
    reader = ProcessConfigReader(
        environment={"PATH": PATH}, limits=Limits(wall_s=100.0, stdout_bytes=1000, term_grace_s=0.05, drain_s=0.05)
    )
    error = await refused(hooks, reader)
    assert "output limit passed" in str(error)
    assert not error.transient


async def test_a_hook_that_somebody_killed_may_be_tried_again(hooks: Path, reader: ProcessConfigReader) -> None:
    bash(hooks, "kill -KILL $$")
    error = await refused(hooks, reader)
    assert "killed by SIGKILL" in str(error)
    assert error.transient


async def test_the_same_file_is_asked_once(hooks: Path, tmp_path: Path, reader: ProcessConfigReader) -> None:
    count = tmp_path / "count"
    script = f"echo x >>{count}; echo 'onStartup: %d'"
    bash(hooks, script % 1)
    first = await discovered(hooks, reader)
    assert await discovered(hooks, reader) == first
    assert count.read_text() == "x\n"
    bash(hooks, script % 2)
    assert [hook.config.on_startup for hook in await discovered(hooks, reader)] == [2]
    bash(hooks, script % 1)
    assert await discovered(hooks, reader) == first
    assert count.read_text() == "x\nx\n"


async def test_a_failure_is_not_kept(hooks: Path, tmp_path: Path, reader: ProcessConfigReader) -> None:
    bash(hooks, f"cat {tmp_path}/config")
    await refused(hooks, reader)
    (tmp_path / "config").write_text("onStartup: 1")
    assert len(await discovered(hooks, reader)) == 1


async def test_answers_are_kept_as_long_as_there_is_room(
    tmp_path: Path, reader: ProcessConfigReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "_CACHE_BYTES", 20)
    count = tmp_path / "count"

    async def ask(name: str) -> int:
        path = tmp_path / name
        if not path.exists():
            bash(tmp_path, f"echo x >>{count}; echo 12345678", name=name)
        assert await reader.config_of(hook_file(path)) == b"12345678\n"
        return len(count.read_text().splitlines())

    assert [await ask(name) for name in ("a", "b", "a", "c", "a", "b")] == [1, 2, 2, 3, 3, 4]


async def test_a_hook_that_went_away_meanwhile(tmp_path: Path, reader: ProcessConfigReader) -> None:
    gone = HookFile("hooks/x", tmp_path / "x", (), tmp_path, tmp_path)
    with pytest.raises(HookError, match="hook hooks/x: it cannot be read: ") as caught:
        await read_hook(gone, reader)
    assert caught.value.transient


async def test_a_folder_that_cannot_be_read(
    hooks: Path, reader: ProcessConfigReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(package: Path, layout: Layout) -> None:
        raise PermissionError(13, "Permission denied", str(package))

    monkeypatch.setattr(discovery, "find_hook_files", refuse)
    error = await refused(hooks, reader)
    assert "the folder cannot be read: " in str(error)
    assert error.transient


async def test_a_ledger_that_fails_is_told(hooks: Path, tmp_path: Path) -> None:
    bash(hooks, CONFIG % 1)
    ledger = ProcessLedger(JournalFile(tmp_path / "journal.db"))
    ledger.file.close()
    error = await refused(hooks, ProcessConfigReader(ledger))
    assert "cannot get its configuration: " in str(error)
    assert error.transient


async def test_hooks_inherit_the_environment_of_the_process(hooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_THE_DAEMON", "5")
    bash(hooks, 'echo "onStartup: $FROM_THE_DAEMON"')
    (hook,) = await discovered(hooks, ProcessConfigReader())
    assert hook.config.on_startup == 5
    assert "FROM_THE_DAEMON" in os.environ


QUICK = Limits(wall_s=60.0, stdout_bytes=1000, term_grace_s=0.05, drain_s=0.05)


async def test_nobody_is_asked_behind_one_that_failed(hooks: Path, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    bash(hooks, f"read -r <{go_on}; exit 4", name="0.sh")
    for number in range(1, 9):
        bash(hooks, f"echo x >{go_on}; sleep 1000", name=f"{number}.sh")
    with trio.fail_after(50):
        error = await refused(hooks, ProcessConfigReader(environment={"PATH": PATH}, limits=QUICK))
    assert error.hook == "hooks/0.sh"


async def test_all_hooks_of_a_package_together_have_a_limit(hooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "DISCOVERY_S", 0.3)
    bash(hooks, CONFIG % 1, name="0.sh")
    for number in range(1, 9):
        bash(hooks, "sleep 1000", name=f"{number}.sh")
    with trio.fail_after(50):
        error = await refused(hooks, ProcessConfigReader(environment={"PATH": PATH}, limits=QUICK))
    assert "took longer than 0.3 s" in str(error)
    assert error.transient


async def test_so_many_answers_are_kept_and_empty_ones_are_not(
    tmp_path: Path, reader: ProcessConfigReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "_CACHE_ENTRIES", 2)
    count = tmp_path / "count"

    async def ask(name: str, said: str) -> int:
        if not (tmp_path / name).exists():
            bash(tmp_path, f"echo x >>{count}; printf '{said}'", name=name)
        assert await reader.config_of(hook_file(tmp_path / name)) == said.encode()
        return len(count.read_text().splitlines())

    assert [await ask(name, "x") for name in ("a", "b", "a", "c", "a", "b")] == [1, 2, 2, 3, 3, 4]
    assert [await ask("empty", "") for _ in range(2)] == [5, 6]


async def test_a_hook_is_not_told_what_systemd_told_the_daemon_and_leaves_no_bytecode(
    hooks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/n")
    bash(hooks, 'echo "onStartup: ${NOTIFY_SOCKET:+5}$PYTHONDONTWRITEBYTECODE"')
    (hook,) = await discovered(hooks, ProcessConfigReader())
    assert hook.config.on_startup == 1
