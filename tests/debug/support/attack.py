"""An attack on the debug socket, made by a separate process.

200 clients send one byte at a time and never complete a request. Other clients send garbage, halves of requests, or requests
that are too large, or they disconnect immediately.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SLOW: Final = 200
_ATTACK: Final = """
import itertools, os, socket, sys
path, slow = sys.argv[1], int(sys.argv[2])
def connect():
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(1)
    client.connect(path)
    return client
bad = [
    os.urandom(4096),
    b"GET / HTTP/1.1\\r\\nHost: x\\r\\nX: " + b"a" * 100_000 + b"\\r\\n\\r\\n",
    b"POST /api/v1/packages/validate/x HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 99999999999\\r\\n\\r\\n" + b"a" * 65536,
    b"GET /healthz HTTP/1.1\\r\\nHo",
    b"",
]
clients = {}
print("ready", flush=True)
for turn in itertools.count():
    for number in range(slow):
        try:
            clients.setdefault(number, None) or clients.__setitem__(number, connect())
            clients[number].send(b"GET / HTTP/1.1\\r\\nHost: x\\r\\nX: y"[turn % 30 : turn % 30 + 1])
        except OSError:
            old = clients.pop(number, None)
            if old is not None:
                old.close()
    for data in bad:
        try:
            client = connect()
            client.sendall(data)
            client.close()
        except OSError:
            pass
"""


@contextmanager
def attack(path: Path) -> Iterator[None]:
    """Attack a socket without a pause while the block runs."""
    words = [sys.executable, "-c", _ATTACK, str(path), str(SLOW)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()
