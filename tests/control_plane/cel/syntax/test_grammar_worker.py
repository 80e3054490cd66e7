"""The child process that finds the syntax errors of CEL expressions."""

import subprocess
import sys

from wharfinger.control_plane.cel.syntax import grammar_worker
from wharfinger.control_plane.cel.syntax.grammar_worker import compile_errors


def test_the_worker_returns_the_errors_of_the_library() -> None:
    assert "Syntax error: mismatched input '<EOF>' expecting" in compile_errors("1 +")
    assert compile_errors("1 + 1") == ""


def test_the_worker_is_a_program() -> None:
    command = [sys.executable, "-I", "-m", grammar_worker.__name__]
    found = subprocess.run(command, input=b"a[", capture_output=True, check=True, env={})
    assert found.stdout.decode() == compile_errors("a[")
