"""The process runner. It satisfies the contract of all runners; further tests check the files, the environment and the limits
of a run.
"""

import logging
import os
import random
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.hooks.support.contained import IS_ROOT, state_folder, users
from tests.hooks.support.runner_contract import CONTRACT, PATIENT, Contract
from tests.hooks.support.scripts import bash, python, run_of, write_hook
from tests.process.children import PATH
from tests.scale import scaled
from wharfinger.formats.json.value import JsonValue
from wharfinger.hooks.containment.containment import Containment
from wharfinger.hooks.containment.spare_folders import PREFIX as SPARE
from wharfinger.hooks.containment.spare_folders import SpareFolders
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running import process_runner
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.running.run_folder import INPUTS, OUTPUTS, RunFolder
from wharfinger.hooks.running.runner import LogRecord
from wharfinger.process.command import Limits
from wharfinger.process.ledger import open_ledger

LEAVES_MORE = 'touch "${METRICS_PATH%/*}/more"'
"""A script that leaves another file in the folder of its run, so that the folder cannot be removed immediately."""

MakeRunner = Callable[[float], ProcessHookRunner]


def limits(wall_s: float) -> Limits:
    return Limits(wall_s=wall_s, stdout_bytes=64 * 1024 * 1024, term_grace_s=0.05, drain_s=0.05)


def left_in(folder: Path) -> list[Path]:
    """Return the files in a folder, except empty spare folders for the next run."""
    return [path for path in folder.iterdir() if not path.name.startswith(SPARE) or any(path.iterdir())]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "state" / "scratch"


@pytest.fixture
def make(scratch: Path) -> MakeRunner:
    return lambda wall_s: ProcessHookRunner(scratch, limits(wall_s), environment={"PATH": PATH})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("contract", CONTRACT, ids=lambda contract: str(contract.__name__).removeprefix("contract_"))
async def test_process_runner_satisfies_the_runner_contract(
    contract: Contract, make: MakeRunner, scratch: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "hooks"
    folder.mkdir()
    await contract(make, folder)
    assert left_in(scratch) == [], "a run left its folder behind"


async def test_every_variable_of_the_contract_names_a_private_file_of_the_run(make: MakeRunner, tmp_path: Path) -> None:
    names = {**INPUTS, **OUTPUTS}
    script = "\n".join(f'stat -c "{name} %a %F" "${name}"' for name in names)
    outcome = await make(PATIENT).run(run_of(bash(tmp_path, f'{script}\nstat -c "folder %a" "${{METRICS_PATH%/*}}"')))
    kinds = {name: "regular file" if name in INPUTS else "regular empty file" for name in names}
    assert outcome.log_lines == (*(f"{name} 600 {kinds[name]}" for name in names), "folder 700")
    assert set(names) == {
        "BINDING_CONTEXT_PATH",
        "VALUES_PATH",
        "CONFIG_VALUES_PATH",
        "KUBERNETES_PATCH_PATH",
        "METRICS_PATH",
        "VALUES_JSON_PATCH_PATH",
        "CONFIG_VALUES_JSON_PATCH_PATH",
        "VALIDATING_RESPONSE_PATH",
        "ADMISSION_RESPONSE_PATH",
        "CONVERSION_RESPONSE_PATH",
    }


async def test_hook_gets_only_harmless_variables_of_the_daemon(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_CLOUDS_KEY", "crown-jewel")
    monkeypatch.setenv("KUBECONFIG", "/somebody/elses")
    monkeypatch.setenv("LC_TIME", "C.UTF-8")
    hook = bash(tmp_path, 'echo "[${A_CLOUDS_KEY:-}] $KUBECONFIG $LC_TIME"; [ "$HOME/values.json" = "$VALUES_PATH" ]')
    outcome = await ProcessHookRunner(scratch, limits(PATIENT)).run(run_of(hook))
    assert outcome.succeeded
    assert outcome.log_lines == ("[] /dev/null C.UTF-8",)


async def test_given_home_and_kubeconfig_are_passed_on(scratch: Path, tmp_path: Path) -> None:
    environment = {"PATH": PATH, "HOME": "/home/ann", "KUBECONFIG": "/asked/for"}
    outcome = await ProcessHookRunner(scratch, limits(PATIENT), environment=environment).run(
        run_of(bash(tmp_path, 'echo "$HOME $KUBECONFIG"'))
    )
    assert outcome.log_lines == ("/home/ann /asked/for",)


async def test_lines_are_reported_while_the_hook_runs(scratch: Path, tmp_path: Path) -> None:
    told: list[str] = []
    go_on = tmp_path / "go on"
    os.mkfifo(go_on)
    writer = os.open(go_on, os.O_RDWR)

    def on_line(line: str) -> None:
        told.append(line)
        os.write(writer, b"\n")

    runner = ProcessHookRunner(scratch, limits(PATIENT), environment={"PATH": PATH})
    run = run_of(bash(tmp_path, 'echo first; read -r <"go on"; echo second'))
    outcome = await runner.run(replace(run, on_line=on_line))
    os.close(writer)
    assert told == ["first", "second"]
    assert outcome.log_lines == ("first", "second")


async def test_output_is_reported_as_records_and_retained_as_lines(scratch: Path, tmp_path: Path) -> None:
    told: list[LogRecord] = []
    script = """
    echo '{"level":"error","msg":"m","a":1}'
    printf '{"b":\\n{"c":2}\\n}\\n'
    echo text; printf '{"never":'; printf 'on stderr' >&2
    """
    runner = ProcessHookRunner(scratch, limits(PATIENT), environment={"PATH": PATH})
    outcome = await runner.run(replace(run_of(bash(tmp_path, script)), on_record=told.append))
    mark: dict[str, JsonValue] = {"proxyJsonLog": True}
    assert [one for one in told if one.stream == "stdout"] == [
        LogRecord("stdout", "error", "m", {"hook_a": 1, **mark}),
        LogRecord("stdout", "info", "hook result", {"hook_b": {"c": 2}, **mark}),
        LogRecord("stdout", "info", "text"),
        LogRecord("stdout", "info", '{"never":'),
    ]
    assert [one for one in told if one.stream == "stderr"] == [LogRecord("stderr", "info", "on stderr")]
    assert set(outcome.log_lines) >= {'{"level":"error","msg":"m","a":1}', '{"b":', "text", '{"never":'}


async def test_outcome_contains_the_duration_of_the_run(scratch: Path, tmp_path: Path) -> None:
    runner = ProcessHookRunner(scratch, limits(PATIENT), environment={"PATH": PATH})
    begin = trio.current_time()
    outcome = await runner.run(run_of(bash(tmp_path, "true")))
    assert 0 < outcome.wall_s <= trio.current_time() - begin


async def test_endless_output_ends_the_run(scratch: Path, tmp_path: Path) -> None:
    bounds = Limits(wall_s=PATIENT, stdout_bytes=10_000, term_grace_s=0.05, drain_s=0.05)
    outcome = await ProcessHookRunner(scratch, bounds, environment={"PATH": PATH}).run(run_of(bash(tmp_path, "yes")))
    assert not outcome.succeeded
    assert outcome.exit_description.startswith("output limit passed")
    assert set(outcome.log_lines) == {"y"}


async def test_running_process_is_in_the_ledger(scratch: Path, tmp_path: Path) -> None:
    seen: list[int] = []
    with open_ledger(tmp_path / "journal.db") as ledger:

        def on_line(line: str) -> None:
            seen.append(int(line) - next(entry.pid for entry in ledger.entries()))

        runner = ProcessHookRunner(scratch, limits(PATIENT), ledger, environment={"PATH": PATH})
        await runner.run(replace(run_of(bash(tmp_path, "echo $$")), on_line=on_line))
        assert seen == [0]
        assert ledger.entries() == ()


async def test_unwritable_scratch_folder_is_a_transient_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    runner = ProcessHookRunner(tmp_path / "file" / "scratch", limits(PATIENT))
    with pytest.raises(HookError, match="its files could not be prepared") as caught:
        await runner.run(run_of(bash(tmp_path, ":")))
    assert caught.value.transient


@pytest.mark.skipif(not IS_ROOT, reason="only root can start programs as other users")
async def test_failed_folder_access_is_transient_and_leaves_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_folder: Path, _top: Path) -> None:
        raise OSError("read-only file system")

    monkeypatch.setattr(process_runner, "allow_traversal", refuse)
    with state_folder() as state:
        runner = ProcessHookRunner(state / "scratch", limits(PATIENT), containment=Containment(users=users()))
        with pytest.raises(HookError, match="access to the folders above its files: read-only") as caught:
            await runner.run(run_of(bash(state, ":")))
        assert caught.value.transient
        assert list((state / "scratch").iterdir()) == []


async def test_failed_removal_of_a_run_folder_is_only_logged(
    make: MakeRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: RunFolder, _spares: SpareFolders) -> None:
        raise OSError("device or resource busy")

    monkeypatch.setattr(RunFolder, "remove", refuse)
    assert (await make(PATIENT).run(run_of(bash(tmp_path, LEAVES_MORE)))).succeeded
    assert "hook 10-hook.sh: its folder" in caplog.text
    assert "device or resource busy" in caplog.text


async def test_hanging_removal_of_a_run_folder_does_not_block(
    make: MakeRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    end = trio.Event()
    portal: list[trio.lowlevel.TrioToken] = [trio.lowlevel.current_trio_token()]

    def hang(self: RunFolder, _spares: SpareFolders) -> None:
        trio.from_thread.run(end.wait, trio_token=portal[0])

    monkeypatch.setattr(RunFolder, "remove", hang)
    monkeypatch.setattr(process_runner, "REMOVE_S", 0.01)
    with caplog.at_level(logging.WARNING):
        assert (await make(PATIENT).run(run_of(bash(tmp_path, LEAVES_MORE)))).succeeded
    assert "is still being removed" in caplog.text
    end.set()
    await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize("moment", ["before its folder is removed", "while its folder is removed"])
async def test_cancelled_run_waits_briefly_for_the_folder_removal(
    make: MakeRunner,
    scratch: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    moment: str,
) -> None:
    go_on, removed = threading.Event(), trio.Event()
    token, remove = trio.lowlevel.current_trio_token(), RunFolder.remove

    def remove_slowly(self: RunFolder, spares: SpareFolders) -> None:
        token.run_sync_soon(scope.cancel)
        go_on.wait()
        remove(self, spares)
        token.run_sync_soon(removed.set)

    def on_line(_line: str) -> None:
        if moment == "before its folder is removed":
            scope.cancel()

    monkeypatch.setattr(RunFolder, "remove", remove_slowly)
    with trio.CancelScope() as scope:
        await make(PATIENT).run(replace(run_of(bash(tmp_path, f"{LEAVES_MORE}; echo ready")), on_line=on_line))
    assert scope.cancelled_caught
    (left,) = left_in(scratch)
    assert f"hook 10-hook.sh: its folder {left} is still being removed" in caplog.text
    go_on.set()
    await removed.wait()
    assert not left.exists()


async def test_runs_cancelled_at_any_moment_leave_no_folder(make: MakeRunner, scratch: Path, tmp_path: Path) -> None:
    """Each run is cancelled at a random moment, from the creation of its folder to the removal of the folder."""
    draw = random.Random(4)  # noqa: S311 - the same moments in every run
    hook = bash(tmp_path, "echo ready; sleep 0.005 & wait")
    for _ in range(scaled(200, 50)):
        with trio.CancelScope() as scope:
            scope.deadline = trio.current_time() + draw.uniform(0, 0.03)
            await make(PATIENT).run(run_of(hook))
        assert left_in(scratch) == []


async def test_unreadable_and_linked_files_in_a_run_folder_are_removed(
    make: MakeRunner, scratch: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("kept")
    hook = bash(
        tmp_path,
        f'cd "${{METRICS_PATH%/*}}"; mkdir -p deep/er; touch deep/er/file; ln -s {outside} link; chmod 000 deep/er deep',
    )
    assert (await make(PATIENT).run(run_of(hook))).succeeded
    assert left_in(scratch) == []
    assert (outside / "file").read_text() == "kept"
    assert mode_of(scratch) == 0o700


async def test_hook_gets_no_systemd_variables(scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/n")
    monkeypatch.setenv("LISTEN_FDS", "1")
    script = bash(tmp_path, 'echo "<${NOTIFY_SOCKET:-}${LISTEN_FDS:-}>"')
    outcome = await ProcessHookRunner(scratch, limits(PATIENT)).run(run_of(script))
    assert outcome.log_lines == ("<>",)


async def test_python_hook_writes_no_bytecode_into_its_package(scratch: Path, tmp_path: Path) -> None:
    folder = tmp_path / "hooks"
    folder.mkdir()
    (folder / "helper.py").write_text("X = 1\n")
    script = write_hook(folder, f"#!{sys.executable}\nimport helper\nprint(helper.X)\n", name="h.py")
    outcome = await ProcessHookRunner(scratch, limits(PATIENT)).run(run_of(script))
    assert outcome.log_lines == ("1",)
    assert sorted(path.name for path in folder.iterdir()) == ["h.py", "helper.py"]


async def test_very_deep_trees_in_a_run_folder_are_removed(scratch: Path, tmp_path: Path) -> None:
    script = python(
        tmp_path,
        'os.chdir(os.path.dirname(os.environ["VALUES_PATH"]))\nfor _ in range(1500):\n  os.mkdir("a"); os.chdir("a")',
    )
    outcome = await ProcessHookRunner(scratch, limits(PATIENT)).run(run_of(script))
    assert outcome.succeeded
    assert left_in(scratch) == []
