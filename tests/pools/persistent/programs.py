"""Helpers for tests of persistent programs: programs that serve runs in several ways, and a pool of them."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.process.children import PATH
from wharfinger.pools.memory.budget import open_memory_budget
from wharfinger.pools.persistent.programs import PersistentPrograms, PersistentRun, open_persistent_programs
from wharfinger.process.command import Command, Limits
from wharfinger.process.ledger import ProcessLedger

GIB = 1024**3
LIMITS = Limits(wall_s=60.0, stdout_bytes=100_000, term_grace_s=0.05, cancel_grace_s=0.05)

SERVE = """
import json, os, sys, time
runs, answered = 0, set()
def answer(number, status=0, **more):
    answered.add(number)
    print(json.dumps({"run": number, "status": status, **more}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    variables, number = asked["environment"], asked["run"]
    runs += 1
    print(os.getpid(), runs, file=sys.stderr, flush=True)
    exec(variables.get("DO", "pass"))
    if number not in answered: answer(number)
"""
"""A program that executes the code in the run's variable DO, and answers unless that code has answered."""


def serving(folder: Path, text: str = SERVE, name: str = "program") -> Command:
    """Write a Python program, and return the command that runs it."""
    program = folder / name
    program.write_text(f"#!{sys.executable} -IS\n{text}\n")
    program.chmod(0o755)
    return Command((str(program),), folder, {"PATH": PATH})


def run_of(command: Command, do: str = "pass", owner: str = "hook") -> PersistentRun:
    """Return a run in which the program executes this code."""
    return PersistentRun(owner, command, {"DO": do})


@asynccontextmanager
async def opened(ledger: ProcessLedger | None = None, limit: int = GIB) -> AsyncGenerator[PersistentPrograms]:
    """Open a pool of programs."""
    async with open_memory_budget(limit) as budget, open_persistent_programs(ledger, budget) as programs:
        yield programs
