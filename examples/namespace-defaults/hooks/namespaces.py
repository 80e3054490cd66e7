#!/usr/bin/env python3
"""Write the names of all namespaces with the label namespace-defaults/managed=true to the module's values."""

import json
import os
import sys
from pathlib import Path

CONFIG = {
    "configVersion": "v1",
    "beforeHelm": 10,
    "kubernetes": [
        {
            "name": "namespaces",
            "apiVersion": "v1",
            "kind": "Namespace",
            "labelSelector": {"matchLabels": {"namespace-defaults/managed": "true"}},
            "jqFilter": "if .metadata.deletionTimestamp then null else .metadata.name end",
            "keepFullObjectsInMemory": False,
            "includeSnapshotsFrom": ["namespaces"],
        }
    ],
}


def main() -> None:
    """Print the hook's configuration if called with ``--config``. Otherwise, patch the values from the latest snapshot."""
    if sys.argv[1:] == ["--config"]:
        print(json.dumps(CONFIG))
        return
    contexts = json.loads(Path(os.environ["BINDING_CONTEXT_PATH"]).read_text())
    snapshot = contexts[-1]["snapshots"]["namespaces"]
    names = sorted(item["filterResult"] for item in snapshot if item["filterResult"])
    print(f"{len(names)} namespaces are managed: {', '.join(names)}")
    patch = [{"op": "add", "path": "/namespaceDefaults/internal/namespaces", "value": names}]
    Path(os.environ["VALUES_JSON_PATCH_PATH"]).write_text(json.dumps(patch))


if __name__ == "__main__":
    main()
