"""`wharfinger hook run`: what it shows beside the results; the run itself is in test_commands.py."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.hooks.linting import package
from tests.hooks.scripts import bash, batch, python
from wharfinger.__main__ import main

ADD = """echo '{"op":"add","path":"/web/a","value":1}' >"$VALUES_JSON_PATCH_PATH" """


def test_the_values_after_the_run_or_their_difference_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_a_patch_outside_of_the_packages_own_section_is_refused_as_by_the_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = package(tmp_path, {"hooks/x.md": ""}, name="other")
    (folder / "package.yaml").write_text("name: other\nversion: 1.0.0\n")
    assert main(["hook", "run", str(bash(folder / "hooks", ADD))]) == 1
    out, err = capsys.readouterr()
    assert "'/web/a' is not below /other" in err
    assert "\nvalues:" not in out
    assert main(["hook", "run", str(bash(folder / "hooks", ADD.replace("/web/", "/other/")))]) == 0


def test_what_a_webhook_answers_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = """
        echo '{"allowed":false,"message":"no"}' >"$VALIDATING_RESPONSE_PATH"
        echo '{"failedMessage":"no"}' >"$CONVERSION_RESPONSE_PATH"
        """
    assert main(["hook", "run", str(bash(tmp_path, script)), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["responses"] == {
        "admission": {"allowed": False, "message": "no"},
        "conversion": {"failedMessage": "no"},
    }


def test_contexts_come_from_standard_input_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"- binding: a\n")))
    hook = python(tmp_path, "print(open(os.environ['BINDING_CONTEXT_PATH']).read())")
    assert main(["hook", "run", str(hook), "--context", "-"]) == 0
    assert capsys.readouterr().err.strip() == '[{"binding":"a"}]'


def test_one_of_several_hooks_in_an_executable_is_run_by_its_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = batch(tmp_path, {"version": "v1", "hooks": []})
    assert main(["hook", "run", str(hook), "--batch", "3"]) == 0
    assert capsys.readouterr().err.strip() == "hook run 3"
    for wrong in ("-1", "x", "99999"):
        with pytest.raises(SystemExit):
            main(["hook", "run", str(hook), f"--batch={wrong}"])
        assert "is not the index of a hook" in capsys.readouterr().err


def test_hooks_find_the_library_for_bash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", "run", str(bash(tmp_path, 'ls "$FRAMEWORK_DIR"'))]) == 0
    assert "shell_lib.sh" in capsys.readouterr().err
