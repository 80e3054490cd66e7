"""The commands `wharfinger hook run` and `wharfinger hook config`, called as from a shell."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hooks.support.linting import asking, package
from tests.hooks.support.scripts import bash, batch, python, write_hook
from tests.process.children import is_alive
from wharfinger.__main__ import main
from wharfinger.formats.json.value import find, find_list
from wharfinger.formats.yaml.reader import read_yaml

ECHO = (
    "for name in ('BINDING_CONTEXT_PATH', 'VALUES_PATH', 'CONFIG_VALUES_PATH'):\n"
    "    print(open(os.environ[name]).read().strip())"
)


def test_hook_runs_in_its_own_folder_and_results_go_to_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hooks").mkdir()
    bash(
        tmp_path / "hooks",
        """
        echo "in $(basename "$PWD")"; echo warning >&2
        echo '{"operation":"Delete","kind":"pod","name":"p"}' >"$KUBERNETES_PATCH_PATH"
        echo '{"op":"add","path":"/global/a","value":"on"}' >"$VALUES_JSON_PATCH_PATH"
        """,
    )
    assert main(["hook", "run", "hooks/10-hook.sh"]) == 0
    out, err = capsys.readouterr()
    assert sorted(err.splitlines()) == ["in hooks", "warning"]
    document = read_yaml(out, what="stdout")
    assert find(document, "succeeded") is True
    assert find_list(document, "objectPatches") == [{"operation": "Delete", "kind": "pod", "name": "p"}]
    assert find_list(document, "valuesPatch") == [{"op": "add", "path": "/global/a", "value": "on"}]
    assert find_list(document, "configValuesPatch") == find_list(document, "metrics") == []


def test_hook_run_without_files_uses_on_startup_and_empty_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hook", "run", str(python(tmp_path, ECHO))]) == 0
    assert capsys.readouterr().err.splitlines() == ['[{"binding":"onStartup"}]', "{}", "{}"]


def test_contexts_and_values_are_read_from_yaml_or_json_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "context.yaml").write_text("- binding: a\n- {binding: b, type: Schedule}\n")
    (tmp_path / "values.yaml").write_text("global: {a: 1}\n")
    (tmp_path / "config.json").write_text('{"x": {"y": 2}}')
    hook = python(tmp_path, ECHO)
    files = ["--context", str(tmp_path / "context.yaml"), "--values", str(tmp_path / "values.yaml")]
    assert main(["hook", "run", str(hook), *files, "--config-values", str(tmp_path / "config.json"), "-o", "json"]) == 0
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        '[{"binding":"a"},{"binding":"b","type":"Schedule"}]',
        '{"global":{"a":1}}',
        '{"x":{"y":2}}',
    ]
    assert json.loads(out)["succeeded"] is True


def test_context_file_may_hold_one_object_and_values_file_may_be_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "context.yaml").write_text("binding: a\n")
    (tmp_path / "values.yaml").write_text("# nothing\n")
    arguments = ["--context", str(tmp_path / "context.yaml"), "--values", str(tmp_path / "values.yaml")]
    assert main(["hook", "run", str(python(tmp_path, ECHO)), *arguments]) == 0
    assert capsys.readouterr().err.splitlines() == ['[{"binding":"a"}]', "{}", "{}"]


def test_a_failed_hook_gives_exit_code_1_and_drops_its_values_patches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = bash(
        tmp_path,
        """
        echo '{"op":"add","path":"/a","value":1}' | tee "$VALUES_JSON_PATCH_PATH" >"$CONFIG_VALUES_JSON_PATCH_PATH"
        echo '{"name":"a","add":1}' >"$METRICS_PATH"
        echo one >&2; echo two >&2; exit 7
        """,
    )
    assert main(["hook", "run", str(hook), "-o", "json"]) == 1
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "one",
        "two",
        "error: the hook failed: exit status 7; its values patches are dropped",
    ]
    document = json.loads(out)
    assert (document["succeeded"], document["exit"]) == (False, "exit status 7")
    assert (document["valuesPatch"], document["configValuesPatch"]) == ([], [])
    assert document["metrics"] == [{"name": "a", "add": 1}]


def test_a_hanging_hook_is_ended_at_its_timeout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", "run", str(bash(tmp_path, "sleep 1000")), "--timeout", "0.5"]) == 1
    assert "error: the hook failed: deadline passed" in capsys.readouterr().err


def test_results_too_deep_for_yaml_are_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hook = python(
        tmp_path,
        "open(os.environ['METRICS_PATH'], 'w').write('{\"a\":' * 199 + '1' + '}' * 199)",
    )
    assert main(["hook", "run", str(hook)]) == 0
    assert json.loads(capsys.readouterr().out)["succeeded"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.sh"], "error: hook missing.sh: cannot start "),
        (["plain.sh"], "error: hook plain.sh: cannot start "),
        (["bad-results.sh"], "error: hook bad-results.sh: METRICS_PATH: "),
        (["good.sh", "--context", "missing.yaml"], "missing.yaml"),
        (["good.sh", "--context", "empty.yaml"], "error: empty.yaml: context 1: expected an object, found null"),
        (["good.sh", "--context", "no-contexts.yaml"], "error: no-contexts.yaml: a hook is run with at least one"),
        (["good.sh", "--values", "list.yaml"], "error: list.yaml: expected an object, found a list"),
        (["good.sh", "--config-values", "bad.yaml"], "error: bad.yaml: "),
    ],
)
def test_hook_run_reports_any_error_in_one_line_on_stderr(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    bash(tmp_path, ":", name="good.sh")
    bash(tmp_path, 'echo x >"$METRICS_PATH"', name="bad-results.sh")
    write_hook(tmp_path, "#!/bin/sh\n", name="plain.sh", mode=0o644)
    for name, text in (("empty", ""), ("no-contexts", "[]"), ("list", "[1]"), ("bad", "{")):
        (tmp_path / f"{name}.yaml").write_text(text)
    assert main(["hook", "run", *arguments]) == 1
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith("error: ")
    assert message in err


def test_cwd_option_sets_the_working_folder_of_the_hook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "elsewhere").mkdir()
    hook = bash(tmp_path, "pwd -P")
    assert main(["hook", "run", str(hook), "--cwd", str(tmp_path / "elsewhere")]) == 0
    assert capsys.readouterr().err.splitlines() == [str((tmp_path / "elsewhere").resolve())]


def test_a_python_hook_runs_in_the_virtual_environment_of_its_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hooks" / "venv" / "bin").mkdir(parents=True)
    write_hook(tmp_path / "hooks" / "venv" / "bin", '#!/bin/sh\necho "venv runs ${1##*/}"\n', name="python3")
    assert main(["hook", "run", str(python(tmp_path / "hooks", "exit(1)"))]) == 0
    assert capsys.readouterr().err.splitlines() == ["venv runs 20-hook.py"]


def test_hook_config_prints_the_parsed_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hook = bash(
        tmp_path, """[ "$*" = --config ]; echo 'configVersion: v1'; echo 'kubernetes: [{kind: Pod, group: g}]'"""
    )
    expected = {
        "configVersion": "v1",
        "kubernetes": [
            {
                "name": "kubernetes",
                "kind": "Pod",
                "executeHookOnEvent": ["Added", "Modified", "Deleted"],
                "executeHookOnSynchronization": True,
                "waitForSynchronization": True,
                "keepFullObjectsInMemory": True,
                "allowFailure": False,
                "queue": "main",
                "group": "g",
                "includeSnapshotsFrom": ["kubernetes"],
            }
        ],
    }
    assert main(["hook", "config", str(hook), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == expected
    assert main(["hook", "config", str(hook)]) == 0
    assert read_yaml(capsys.readouterr().out, what="stdout") == expected


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'configVersion: v3'", "its configuration is refused: 'configVersion' value 'v3' is unsupported"),
        ("exit 3", "--config ended with exit status 3"),
    ],
)
def test_a_refused_configuration_is_reported_in_one_line_on_stderr(
    script: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hook", "config", str(bash(tmp_path, script))]) == 1
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith("error: hook 10-hook.sh: ")
    assert message in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["config"],
        ["run"],
        ["run", "x", "--timeout", "0"],
        ["run", "x", "--timeout", "soon"],
        ["run", "x", "--timeout", "inf"],
    ],
)
def test_wrong_usage_gives_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["hook", *arguments])
    assert caught.value.code == 2
    assert "usage: wharfinger hook" in capsys.readouterr().err


@pytest.mark.slow
def test_closed_stderr_does_not_stop_the_hook(tmp_path: Path) -> None:
    hook = bash(tmp_path, 'for i in $(seq 20000); do echo $i; done; echo \'{"name":"a","add":1}\' >"$METRICS_PATH"')
    command = [sys.executable, "-m", "wharfinger", "hook", "run", str(hook), "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        assert child.stdout is not None
        child.stderr.readline()
        child.stderr.close()
        assert json.loads(child.stdout.read())["metrics"] == [{"name": "a", "add": 1}]
        assert child.wait() == 0


HEARS_SIGHUP = """\
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from wharfinger.__main__ import main
sys.exit(main())
"""
"""The command line in a process that does not ignore SIGHUP, even if the tests are run under nohup."""


@pytest.mark.sampled
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_hook_and_its_children(number: signal.Signals, tmp_path: Path) -> None:
    hook = bash(tmp_path, "sleep 1000 & echo $$ $!; wait")
    command = [sys.executable, "-c", HEARS_SIGHUP, "hook", "run", str(hook)]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as child:
        assert child.stderr is not None
        pids = [int(pid) for pid in child.stderr.readline().split()]
        assert len(pids) == 2
        child.send_signal(number)
        out, err = child.communicate()
    assert (child.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "error: interrupted; the hook and all processes that it started were ended"
    assert not any(is_alive(pid) for pid in pids)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["10-hook.sh"]


def test_hook_config_reports_all_refused_hooks_of_a_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "package.yaml": "name: web\nversion: 1.0.0\nbatchHooks: [hooks/main]\n",
        "hooks/a.sh": asking("configVersion: v1\nonStartup: 1"),
        "hooks/b.sh": asking("configVersion: v1\nkubernetes: [{kind: Pod, jqFilter: '.a |'}]"),
        "hooks/c.sh": asking("configVersion: v2"),
        "hooks/off.sh": "",
    }
    folder = package(tmp_path, files)
    batch(folder / "hooks", {"version": "v1", "hooks": [{"metadata": {"name": "one"}, "beforeHelm": 5}]})
    assert main(["hook", "config", str(folder), "-o", "json"]) == 1
    out, err = capsys.readouterr()
    assert [(hook["name"], hook["kind"]) for hook in json.loads(out)["hooks"]] == [
        ("hooks/a.sh", "shell"),
        ("hooks/main:one:0", "batch"),
    ]
    assert json.loads(out)["hooks"][1]["config"] == {"configVersion": "v1", "beforeHelm": 5}
    warned, b, c = err.splitlines()
    assert warned == "warning: hooks/off.sh: no executable permissions, chmod +x is required to run this hook"
    assert b.startswith(
        "error: hook hooks/b.sh: its configuration is refused: kubernetes.jqFilter is invalid: jq: error:"
    )
    assert c.startswith("error: hook hooks/c.sh: ")


def test_hook_config_of_a_folder_without_package_yaml_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none").mkdir()
    assert main(["hook", "config", str(tmp_path / "none")]) == 1
    out, err = capsys.readouterr()
    assert (out, "expected package.yaml" in err) == ("", True)


def test_global_option_accepts_bindings_of_global_hooks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hook = write_hook(tmp_path, asking("configVersion: v1\nbeforeAll: 1"))
    assert main(["hook", "config", str(hook)]) == 1
    assert "only global hooks may have it" in capsys.readouterr().err
    assert main(["hook", "config", "--global", str(hook), "-o", "json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert main(["hook", "config", "--global", str(tmp_path), "-o", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["hooks"]
    assert found["config"] == alone == {"configVersion": "v1", "beforeAll": 1}


def test_shell_lib_command_prints_and_installs_the_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", "shell-lib"]) == 0
    assert (Path(capsys.readouterr().out.strip()) / "shell_lib.sh").is_file()
    assert main(["hook", "shell-lib", "--install", str(tmp_path)]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert tmp_path / "shell_lib.sh" in written
    assert all(path.is_file() for path in written)
    (tmp_path / "file").write_text("")
    assert main(["hook", "shell-lib", "--install", str(tmp_path / "file")]) == 1
    assert "File exists" in capsys.readouterr().err
