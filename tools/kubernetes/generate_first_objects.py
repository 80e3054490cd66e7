"""Make wharfinger/control_plane/bootstrap/first_objects.json: the first objects of a cluster, except roles.

This script reads them through ``kubectl proxy`` from a new kube-apiserver of the version that the embedded control plane
simulates::

    kubectl proxy --port 8001 &
    python tools/kubernetes/generate_first_objects.py --url http://127.0.0.1:8001

The file is a list of objects as they are stored, but without UIDs, resource versions and times. The address of the server from
which the objects were read stays in the file.

``first_objects-1.37.json`` was not made by this script. It is the file for 1.36 with the APIService of
storagemigration.k8s.io/v1, the only new group version (``pkg/controlplane/apiserver/aggregator.go``).
"""

import argparse
import json
import urllib.request
from pathlib import Path
from typing import Final, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = dict[str, Json]

OUTPUT: Final = (
    Path(__file__).resolve().parents[2] / "wharfinger" / "control_plane" / "bootstrap" / "first_objects.json"
)
TIMEOUT_S: Final = 30
PATHS: Final = (
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/networking.k8s.io/v1/servicecidrs/kubernetes",
    "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1",
    "/api/v1/namespaces/default/services/kubernetes",
    "/api/v1/namespaces/default/endpoints/kubernetes",
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
)
SERVER_OWNED: Final = ("uid", "resourceVersion", "creationTimestamp")


def main() -> None:
    """Read the objects from the server, and write the file."""
    parser = argparse.ArgumentParser(description="Make the list of a cluster's first objects.")
    parser.add_argument(
        "--url", required=True, help="the address of a kube-apiserver that needs no authentication (kubectl proxy)"
    )
    url = parser.parse_args().url
    lines = [json.dumps(bare(obj), separators=(",", ":")) for path in PATHS for obj in objects(url, path)]
    OUTPUT.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def objects(url: str, path: str) -> list[Object]:
    """Return the object at a path, or the items of the list at this path."""
    with urllib.request.urlopen(url + path, timeout=TIMEOUT_S) as response:  # noqa: S310 - the caller's own server
        found: Object = json.load(response)
    items = found.get("items")
    if not isinstance(items, list):
        return [found]
    kind = str(found["kind"]).removesuffix("List")
    return [{"kind": kind, "apiVersion": found["apiVersion"], **item} for item in items if isinstance(item, dict)]


def bare(value: Json) -> Json:
    """Return a value without times, UIDs and resource versions."""
    if isinstance(value, list):
        return [bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    without = {name: bare(item) for name, item in value.items() if name not in {"time", "lastTransitionTime"}}
    metadata = without.get("metadata")
    if isinstance(metadata, dict):
        without["metadata"] = {name: item for name, item in metadata.items() if name not in SERVER_OWNED}
    return without


if __name__ == "__main__":
    main()
