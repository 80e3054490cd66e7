"""The thread that samples the stacks of all other threads, while the event loop continues.

A sample occupies the interpreter for well under a millisecond. Between two samples the thread only sleeps, and keeps no frame,
because a frame keeps the variables of its function alive.
"""

import sys
import threading
import time
from typing import Final

from wharfinger.debug.profile.profile import ProfileSnapshot
from wharfinger.debug.profile.samples import ProcessorTimes, Samples

INTERVAL_S: Final = 1 / 101
"""The time between two samples: about 10 milliseconds, but not in step with timers of whole milliseconds."""


class Sampler:
    """One profile. Call ``run`` once, in a thread of its own; ``stop`` may be called at any time."""

    def __init__(self, seconds: float, *, interval_s: float = INTERVAL_S) -> None:
        self._seconds = seconds
        self._interval_s = interval_s
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the profile early."""
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        """True once `stop` was called."""
        return self._stopped.is_set()

    def run(self) -> ProfileSnapshot:
        """Sample until the time is over or `stop` is called, and return the profile."""
        main, own = threading.main_thread().ident or 0, threading.get_ident()
        samples = Samples(main)
        main_clock = time.pthread_getcpuclockid(main)
        main_cpu, all_cpu, own_cpu = time.clock_gettime(main_clock), time.process_time(), time.thread_time()
        began = last = time.perf_counter()
        while last - began < self._seconds and not self._stopped.wait(self._interval_s):
            now = time.perf_counter()
            samples.add({thread: frame for thread, frame in sys._current_frames().items() if thread != own}, now - last)  # noqa: SLF001 - the documented way
            last = now
        spent_main, spent_own = time.clock_gettime(main_clock) - main_cpu, time.thread_time() - own_cpu
        others = max(time.process_time() - all_cpu - spent_main, spent_own)
        return samples.profile(last - began, ProcessorTimes(spent_main, others, spent_own))
