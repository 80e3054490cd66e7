"""The child process of the fuzzer, which may crash. It runs a batch of inputs on one reader, with limits on memory and CPU time.

Before each input, its index is written to a file that is mapped into memory. So the parent knows which input killed the
process, whatever the cause. The harness prints the command that reproduces a finding:
``python -m tests.formats.support.fuzz_child TARGET SEED FIRST LAST``.
"""

import json
import mmap
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from tests.formats.support.fuzz_inputs import make_input
from tests.formats.support.fuzz_readers import BAD_TARGETS, TARGETS
from wharfinger.formats.errors import FormatError

ADDRESS_SPACE = 1024**3
"""The limit of address space for the process; the interpreter with all imports needs a fifth of it."""


def run(target_name: str, seed: int, first: int, last: int, progress: mmap.mmap | None, cpu_seconds: float) -> int:
    """Run the inputs from ``first`` to ``last`` (exclusive). Print a line of JSON with the counts or the finding."""
    target = (TARGETS | BAD_TARGETS)[target_name]
    counts = {"accepted": 0, "refused": 0}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        folder = Path(name)
        for index in range(first, last):
            data = make_input(target.corpus, seed, index)
            if progress is not None:
                progress[:8] = index.to_bytes(8, "little")
            # The timer counts CPU time, because a busy machine is not a hang. Its signal kills the process.
            signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
            try:
                target.run(data, folder)
            except FormatError:
                counts["refused"] += 1
            except BaseException as error:  # noqa: BLE001 - every exception is a finding
                signal.setitimer(signal.ITIMER_PROF, 0)
                kind = "memory" if isinstance(error, MemoryError) else "exception"
                print(json.dumps({"kind": kind, "index": index, "detail": _described(error)}))  # noqa: T201
                return 1
            else:
                counts["accepted"] += 1
            signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps({"kind": "done", **counts}))  # noqa: T201
    return 0


def _described(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, limit=-8))[-4000:]


def main(argv: list[str]) -> int:
    """Run the program with the arguments ``TARGET SEED FIRST LAST [PROGRESS-FILE CPU-SECONDS]``."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    cpu_seconds = float(argv[5]) if len(argv) > 5 else 10.0
    # This limit ends the batch even if something turns the timer off.
    batch = int(cpu_seconds * 20) + 600
    resource.setrlimit(resource.RLIMIT_CPU, (batch, batch))
    if len(argv) <= 4:
        return run(argv[0], int(argv[1]), int(argv[2]), int(argv[3]), None, cpu_seconds)
    with Path(argv[4]).open("r+b") as file, mmap.mmap(file.fileno(), 8) as progress:
        return run(argv[0], int(argv[1]), int(argv[2]), int(argv[3]), progress, cpu_seconds)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
