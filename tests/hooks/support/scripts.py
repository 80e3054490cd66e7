"""Real hooks for the tests: small bash and Python programs, written to a folder."""

import json
import sys
from pathlib import Path

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.running.runner import HookRun

CONTEXTS: tuple[JsonObject, ...] = (
    {"binding": "onStartup"},
    {"binding": "pods", "type": "Synchronization", "objects": [{"filterResult": {"name": "ä<b>&"}}]},
)
VALUES: JsonObject = {"global": {"a": 1}, "sysctlTuner": {"sleep": 600}}
CONFIG_VALUES: JsonObject = {"sysctlTuner": {"sleep": 600}}


def write_hook(folder: Path, text: str, *, name: str = "10-hook.sh", mode: int = 0o755) -> Path:
    """Write a file with exactly this text and mode."""
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return path


def bash(folder: Path, script: str, *, name: str = "10-hook.sh") -> Path:
    """Write a hook in bash."""
    return write_hook(folder, f"#!/usr/bin/env bash\nset -euo pipefail\n{script}\n", name=name)


def python(folder: Path, script: str, *, name: str = "20-hook.py") -> Path:
    """Write a hook in Python, run by this interpreter."""
    return write_hook(folder, f"#!{sys.executable} -IS\nimport json, os, sys\n{script}\n", name=name)


def batch(folder: Path, document: JsonValue, *, name: str = "main") -> Path:
    """Write an executable that contains several hooks. With the arguments ``hook config`` it prints this document, otherwise it
    prints its arguments.
    """
    script = (
        f"said = {json.dumps(json.dumps(document))}\n"
        "if sys.argv[1:] == ['hook', 'config']:\n    print(said)\n"
        "else:\n    print(' '.join(sys.argv[1:]))\n"
    )
    return python(folder, script, name=name)


def run_of(executable: Path, *, cwd: Path | None = None, contexts: tuple[JsonObject, ...] = CONTEXTS) -> HookRun:
    """Return a run of this hook with `VALUES` and `CONFIG_VALUES`."""
    return HookRun(executable.name, executable, cwd or executable.parent, contexts, VALUES, CONFIG_VALUES)


def shown(value: object) -> str:
    """Return the JSON text of a document. Equal documents have equal texts."""
    return json.dumps(value, sort_keys=True)
