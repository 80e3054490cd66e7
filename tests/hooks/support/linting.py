"""Helpers for tests of commands for package authors. They write a package to a folder, and return the findings of `wharfinger
package lint`.
"""

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from wharfinger.__main__ import main

PACKAGE = "name: web\nversion: 1.0.0\ntype: Application\n"
SETTINGS = "type: object\nx-config-version: 1\nproperties:\n  replicas: {type: integer, default: 1}\n"


def package(tmp_path: Path, files: Mapping[str, str], *, name: str = "web") -> Path:
    """Write a package's folder with these files. ``enabled`` and the files in ``hooks/`` are executable, unless the name of a
    file in ``hooks/`` begins with ``off``.
    """
    folder = tmp_path / name
    for path, text in {"package.yaml": PACKAGE, **files}.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
        if path == "enabled" or (path.startswith("hooks/") and not target.name.startswith("off")):
            target.chmod(0o755)
    return folder


def asking(config: str, *, rest: str = "") -> str:
    """Return a hook in bash that prints this configuration when it is run with ``--config``."""
    printed = f"cat <<'END'\n{textwrap.dedent(config)}\nEND\n"
    return f'#!/usr/bin/env bash\nif [ "${{1:-}}" = --config ]; then\n{printed}exit\nfi\n{rest}\n'


def lint(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """Return the exit code and the findings, without the summary."""
    code = main(["package", "lint", str(folder), *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out.splitlines()[:-1]
