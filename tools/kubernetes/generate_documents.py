"""Make the OpenAPI documents (discovery/openapi.xz) and table columns (catalog/table_columns.json) of the built-in kinds.

The documents that Kubernetes publishes with its code differ from those of a server, because feature gates turn parts of OpenAPI
on and off. So this script reads documents and columns through ``kubectl proxy`` from a new kube-apiserver. The server must have
the version that the embedded control plane simulates, and the default feature gates::

    kubectl proxy --port 8001 &
    python tools/kubernetes/generate_documents.py --url http://127.0.0.1:8001

``openapi.xz`` is compressed. Its first line is a JSON object that maps the name of each document (``v2``, ``v3/api/v1`` …) to its
position: ``[offset, size]``, counted from the end of this line. The documents follow, byte for byte as the server sent them,
because clients identify them by their hashes. Two further documents, ``custom/v2`` and ``custom/v3``, are the server's documents
for two sample CRDs, which this script creates and deletes again. The control plane makes the documents of custom kinds from these
two, by replacing the names.

``table_columns.json`` has the columns of each kind. Each column is a list: name, type, format, priority, and the index of its
description in ``descriptions``.

The files for 1.37 were not made by this script. ``table_columns-1.37.json`` is the file for 1.36 with the columns of the new
kinds, from ``pkg/printers/internalversion/printers.go``. ``openapi-1.37.xz`` was made by ``generate_published_documents.py``.
"""

import argparse
import json
import lzma
import time
import urllib.request
from pathlib import Path
from typing import Final, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

FOLDER: Final = Path(__file__).resolve().parents[2] / "wharfinger" / "control_plane"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
TIMEOUT_S: Final = 30
SETTLE_S: Final = 5.0
"""The time, in seconds, after which a server serves new CRDs and has updated its documents."""
TEMPLATE_GROUP: Final = "grouptoken.example"
TEMPLATE_VERSION: Final = "v7beta3"


def main() -> None:
    """Read the documents from the server, and write both files."""
    parser = argparse.ArgumentParser(description="Make the OpenAPI documents and the columns of tables.")
    parser.add_argument(
        "--url", required=True, help="the address of a kube-apiserver that needs no authentication (kubectl proxy)"
    )
    url = parser.parse_args().url
    (FOLDER / "discovery" / "openapi.xz").write_bytes(openapi(url))
    (FOLDER / "catalog" / "table_columns.json").write_text(columns(url))


def fetch(url: str, accept: str = "application/json") -> bytes:
    """Return the body of the response to a GET request."""
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310 - the caller's own server
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
        body: bytes = response.read()
    return body


def openapi(url: str) -> bytes:
    """Return all OpenAPI documents in the format of ``openapi.xz``."""
    names = list(json.loads(fetch(f"{url}/openapi/v3"))["paths"])
    documents = {f"v3/{name}": fetch(f"{url}/openapi/v3/{name}") for name in names}
    documents["v2"] = fetch(f"{url}/openapi/v2")
    documents.update(templates(url))
    places, offset = {}, 0
    for name, document in documents.items():
        places[name] = [offset, len(document)]
        offset += len(document)
    index = json.dumps(places, separators=(",", ":")).encode() + b"\n"
    return lzma.compress(index + b"".join(documents.values()), preset=9 | lzma.PRESET_EXTREME)


def templates(url: str) -> dict[str, bytes]:
    """Return the server's documents for two custom kinds with status and scale: a namespaced one and a cluster-scoped one."""
    definitions = (("Kindtoken", "Listtoken", "Namespaced"), ("Clustertoken", "Clusterlisttoken", "Cluster"))
    path = f"{url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    names = [f"{kind.lower()}s.{TEMPLATE_GROUP}" for kind, _, _ in definitions]
    try:
        for kind, list_kind, scope in definitions:
            send("POST", path, _definition(kind, list_kind, scope))
        time.sleep(SETTLE_S)
        whole = json.loads(fetch(f"{url}/openapi/v2"))
        version_3 = fetch(f"{url}/openapi/v3/apis/{TEMPLATE_GROUP}/{TEMPLATE_VERSION}")
    finally:
        for name in names:
            send("DELETE", f"{path}/{name}", None)
    ours = {
        part: {name: value for name, value in whole[part].items() if "token" in name}
        for part in ("paths", "definitions")
    }
    return {"custom/v2": json.dumps(ours, separators=(",", ":")).encode(), "custom/v3": version_3}


def _definition(kind: str, list_kind: str, scope: str) -> Json:
    plural = f"{kind.lower()}s"
    scale: Json = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.b"}
    version: Json = {
        "name": TEMPLATE_VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
        "subresources": {"status": {}, "scale": scale},
    }
    names: Json = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": list_kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{TEMPLATE_GROUP}"},
        "spec": {"group": TEMPLATE_GROUP, "scope": scope, "names": names, "versions": [version]},
    }


def send(method: str, url: str, body: Json) -> None:
    """Send a request, and ignore the body of the response."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310
        url, data, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S):  # noqa: S310
        pass


def columns(url: str) -> str:
    """Return the columns of every built-in kind that can be listed, as a JSON document with one line for each kind."""
    texts: dict[str, int] = {}
    kinds: dict[str, list[list[Json]]] = {}
    for row in json.loads((FOLDER / "catalog" / "builtin_kinds.json").read_text()):
        if "list" not in row.get("verbs", ["list"]):
            continue
        group = row["api"].rpartition("/")[0]
        prefix = "apis" if group else "api"
        table = json.loads(fetch(f"{url}/{prefix}/{row['api']}/{row['plural']}", TABLE))
        kinds[f"{row['kind']}.{group}".rstrip(".")] = [
            [
                column["name"],
                column["type"],
                column["format"],
                column["priority"],
                texts.setdefault(column["description"], len(texts)),
            ]
            for column in table["columnDefinitions"]
        ]
    described = ",\n".join(json.dumps(text, ensure_ascii=False) for text in texts)
    rows = ",\n".join(f"{json.dumps(kind)}:{json.dumps(row, separators=(',', ':'))}" for kind, row in kinds.items())
    return f'{{"descriptions":[\n{described}\n],"kinds":{{\n{rows}\n}}}}\n'


if __name__ == "__main__":
    main()
