"""Make wharfinger/control_plane/bootstrap/roles.json: the roles and bindings with which every kube-apiserver starts.

They are read from a new kube-apiserver of the version that the control plane follows::

    python tools/kubernetes/generate_bootstrap_roles.py --server https://127.0.0.1:6443 --token-file token

Each line is one object, without the label kubernetes.io/bootstrapping and the annotation autoupdate, which all objects
have.
"""

import argparse
import json
import ssl
import sys
import urllib.request
from pathlib import Path

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


def main() -> int:
    """Read the objects from the server, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token-file", type=Path, required=True)
    args = parser.parse_args()
    lines = []
    for plural, kind in KINDS.items():
        request = urllib.request.Request(  # noqa: S310 - the caller gives the address
            f"{args.server}{GROUP}/{plural}?labelSelector={BOOTSTRAPPING}=rbac-defaults",
            headers={"authorization": f"Bearer {args.token_file.read_text().strip()}"},
        )
        # The certificate is not verified, because the server is one that the caller has started for this.
        with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:  # noqa: S310, S323, SLF001
            items = json.load(answer)["items"]
        for item in items:
            metadata = item["metadata"]
            labels = {name: value for name, value in metadata["labels"].items() if name != BOOTSTRAPPING}
            entry = {"kind": kind, "name": metadata["name"]}
            entry |= {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
            entry |= {"labels": labels} if labels else {}
            entry |= {field: item[field] for field in FIELDS if field in item}
            lines.append(json.dumps(entry, separators=(",", ":")))
    OUTPUT.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
