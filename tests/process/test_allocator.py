"""The settings of the memory allocator. The tests use a child process, because the settings cannot be undone."""

import os
import subprocess
import sys

HEAPS = """
import ctypes, sys, threading
from wharfinger.process.allocator import return_freed_memory
if sys.argv[1] == "set":
    return_freed_memory()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
together, places = threading.Barrier(8), []
def take():
    together.wait()
    places.append(library.malloc(1000))
    together.wait()
threads = [threading.Thread(target=take) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len({place >> 26 for place in places}))
"""


def heaps(how: str) -> int:
    """Return the number of heaps in which eight threads allocate. Each heap is an aligned range of 64 MiB of addresses."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", HEAPS, how], capture_output=True, text=True, check=True, env=environment
    )
    return int(done.stdout)


def test_threads_share_one_heap() -> None:
    assert heaps("set") == 1
    assert heaps("leave") > 1
