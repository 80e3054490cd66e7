"""The kubeconfig that gives clients access to a served control plane: a secret, and written like one.

kubectl and helm drop tokens where the server is plain HTTP, but send what stands in its URL; so the token is in both
places. That is as good as the file's permissions: readable by its owner only, replaced as a whole, never half written.
"""

import os
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import quote

from wharfinger.formats.json_value import JsonObject, encode_json

USER: Final = "wharfinger"


def kubeconfig(host: str, port: int, token: str) -> JsonObject:
    """A kubeconfig with one context; ``host`` as it stands in a URL (IPv6 in brackets)."""
    server = f"http://{USER}:{quote(token, safe='')}@{host}:{port}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": USER, "cluster": {"server": server}}],
        "users": [{"name": USER, "user": {"token": token}}],
        "contexts": [{"name": USER, "context": {"cluster": USER, "user": USER, "namespace": "default"}}],
        "current-context": USER,
    }


def default_path() -> Path:
    """Where the file goes when nobody says: beside the daemon's state."""
    state = os.environ.get("WHARFINGER_STATE_DIR")
    if state:
        return Path(state) / "embedded" / "kubeconfig"
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "wharfinger" / "embedded" / "kubeconfig"


def write_secret_file(path: Path, document: JsonObject) -> None:
    """Write JSON (which is YAML) with mode 0600, atomically; missing folders are made with mode 0700. Raises OSError."""
    missing = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700)
    # mkstemp makes the file 0600 from the start, under a name nobody can have prepared.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(encode_json(document) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
