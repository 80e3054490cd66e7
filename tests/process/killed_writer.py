"""A process that writes rows, reports each row, and is killed with SIGKILL at a random moment."""

import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

PATIENCE_S = 60
MAX_LINES = 400


def killed_at_random(script: str, arguments: Sequence[str], chance: random.Random) -> str:
    """Run a Python script until it has written a random number of lines, and kill it at that moment.

    Return its output, whose last line may be incomplete.
    """
    lines = chance.randrange(1, MAX_LINES)
    said = b""
    with subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        while said.count(b"\n") < lines:
            ready, _, _ = select.select([writer.stdout], [], [], PATIENCE_S)
            chunk = os.read(writer.stdout.fileno(), 64) if ready else b""
            assert chunk, f"the writer ended, or is stuck, after {said!r}"
            said += chunk
        writer.send_signal(signal.SIGKILL)
        said += writer.stdout.read()
        assert writer.wait() == -signal.SIGKILL
    return said.decode()


def acknowledged(said: str) -> int:
    """Return the last number that was reported completely, or 0 if there is none."""
    whole = said.split("\n")[:-1]
    return int(whole[-1]) if whole else 0
