"""The resource usage during a part of a process's life, compared with the process's own measurements."""

import subprocess
import sys

import pytest

from wharfinger.pools.persistent.usage import begin_usage, usage_since

WORK = """
import os, sys, time
for line in sys.stdin:
    end = time.process_time() + float(line)
    while time.process_time() < end: pass
    if os.fork() == 0:
        end = time.process_time() + float(line)
        while time.process_time() < end: pass
        os._exit(0)
    os.wait()
    print('done', flush=True)
"""


def test_the_usage_of_a_run_includes_child_processes() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        found = []
        for seconds in (0.2, 0.0):
            before = begin_usage(process.pid)
            process.stdin.write(f"{seconds}\n")
            process.stdout.readline()
            found.append(usage_since(process.pid, before))
        process.communicate()
    much, little = found
    assert 0.35 < much.user_s + much.system_s < 1.0
    assert 0.0 <= little.user_s + little.system_s < 0.1
    assert min(much.user_s, much.system_s, little.user_s, little.system_s) >= 0.0
    assert much.max_rss_bytes > 1_000_000


def test_an_ended_process_has_no_usage() -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
    with pytest.raises(OSError, match=str(process.pid)):
        begin_usage(process.pid)
