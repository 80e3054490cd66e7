"""Limits of a worker process, in which a library runs foreign programs: rules in CEL, or jq filters."""

import math
import os
import resource
from typing import Final

ADDRESS_SPACE_BYTES: Final = 1024 * 1024 * 1024
OPEN_FILES: Final = 16


def limit_process() -> None:
    """Limit the process's memory and open files, forbid it to write files and core dumps, and empty its environment."""
    os.environ.clear()
    for limit, value in (
        (resource.RLIMIT_AS, ADDRESS_SPACE_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
    ):
        _, most = resource.getrlimit(limit)
        lowered = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(limit, (lowered, lowered))


def allow_cpu_time(seconds: int) -> None:
    """Allow the next request ``seconds`` of CPU time, and up to a second more. Then the signal SIGXCPU ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
