"""Make wharfinger/control_plane/bootstrap/roles.json: the roles and bindings with which every kube-apiserver starts.

This script reads them from a new kube-apiserver of the version that the embedded control plane simulates::

    python tools/kubernetes/generate_bootstrap_roles.py --server https://127.0.0.1:6443 --token-file token

If there is no server of the version, the script can read them from files that Kubernetes publishes with its code. These files
lack the rules of aggregated roles. The script takes such roles from the existing roles.json, so both versions must have the
same rules in these roles::

    python tools/kubernetes/generate_bootstrap_roles.py --published DIR --output …/bootstrap/roles-1.37.json

DIR is the folder of the Go module ``k8s.io/kubernetes``. Each line of the file that the script writes is one object. The file
leaves out the label kubernetes.io/bootstrapping and the annotation rbac.authorization.kubernetes.io/autoupdate, because all of
these objects have them.
"""

import argparse
import json
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Any, TypeAlias

import yaml

Entry: TypeAlias = "dict[str, Any]"
OUTPUT = Path(__file__).resolve().parents[2] / "wharfinger" / "control_plane" / "bootstrap" / "roles.json"
GROUP = "/apis/rbac.authorization.k8s.io/v1"
KINDS = {
    "clusterroles": "ClusterRole",
    "roles": "Role",
    "clusterrolebindings": "ClusterRoleBinding",
    "rolebindings": "RoleBinding",
}
BOOTSTRAPPING = "kubernetes.io/bootstrapping"
FIELDS = ("rules", "aggregationRule", "subjects", "roleRef")
TESTDATA = Path("plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata")
PUBLISHED = tuple(
    f"{place}-{what}" for what in ("roles", "role-bindings") for place in ("cluster", "controller", "namespace")
)
RULE = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def main() -> int:
    """Read the objects from the server or from the published files, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server")
    parser.add_argument("--token-file", type=Path)
    parser.add_argument(
        "--published", type=Path, metavar="DIR", help="read the files of this module instead of a server"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    if args.published is not None:
        found = published(args.published)
    elif args.server is not None and args.token_file is not None:
        found = served(args.server, args.token_file.read_text().strip())
    else:
        parser.error("give --server and --token-file, or --published")
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in found)
    args.output.write_text(f"[\n{lines}\n]\n")
    return 0


def served(server: str, token: str) -> list[Entry]:
    """Return the objects of a server."""
    found: list[Entry] = []
    for plural, kind in KINDS.items():
        request = urllib.request.Request(  # noqa: S310 - the caller gives the address
            f"{server}{GROUP}/{plural}?labelSelector={BOOTSTRAPPING}=rbac-defaults",
            headers={"authorization": f"Bearer {token}"},
        )
        # The certificate is not verified, because the caller has started this server for this purpose.
        with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:  # noqa: S310, S323, SLF001
            items = json.load(answer)["items"]
        found += [_entry({**item, "kind": kind}) for item in items]
    return found


def published(folder: Path) -> list[Entry]:
    """Return the objects in the published files, sorted by kind and name."""
    known = {(entry["kind"], entry["name"]): entry for entry in json.loads(OUTPUT.read_text())}
    found: list[Entry] = []
    for name in PUBLISHED:
        for item in yaml.safe_load((folder / TESTDATA / f"{name}.yaml").read_text())["items"]:
            entry = _entry(item)
            if "rules" in entry:
                entry["rules"] = [{field: rule[field] for field in RULE if field in rule} for rule in entry["rules"]]
            found.append(known[entry["kind"], entry["name"]] if "aggregationRule" in entry else entry)
    order = list(KINDS.values())
    return sorted(found, key=lambda entry: (order.index(entry["kind"]), entry.get("namespace", ""), entry["name"]))


def _entry(item: Entry) -> Entry:
    metadata = item["metadata"]
    labels = {name: value for name, value in metadata["labels"].items() if name != BOOTSTRAPPING}
    entry = {"kind": item["kind"], "name": metadata["name"]}
    entry |= {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
    entry |= {"labels": labels} if labels else {}
    return entry | {field: item[field] for field in FIELDS if item.get(field) is not None}


if __name__ == "__main__":
    sys.exit(main())
