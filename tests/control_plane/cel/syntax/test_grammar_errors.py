"""Syntax errors of texts that are not CEL expressions."""

import subprocess
import sys

import pytest

from wharfinger.control_plane.cel.syntax import grammar_errors
from wharfinger.control_plane.cel.syntax.grammar_errors import TOO_DEEP, syntax_errors


def test_syntax_errors_have_positions() -> None:
    assert syntax_errors("1 +").startswith("ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting")
    assert "mismatched input 'false' expecting IDENTIFIER" in syntax_errors("true.false")
    assert "'?'" in syntax_errors("a[")


def test_an_expression_accepted_by_the_library_is_reported_as_too_deep() -> None:
    assert syntax_errors("1 + 1") == TOO_DEEP


@pytest.mark.parametrize("command", [("/bin/false",), ("/there/is/no/such/program",)], ids=["fails", "is missing"])
def test_a_failed_child_process_gives_a_syntax_error(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_errors, "_COMMAND", command)
    assert syntax_errors(f"{command} is no expression") == "ERROR: <input>:1:1: Syntax error"


def test_invalid_unicode_gives_a_syntax_error() -> None:
    assert syntax_errors("'\ud800'") == "ERROR: <input>:1:1: Syntax error"


@pytest.mark.slow
def test_the_server_never_loads_the_library() -> None:
    program = (
        "import sys\n"
        "import wharfinger.control_plane.commands, wharfinger.control_plane.serving, wharfinger.runtime.daemon.daemon\n"
        "from wharfinger.control_plane.cel.compiling import judged\n"
        "assert judged('1 +', {}, lambda *_: None).startswith('ERROR')\n"
        "print('cel_expr_python' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
