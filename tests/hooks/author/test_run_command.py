"""Further output of `wharfinger hook run`. The run and its results are tested in test_commands.py."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.hooks.support.linting import package
from tests.hooks.support.scripts import bash, batch, python
from wharfinger.__main__ import main

ADD = """echo '{"op":"add","path":"/web/a","value":1}' >"$VALUES_JSON_PATCH_PATH" """


def test_values_after_the_run_are_shown_whole_or_as_a_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hook = bash(tmp_path, ADD)
    (tmp_path / "values.yaml").write_text("web: {b: 2}\n")
    arguments = ["hook", "run", str(hook), "--values", str(tmp_path / "values.yaml")]
    assert main([*arguments, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"] == {"web": {"a": 1, "b": 2}}
    assert main([*arguments, "--diff"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "--- values",
        "+++ values after the hook",
        "@@ -1,2 +1,3 @@",
        " web:",
        "+  a: 1",
        "   b: 2",
    ]


def test_a_patch_outside_of_the_packages_section_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = package(tmp_path, {"hooks/x.md": ""}, name="other")
    (folder / "package.yaml").write_text("name: other\nversion: 1.0.0\n")
    assert main(["hook", "run", str(bash(folder / "hooks", ADD))]) == 1
    out, err = capsys.readouterr()
    assert "'/web/a' is not below /other" in err
    assert "\nvalues:" not in out
    assert main(["hook", "run", str(bash(folder / "hooks", ADD.replace("/web/", "/other/")))]) == 0


def test_webhook_answers_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = """
        echo '{"allowed":false,"message":"no"}' >"$VALIDATING_RESPONSE_PATH"
        echo '{"failedMessage":"no"}' >"$CONVERSION_RESPONSE_PATH"
        """
    assert main(["hook", "run", str(bash(tmp_path, script)), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["responses"] == {
        "admission": {"allowed": False, "message": "no"},
        "conversion": {"failedMessage": "no"},
    }


def test_contexts_are_read_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"- binding: a\n")))
    hook = python(tmp_path, "print(open(os.environ['BINDING_CONTEXT_PATH']).read())")
    assert main(["hook", "run", str(hook), "--context", "-"]) == 0
    assert capsys.readouterr().err.strip() == '[{"binding":"a"}]'


def test_batch_option_runs_one_hook_of_an_executable_by_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = batch(tmp_path, {"version": "v1", "hooks": []})
    assert main(["hook", "run", str(hook), "--batch", "3"]) == 0
    assert capsys.readouterr().err.strip() == "hook run 3"
    for wrong in ("-1", "x", "99999"):
        with pytest.raises(SystemExit):
            main(["hook", "run", str(hook), f"--batch={wrong}"])
        assert "is not the index of a hook" in capsys.readouterr().err


def test_framework_dir_of_a_hook_holds_the_shell_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", "run", str(bash(tmp_path, 'ls "$FRAMEWORK_DIR"'))]) == 0
    assert "shell_lib.sh" in capsys.readouterr().err


SCHEMA = "type: object\nproperties: {ticks: {type: integer, default: 0}, port: {type: integer}}\n"


def clock(folder: Path, script: str) -> Path:
    """Write a hook in a package called ``clock``. One setting has a default in the schema, and another one in values.yaml."""
    files = {
        "package.yaml": "name: clock\nversion: 1.0.0\n",
        "openapi/settings.yaml": SCHEMA,
        "values.yaml": "port: 80\n",
    }
    return python(package(folder, {**files, "hooks/x.md": ""}, name="clock") / "hooks", script)


SHOWN = (
    "import json\nprint(json.dumps([json.load(open(os.environ[n])) for n in ('VALUES_PATH', 'CONFIG_VALUES_PATH')]))"
)


def test_hook_run_without_values_uses_the_values_of_the_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = clock(tmp_path, SHOWN)
    assert main(["hook", "run", str(hook)]) == 0
    values, given = json.loads(capsys.readouterr().err)
    assert values["clock"]["ticks"] == 0
    assert (values["global"], given) == ({}, {"global": {}, "clock": {}})


def test_user_values_override_the_values_of_the_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hook = clock(tmp_path, SHOWN)
    (tmp_path / "own.yaml").write_text("clock: {port: 8080}\nglobal: {zone: a}\n")
    assert main(["hook", "run", str(hook), "--config-values", str(tmp_path / "own.yaml")]) == 0
    values, given = json.loads(capsys.readouterr().err)
    assert (values["clock"]["ticks"], values["clock"]["port"], values["global"]) == (0, 8080, {"zone": "a"})
    assert given == {"clock": {"port": 8080}, "global": {"zone": "a"}}
    (tmp_path / "values.yaml").write_text("clock: {ticks: 7}\n")
    assert main(["hook", "run", str(hook), "--values", str(tmp_path / "values.yaml")]) == 0
    assert json.loads(capsys.readouterr().err) == [{"clock": {"ticks": 7}}, {}]


def test_hook_of_an_invalid_package_runs_only_with_given_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = clock(tmp_path, "")
    (tmp_path / "clock" / "openapi" / "settings.yaml").write_text("type: nothing\n")
    assert main(["hook", "run", str(hook)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: the values of the hook's package: ")
    assert err.endswith("; correct the package, or give values with --values\n")
    (tmp_path / "values.yaml").write_text("")
    assert main(["hook", "run", str(hook), "--values", str(tmp_path / "values.yaml")]) == 0


def test_global_hooks_see_the_global_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"openapi/config-values.yaml": SCHEMA, "hooks/x.md": ""}
    hook = python(package(tmp_path, files, name="global-hooks") / "hooks", SHOWN)
    assert main(["hook", "run", str(hook)]) == 0
    assert json.loads(capsys.readouterr().err) == [{"global": {"ticks": 0}}, {"global": {}}]


def test_traceback_of_a_failed_hook_is_shown_once_and_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = python(tmp_path, "def deep():\n    raise KeyError('ticks')\ndeep()")
    assert main(["hook", "run", str(hook)]) == 1
    out, err = capsys.readouterr()
    assert (out + err).count("KeyError: 'ticks'") == 1
    assert "    raise KeyError('ticks')\n" in err
    assert "error: the hook failed: exit status 1; its values patches are dropped" in err


def test_control_characters_of_a_hooks_output_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
    metric = f"open(os.environ['METRICS_PATH'], 'w').write(json.dumps({{'name': {command!r}}}))"
    script = f"print({command!r}); print('a\\tb'); {metric}"
    for form in ("json", "yaml"):
        assert main(["hook", "run", str(python(tmp_path, script)), "-o", form]) in {0, 1}
        out, err = capsys.readouterr()
        assert not [letter for letter in out + err if letter in "\x1b\x07\x9b\u202e"]
        assert "\\x1b]0;owned\\x07\\x1b[2J\\x9b31m\\u202e\na\tb\n" in err


NAMES = """
told = ("APPLICATION_NAME", "APPLICATION_NAMESPACE", "MODULE_NAME")
print(*(f"{name}={os.environ[name]}" for name in told if name in os.environ))
"""


@pytest.mark.parametrize(
    ("files", "options", "told"),
    [
        (
            {"package.yaml": "name: shop\ntype: Application\n"},
            (),
            "APPLICATION_NAME=shop APPLICATION_NAMESPACE=default",
        ),
        (
            {"package.yaml": "name: shop\ntype: Application\n"},
            ("--hook-env", "APPLICATION_NAMESPACE=prod", "--hook-env", "APPLICATION_NAME=till"),
            "APPLICATION_NAME=till APPLICATION_NAMESPACE=prod",
        ),
        ({"package.yaml": "name: shop\ntype: Module\n"}, (), "MODULE_NAME=shop"),
        ({"package.yaml": "name: shop\n"}, (), "MODULE_NAME=shop"),
        ({"package.yaml": "tpye: Module\n"}, ("--values", "none.yaml"), ""),
    ],
)
def test_a_hook_gets_sample_name_variables_as_from_the_daemon(
    files: dict[str, str],
    options: tuple[str, ...],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "none.yaml").write_text("")
    hook = python(package(tmp_path, {**files, "hooks/x.md": ""}, name="folder") / "hooks", NAMES)
    assert main(["hook", "run", str(hook), *options]) == 0
    assert capsys.readouterr().err.strip() == told


def test_a_global_hook_is_given_the_name_of_the_global_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = python(package(tmp_path, {"hooks/x.md": ""}, name="global-hooks") / "hooks", NAMES)
    assert main(["hook", "run", str(hook)]) == 0
    assert capsys.readouterr().err == "MODULE_NAME=global\n"
