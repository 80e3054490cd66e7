"""Make wharfinger/control_plane/catalog/builtin_kinds.json: the built-in kinds and their entries in discovery.

The sources are the discovery documents that Kubernetes publishes with its code (``api/discovery`` of the Go module
``k8s.io/kubernetes``). They list all versions of each group. The table has only those that a server serves by default: ``v1`` of
each group, and ``autoscaling/v2``. To make the table for another version of Kubernetes::

    go mod download -json k8s.io/kubernetes@v1.36.1      # prints the module's folder as Dir
    python tools/kubernetes/generate_builtin_kinds.py --kubernetes DIR

Each row is one kind in one version. The rows are in the order of the discovery documents. A row has the members ``api`` (group
and version), ``kind``, ``plural``, ``singular`` (unless it is the kind in lower case), ``cluster`` (for kinds without a
namespace), ``short`` (short names), ``categories``, ``verbs`` (unless the kind has all verbs), ``sub`` (subresource → kind and
verbs; the kind's group and version precede the kind if the document gives them), and ``hash`` (discovery's hash of the storage
version).
"""

import argparse
import json
from pathlib import Path
from typing import Final, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = dict[str, Json]

OUTPUT: Final = Path(__file__).resolve().parents[2] / "wharfinger" / "control_plane" / "catalog" / "builtin_kinds.json"
ALL_VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def main() -> None:
    """Read the discovery documents of the given folder, and write the table."""
    parser = argparse.ArgumentParser(description="Make the table of built-in kinds.")
    parser.add_argument("--kubernetes", type=Path, required=True, metavar="DIR", help="the module k8s.io/kubernetes")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    folder = args.kubernetes / "api" / "discovery"
    rows = _rows(json.loads((folder / "api__v1.json").read_text()))
    for group in json.loads((folder / "apis.json").read_text())["groups"]:
        for version in group["versions"]:
            api = version["groupVersion"]
            if version["version"] == "v1" or api == "autoscaling/v2":
                rows += _rows(json.loads((folder / f"apis__{api.replace('/', '__')}.json").read_text()))
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    args.output.write_text(f"[\n{lines}\n]\n")


def _rows(listed: Object) -> list[Object]:
    """Return the rows of one APIResourceList."""
    rows: dict[str, Object] = {}
    entries = listed["resources"]
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        plural, _, subresource = str(entry["name"]).partition("/")
        if subresource:
            names = [str(entry.get("group", "")), str(entry.get("version", "")), str(entry["kind"])]
            below = rows[plural].setdefault("sub", {})
            if isinstance(below, dict):
                below[subresource] = ["/".join(name for name in names if name), entry["verbs"]]
        else:
            rows[plural] = _row(str(listed["groupVersion"]), plural, entry)
    return list(rows.values())


def _row(api: str, plural: str, entry: Object) -> Object:
    kind = str(entry["kind"])
    row: Object = {"api": api, "kind": kind, "plural": plural}
    if entry["singularName"] != kind.lower():
        row["singular"] = entry["singularName"]
    if not entry["namespaced"]:
        row["cluster"] = True
    for name, source in (("short", "shortNames"), ("categories", "categories")):
        if source in entry:
            row[name] = entry[source]
    if entry["verbs"] != ALL_VERBS:
        row["verbs"] = entry["verbs"]
    if "storageVersionHash" in entry:
        row["hash"] = entry["storageVersionHash"]
    return row


if __name__ == "__main__":
    main()
