"""The limits of a worker process, as the kernel reports them afterwards."""

import json
import subprocess
import sys

from wharfinger.formats import worker_limits


def test_limits_of_a_process() -> None:
    script = (
        "import json, os, resource; from wharfinger.formats.worker_limits import limit_process; limit_process();"
        "print(json.dumps([resource.getrlimit(x)[0] for x in (resource.RLIMIT_AS, resource.RLIMIT_CORE,"
        " resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)] + [dict(os.environ)]))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [worker_limits.ADDRESS_SPACE_BYTES, 0, 0, worker_limits.OPEN_FILES, {}]
