"""Checks of hook files without running them."""

import os
from pathlib import Path

import pytest

from wharfinger.hooks.author.lint_scripts import MAX_SCRIPT, lint_enabled, lint_script


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"#!/bin/bash\necho\n", []),
        (b"#!/usr/bin/env bash\nif true; then\n", ["x:3: error: bash: syntax error: unexpected end of file"]),
        (b"#!/bin/sh\necho )\n", ["x:2: error: sh: "]),
        (b"#! /usr/bin/env -S bash -e\n((\n", ["x:2: error: bash: "]),
        (b"#!/usr/bin/python3\nif\n", []),
        (b"#!/bin/bash\necho `\n", ["x:2: error: bash: unexpected EOF"]),
        (
            b"#!/bin/bash\ncat <<END\n",
            ["x:2: warning: bash: warning: here-document at line 2 delimited by end-of-file"],
        ),
        (b"", ["x:1: error: it is empty"]),
        (b" \n", ["x:1: error: it is empty"]),
        (b"echo\n", ["x:1: error: no shebang"]),
        (b"\xef\xbb\xbf#!/bin/bash\n", ["x:1: error: no shebang"]),
        (b"#!/bin/bash\r\necho\r\n", ["x:1: error: its lines end with CRLF"]),
        (b"#!/bin/bash\necho\necho\r\n", ["x:3: warning: the line ends with CRLF"]),
        (b"\x7fELF\x00", []),
        (b"#!/bin/bash\n" + b"(\n" * MAX_SCRIPT, []),
    ],
)
async def test_faults_of_scripts_are_reported_without_running_them(
    tmp_path: Path, text: bytes, found: list[str]
) -> None:
    (tmp_path / "x").write_bytes(text)
    told = [str(each) for each in await lint_script(tmp_path / "x", "x")]
    assert len(told) == len(found), told
    assert all(line.startswith(beginning) for line, beginning in zip(told, found, strict=True)), told


async def test_an_unreadable_script_is_reported(tmp_path: Path) -> None:
    assert [str(each) for each in await lint_script(tmp_path / "x", "x")] == [
        "x: error: it cannot be read: No such file or directory"
    ]


async def test_syntax_is_not_checked_without_bash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_text("#!/bin/bash\nif\n")
    monkeypatch.setenv("PATH", os.devnull)
    assert await lint_script(tmp_path / "x", "x") == []


async def test_enabled_script_is_checked_and_must_be_executable(tmp_path: Path) -> None:
    assert await lint_enabled(tmp_path) == []
    script = tmp_path / "enabled"
    script.write_text("#!/bin/bash\nif\n")
    (told,) = await lint_enabled(tmp_path)
    assert str(told).startswith("enabled:1: warning: it is not executable")
    script.chmod(0o755)
    (told,) = await lint_enabled(tmp_path)
    assert str(told).startswith("enabled:3: error: bash: syntax error")
