"""Discovery of hooks: real bash and Python programs, and the real reader of configurations."""

import logging
import os
import shutil
import sys
from pathlib import Path

import pytest
import trio

from tests.hooks.support.scripts import bash, batch, python, write_hook
from tests.process.children import PATH
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.config.bindings import UNBOUND, HookScope
from wharfinger.hooks.config.problems import HookConfigError
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running import discovery
from wharfinger.hooks.running.config_reader import ConfigReader, ProcessConfigReader
from wharfinger.hooks.running.discovery import Hook, HookKind, discover_hooks
from wharfinger.hooks.running.hook_files import GLOBAL_FOLDER
from wharfinger.packages.definition.definition import Layout
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


async def test_hooks_are_discovered_in_path_order_with_their_configuration(
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


async def test_package_without_hooks_has_none(tmp_path: Path, reader: ProcessConfigReader) -> None:
    assert await discover_hooks(tmp_path, Layout.CHART, reader) == ()


@pytest.mark.parametrize(("layout", "folder"), [(Layout.PACKAGE, "hooks"), (Layout.MODULE_FOLDER, "package")])
async def test_config_run_has_its_folder_no_input_and_no_run_variables(
    layout: Layout, folder: str, hooks: Path, reader: ProcessConfigReader
) -> None:
    """The variables of a hook run are not set for ``--config``. An old example hook then reads its standard input.

    So this input must be empty.
    """
    (hooks / "a").mkdir()
    bash(hooks / "a", f'echo "onStartup: $(cat | wc -c)$(env | grep -c _PATH=)"; [ "${{PWD##*/}}" = {folder} ]')
    (hook,) = await discovered(hooks, reader, layout)
    assert hook.config.on_startup == 0


async def test_files_that_are_not_executable_are_logged(
    hooks: Path, reader: ProcessConfigReader, caplog: pytest.LogCaptureFixture
) -> None:
    write_hook(hooks, "#!/bin/sh\n", mode=0o644)
    with caplog.at_level(logging.WARNING):
        assert await discovered(hooks, reader) == ()
    assert "hooks/10-hook.sh: no executable permissions, chmod +x is required" in caplog.text


async def test_discovery_runs_only_hooks_and_only_with_the_config_argument(
    hooks: Path, tmp_path: Path, reader: ProcessConfigReader
) -> None:
    ran = tmp_path / "ran"
    script = f'echo "${{0##*/}} $*" >>{ran}; echo "onStartup: 1"'
    (hooks / "lib").mkdir()
    for folder, name in ((hooks, "batch"), (hooks, "notes.txt"), (hooks, ".hidden"), (hooks / "lib", "library")):
        bash(folder, script, name=name)
    assert [hook.name for hook in await discovered(hooks, reader)] == ["hooks/batch"]
    assert ran.read_text() == "batch --config\n"


async def test_first_failing_hook_fails_the_discovery_and_is_reported(hooks: Path, reader: ProcessConfigReader) -> None:
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


async def test_invalid_configuration_is_reported_with_its_hook(hooks: Path, reader: ProcessConfigReader) -> None:
    bash(hooks, "echo 'configVersion: v1'; echo 'kubernetes: [{}]'")
    error = await refused(hooks, reader)
    assert isinstance(error, HookConfigError)
    assert str(error) == "hook hooks/10-hook.sh: its configuration is refused: kubernetes.kind is required"


async def test_script_without_a_shebang_is_reported_with_advice(hooks: Path, reader: ProcessConfigReader) -> None:
    write_hook(hooks, "echo 'onStartup: 1'\n")
    error = await refused(hooks, reader)
    assert "exec format error; add a shebang line such as #!/usr/bin/env bash" in str(error)
    assert not error.transient


async def test_script_with_a_missing_interpreter_is_reported_with_advice(
    hooks: Path, reader: ProcessConfigReader
) -> None:
    write_hook(hooks, "#!/no/such/interpreter\n")
    assert "install the interpreter, or correct the first line" in str(await refused(hooks, reader))


async def test_hook_that_exceeds_its_deadline_is_a_transient_failure(hooks: Path) -> None:
    bash(hooks, "sleep 1000")
    reader = ProcessConfigReader(
        environment={"PATH": PATH}, limits=Limits(wall_s=0.2, stdout_bytes=1000, term_grace_s=0.05, drain_s=0.05)
    )
    error = await refused(hooks, reader)
    assert "--config ended with deadline passed (killed by SIG" in str(error)
    assert error.transient


async def test_hook_with_endless_output_is_a_permanent_failure(hooks: Path) -> None:
    bash(hooks, "yes")
    reader = ProcessConfigReader(
        environment={"PATH": PATH}, limits=Limits(wall_s=100.0, stdout_bytes=1000, term_grace_s=0.05, drain_s=0.05)
    )
    error = await refused(hooks, reader)
    assert "output limit passed" in str(error)
    assert not error.transient


async def test_killed_hook_is_a_transient_failure(hooks: Path, reader: ProcessConfigReader) -> None:
    bash(hooks, "kill -KILL $$")
    error = await refused(hooks, reader)
    assert "killed by SIGKILL" in str(error)
    assert error.transient


async def test_unchanged_hook_files_are_run_for_their_configuration_once(
    hooks: Path, tmp_path: Path, reader: ProcessConfigReader
) -> None:
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


async def test_failures_are_not_cached(hooks: Path, tmp_path: Path, reader: ProcessConfigReader) -> None:
    bash(hooks, f"cat {tmp_path}/config")
    await refused(hooks, reader)
    (tmp_path / "config").write_text("onStartup: 1")
    assert len(await discovered(hooks, reader)) == 1


async def test_unreadable_folder_is_a_transient_failure(
    hooks: Path, reader: ProcessConfigReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(package: Path, layout: Layout, *, scope: HookScope, batch: tuple[str, ...]) -> None:
        raise PermissionError(13, "Permission denied", str(package))

    monkeypatch.setattr(discovery, "find_hook_files", refuse)
    error = await refused(hooks, reader)
    assert "the folder cannot be read: " in str(error)
    assert error.transient


async def test_failing_ledger_is_a_transient_failure(hooks: Path, tmp_path: Path) -> None:
    bash(hooks, CONFIG % 1)
    ledger = ProcessLedger(JournalFile(tmp_path / "journal.db"))
    ledger.file.close()
    error = await refused(hooks, ProcessConfigReader(ledger))
    assert "cannot get its configuration: " in str(error)
    assert error.transient


async def test_config_runs_get_no_credentials_and_no_kubeconfig(hooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_THE_DAEMON", "5")
    monkeypatch.setenv("KUBECONFIG", "/somebody/elses")
    bash(hooks, 'echo "onStartup: ${FROM_THE_DAEMON:-6}"; [ "$KUBECONFIG $HOME" = "/dev/null /nonexistent" ]')
    (hook,) = await discovered(hooks, ProcessConfigReader())
    assert hook.config.on_startup == 6


QUICK = Limits(wall_s=1000.0, stdout_bytes=1000, term_grace_s=0.05, drain_s=0.05)


async def test_discovery_stops_after_the_first_failed_hook(hooks: Path, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    bash(hooks, f"read -r <{go_on}; exit 4", name="0.sh")
    for number in range(1, 9):
        bash(hooks, f"echo x >{go_on}; sleep 1000", name=f"{number}.sh")
    with trio.fail_after(300):
        error = await refused(hooks, ProcessConfigReader(environment={"PATH": PATH}, limits=QUICK))
    assert error.hook == "hooks/0.sh"


async def test_discovery_of_a_package_has_a_total_time_limit(hooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "DISCOVERY_S", 0.3)
    bash(hooks, CONFIG % 1, name="0.sh")
    for number in range(1, 9):
        bash(hooks, "sleep 1000", name=f"{number}.sh")
    with trio.fail_after(300):
        error = await refused(hooks, ProcessConfigReader(environment={"PATH": PATH}, limits=QUICK))
    assert "within 0.3 s" in str(error)
    assert error.transient


async def test_config_runs_get_no_systemd_variables_and_write_no_bytecode(
    hooks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/n")
    bash(hooks, 'echo "onStartup: ${NOTIFY_SOCKET:+5}$PYTHONDONTWRITEBYTECODE"')
    (hook,) = await discovered(hooks, ProcessConfigReader())
    assert hook.config.on_startup == 1


BOTH: JsonObject = {
    "version": "v1",
    "hooks": [
        {"metadata": {"name": "twin"}, "onStartup": 5},
        {"metadata": {"name": "twin"}, "afterHelm": 1, "kubernetes": [{"name": "pods", "kind": "Pod"}]},
    ],
    "readiness": {"metadata": {"name": "readiness"}, "schedule": [{"crontab": "*/5 * * * * *"}]},
    "has_settings_check": True,
}


async def test_batch_executable_becomes_several_hooks(hooks: Path, reader: ProcessConfigReader) -> None:
    bash(hooks, CONFIG % 1, name="a.sh")
    path = batch(hooks, BOTH, name="main")
    bash(hooks, CONFIG % 2, name="z.sh")
    told = {"MODULE_NAME": "tuner"}
    found = await discover_hooks(hooks.parent, Layout.PACKAGE, reader, batch=("hooks/main",), environment=told)
    assert [(hook.name, hook.argv, hook.kind) for hook in found] == [
        ("hooks/a.sh", (), HookKind.SHELL),
        ("hooks/main:twin:0", ("hook", "run", "0"), HookKind.BATCH),
        ("hooks/main:twin:1", ("hook", "run", "1"), HookKind.BATCH),
        ("hooks/main-readiness", ("hook", "ready"), HookKind.READINESS),
        ("hooks/main-check", ("hook", "check"), HookKind.SETTINGS_CHECK),
        ("hooks/z.sh", (), HookKind.SHELL),
    ]
    assert {hook.executable for hook in found[1:5]} == {path}
    assert [hook.environment for hook in found] == [{}, told, told, told, told, {}]
    first, second, readiness, check = (hook.config for hook in found[1:5])
    assert (first.on_startup, second.after_helm, second.kubernetes[0].group) == (5, 1, "main")
    assert not second.kubernetes[0].keep_full_objects
    assert [binding.crontab for binding in readiness.schedules] == ["*/5 * * * * *"]
    assert check == UNBOUND


async def test_python_batch_runs_in_the_virtual_environment_beside_it(hooks: Path, reader: ProcessConfigReader) -> None:
    path = batch(hooks, {"version": "v1", "hooks": [{"metadata": {"name": "x"}}]}, name="main.py")
    (hooks / "venv/bin").mkdir(parents=True)
    (hooks / "venv/bin/python3").symlink_to(sys.executable)
    (hook,) = await discover_hooks(hooks.parent, Layout.PACKAGE, reader, batch=("hooks/main.py",))
    assert (hook.executable, hook.argv) == (hooks / "venv/bin/python3", (str(path), "hook", "run", "0"))


async def test_batch_config_run_gets_its_application_and_namespace(
    hooks: Path, tmp_path: Path, reader: ProcessConfigReader
) -> None:
    """A hook of an Application reads its namespace when it prints its configuration. So the configuration for one namespace
    must not be reused for another.
    """
    bash(hooks, """echo '[{"metadata":{"name":"'"$APPLICATION_NAMESPACE"'"},"onStartup":1}]'""", name="main")
    for namespace in ("a", "b"):
        told = {"APPLICATION_NAME": "x", "APPLICATION_NAMESPACE": namespace}
        (hook,) = await discover_hooks(hooks.parent, Layout.PACKAGE, reader, batch=["hooks/main"], environment=told)
        assert hook.name == f"hooks/main:{namespace}:0"


@pytest.mark.parametrize("program", ["true", "false"])
async def test_compiled_program_without_extension_must_answer_as_a_batch(
    program: str, hooks: Path, reader: ProcessConfigReader
) -> None:
    found = shutil.which(program, path="/usr/bin:/bin")
    assert found is not None
    shutil.copy(Path(found).resolve(), hooks / "main")
    error = await refused(hooks, reader)
    assert error.hook == "hooks/main"
    said = {"true": "it printed nothing for `hook config`", "false": "hook config ended with exit status 1"}[program]
    assert said in str(error)
    assert ("and answers --config, give its name an extension" in str(error)) == (program == "false")
    assert not error.transient


async def test_compiled_program_with_an_extension_is_one_hook(hooks: Path, reader: ProcessConfigReader) -> None:
    found = shutil.which("false", path="/usr/bin:/bin")
    assert found is not None
    shutil.copy(Path(found).resolve(), hooks / "main.bin")
    assert "--config ended with exit status 1" in str(await refused(hooks, reader))


async def test_script_without_extension_is_one_hook(hooks: Path, tmp_path: Path, reader: ProcessConfigReader) -> None:
    asked = tmp_path / "asked"
    bash(hooks, f'echo "$*" >>{asked}; echo "onStartup: 1"', name="main")
    await discovered(hooks, reader)
    assert asked.read_text() == "--config\n"


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        (
            {"readiness": {"onStartup": 1}},
            "hook hooks/b-readiness: expected at most one readiness in a package, found hooks/a-readiness",
        ),
        (
            {"has_settings_check": True},
            "hook hooks/b-check: expected at most one settings check in a package, found hooks/a-check",
        ),
    ],
)
async def test_package_with_two_readiness_or_settings_check_hooks_is_refused(
    extra: JsonObject, why: str, hooks: Path, reader: ProcessConfigReader
) -> None:
    for name in ("a", "b"):
        batch(hooks, {"version": "v1", "hooks": [], **extra}, name=name)
    with pytest.raises(HookError) as caught:
        await discover_hooks(hooks.parent, Layout.PACKAGE, reader, batch=("hooks/a", "hooks/b"))
    assert str(caught.value).startswith(why)


async def test_hooks_in_batches_count_against_the_limit(
    hooks: Path, reader: ProcessConfigReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "MAX_HOOKS", 2)
    batch(hooks, [{"metadata": {"name": "x"}, "onStartup": 1}] * 3, name="main")
    with pytest.raises(HookError, match="3 hooks, over the limit of 2 of one package"):
        await discover_hooks(hooks.parent, Layout.PACKAGE, reader, batch=("hooks/main",))


WEBHOOKS = """echo '{"configVersion":"v1","kubernetesValidating":[{"name":"a.b.c"}],"kubernetesMutating":[{"name":"m"}],
"kubernetesCustomResourceConversion":[{"name":"c","crdName":"x","conversions":[{"fromVersion":"a","toVersion":"b"}]}]}'"""


async def test_webhooks_without_an_admission_server_are_refused(hooks: Path, reader: ProcessConfigReader) -> None:
    bash(hooks, WEBHOOKS)
    error = await refused(hooks, reader)
    assert isinstance(error, HookConfigError)
    assert [problem.partition(",")[0] for problem in error.problems] == [
        "kubernetesValidating needs an admission server",
        "kubernetesMutating needs an admission server",
        "kubernetesCustomResourceConversion needs an admission server",
    ]
    (hook,) = await discover_hooks(hooks.parent, Layout.PACKAGE, reader, webhooks=True)
    assert [one.name for one in hook.config.mutating] == ["m"]
    assert (error.hook, error.transient) == ("hooks/10-hook.sh", False)


async def test_webhooks_of_module_folders_without_admission_are_a_warning(
    hooks: Path, reader: ProcessConfigReader, caplog: pytest.LogCaptureFixture
) -> None:
    bash(hooks, WEBHOOKS)
    assert len(await discovered(hooks, reader, Layout.MODULE_FOLDER)) == 1
    assert (
        "hook hooks/10-hook.sh: kubernetesMutating needs --admission, without which no request reaches it"
        in caplog.text
    )


async def test_warnings_of_a_configuration_are_logged(
    hooks: Path, reader: ProcessConfigReader, caplog: pytest.LogCaptureFixture
) -> None:
    bash(hooks, """echo '{"configVersion":"v1","kubernetes":[{"kind":"Pod","resynchronizationPeriod":"often"}]}'""")
    await discovered(hooks, reader)
    assert "hook hooks/10-hook.sh: kubernetes.resynchronizationPeriod is ignored: duration 'often'" in caplog.text


@pytest.mark.parametrize("inside", [True, False])
async def test_global_hooks_are_discovered_in_both_layouts(
    inside: bool, tmp_path: Path, reader: ProcessConfigReader
) -> None:
    folder = tmp_path / "operator" / ("hooks" if inside else "")
    folder.mkdir(parents=True)
    bash(folder, "echo 'beforeAll: 3'; [ ${PWD##*/} = operator ]")
    layout, scope = Layout.MODULE_FOLDER, HookScope.GLOBAL
    (hook,) = await discover_hooks(tmp_path / "operator", layout, reader, scope=scope)
    assert (hook.name, hook.config.before_all) == (f"{'hooks' if inside else GLOBAL_FOLDER}/10-hook.sh", 3)


async def test_package_hook_with_a_global_binding_is_refused(hooks: Path, reader: ProcessConfigReader) -> None:
    bash(hooks, "echo 'afterAll: 3'")
    assert "afterAll is a forbidden property: only global hooks may have it" in str(await refused(hooks, reader))
