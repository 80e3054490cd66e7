"""Make the OpenAPI documents of a version of Kubernetes without running its kube-apiserver.

The documents that Kubernetes publishes with its code (``api/openapi-spec``) differ from those that a server sends: they include
versions and media types that are off by default, and they lack the lists of allowed values (``enum``), which a feature gate adds.
This script reads the published documents of two versions, the *known* version and the *next* one. For the known version, there
are also the documents of a server (``discovery/openapi.xz``). The differences between them and the published ones show the
changes that the published documents of the next version need::

    go mod download -json k8s.io/kubernetes@v1.36.1 k8s.io/kubernetes@v1.37.1      # prints the folder of each as Dir
    python tools/kubernetes/generate_builtin_kinds.py --kubernetes DIR --output …/catalog/builtin_kinds-1.37.json
    python tools/kubernetes/generate_published_documents.py --known DIR --next DIR --minor 37

To check the method, the script first makes the documents of the known version in this way, and stops if they differ from those of
the server. Fields that are new in the next version get no lists of allowed values.
"""

import argparse
import copy
import json
import lzma
import sys
from pathlib import Path
from typing import Any, Final, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Documents: TypeAlias = dict[str, dict[str, Any]]

ROOT: Final = Path(__file__).resolve().parents[2] / "wharfinger" / "control_plane"
KNOWN: Final = ROOT / "discovery" / "openapi.xz"
OFF: Final = ("application/cbor", "application/cbor-seq", "application/apply-patch+cbor")
"""Media types that a server offers only with a feature gate that is off by default."""


def main() -> int:
    """Check the method with the known version, and write the documents of the next one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--known", type=Path, required=True, metavar="DIR", help="the module k8s.io/kubernetes of openapi.xz"
    )
    parser.add_argument(
        "--next", type=Path, required=True, metavar="DIR", help="the module k8s.io/kubernetes of the next version"
    )
    parser.add_argument("--minor", type=int, required=True, help="the minor version of the next version")
    args = parser.parse_args()
    sent = read_documents(KNOWN)
    before = published(args.known, sorted(name for name in sent if name.startswith("v3/")))
    kinds = json.loads((ROOT / "catalog" / "builtin_kinds.json").read_text())
    version = sent["v2"]["info"]["version"]
    for name, document in made(before, before, sent, kinds, version).items():
        if document != sent[name]:
            print(f"error: {name} is not as a server of version {version} sends it", file=sys.stderr)
            return 1
    kinds = json.loads((ROOT / "catalog" / f"builtin_kinds-1.{args.minor}.json").read_text())
    following = made(published(args.next, names_of(kinds, sent)), before, sent, kinds, f"1.{args.minor}")
    following |= {name: document for name, document in sent.items() if name.startswith("custom/")}
    KNOWN.with_name(f"openapi-1.{args.minor}.xz").write_bytes(compressed(following))
    return 0


def read_documents(path: Path) -> Documents:
    """Read a file in the format of ``openapi.xz``, and return its documents by name."""
    line, _, rest = lzma.decompress(path.read_bytes()).partition(b"\n")
    return {name: json.loads(rest[start : start + size]) for name, (start, size) in json.loads(line).items()}


def compressed(documents: Documents) -> bytes:
    """Return the documents in the format of ``openapi.xz``, which ``generate_documents.py`` describes."""
    texts = {
        name: json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode() for name, one in documents.items()
    }
    places, offset = {}, 0
    for name, text in texts.items():
        places[name] = [offset, len(text)]
        offset += len(text)
    index = json.dumps(places, separators=(",", ":")).encode() + b"\n"
    return lzma.compress(index + b"".join(texts.values()), preset=9 | lzma.PRESET_EXTREME)


def names_of(kinds: list[dict[str, Any]], sent: Documents) -> list[str]:
    """Return the names of the OpenAPI v3 documents for the kinds in a table, and of those that do not depend on kinds."""
    versions = {f"apis/{row['api']}" if "/" in row["api"] else f"api/{row['api']}" for row in kinds}
    groups = {name.rpartition("/")[0] for name in versions}
    others = {name.removeprefix("v3/") for name in sent if name.startswith("v3/")}
    fixed = {name for name in others if not name.startswith(("api/", "apis/"))}
    return sorted(f"v3/{name}" for name in versions | groups | fixed)


def published(folder: Path, names: list[str]) -> Documents:
    """Return the published documents in a Go module: the OpenAPI v2 document, and the OpenAPI v3 documents with these names."""
    specs = folder / "api" / "openapi-spec"
    found = {name: json.loads((specs / "v3" / f"{_file_name(name)}_openapi.json").read_text()) for name in names}
    return {**found, "v2": json.loads((specs / "swagger.json").read_text())}


def _file_name(name: str) -> str:
    return name.removeprefix("v3/").replace("/", "__")


def made(given: Documents, before: Documents, sent: Documents, kinds: list[dict[str, Any]], version: str) -> Documents:
    """Convert the published documents in ``given`` to the documents that a server of this version would send.

    ``before`` has the published documents of the known version, and ``sent`` the documents that a server of the known version
    sends.
    """
    found: Documents = {}
    for name, document in given.items():
        one = _without_off(copy.deepcopy(document))
        one["info"]["version"] = version
        if name == "v2":
            one["paths"] = {path: item for path, item in one["paths"].items() if _served(path, kinds)}
            one["parameters"] = {key: item for key, item in one["parameters"].items() if not key.startswith("logpath-")}
            one["definitions"] = _with_values(
                one["definitions"], before["v2"]["definitions"], sent["v2"]["definitions"]
            )
            one["definitions"] = _reached(one, set(sent["v2"]["definitions"]))
        elif schemas := one.get("components", {}).get("schemas"):
            known = (before.get(name, {}), sent.get(name, {}))
            old, new = (each.get("components", {}).get("schemas", {}) for each in known)
            one["components"]["schemas"] = _with_values(schemas, old, new)
        order = sent.get(name) or sent["v3/apis/apps/v1"]
        found[name] = {
            key: one[key] for key in [*(key for key in order if key in one), *(key for key in one if key not in order)]
        }
    return found


def _without_off(value: Any) -> Any:
    """Return the value without media types that are off by default."""
    if isinstance(value, dict):
        return {key: _without_off(item) for key, item in value.items() if key not in OFF}
    return [_without_off(item) for item in value if item not in OFF] if isinstance(value, list) else value


def _served(path: str, kinds: list[dict[str, Any]]) -> bool:
    """Return whether a server serves this path of the OpenAPI v2 document."""
    parts = path.strip("/").split("/")
    if path.startswith("/logs"):
        return False
    if parts[0] != "apis" or len(parts) == 1:
        return True
    versions = {row["api"] for row in kinds}
    if len(parts) == 2:
        return any(version.startswith(f"{parts[1]}/") for version in versions)
    return f"{parts[1]}/{parts[2]}" in versions


def _with_values(given: dict[str, Any], before: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """Return the definitions with the lists of allowed values that a server of the known version adds to the same fields.

    Descriptions that the server changes are replaced as well.
    """
    return {name: _merged(item, before.get(name), sent.get(name)) for name, item in given.items()}


def _merged(given: Any, before: Any, sent: Any) -> Any:
    if not isinstance(given, dict) or not isinstance(sent, dict):
        return given
    old = before if isinstance(before, dict) else {}
    found = {key: _merged(item, old.get(key), sent.get(key)) for key, item in given.items()}
    if "enum" in sent and "enum" not in given and given.get("type") == sent.get("type"):
        found["enum"] = sent["enum"]
    if given.get("description") == old.get("description") and isinstance(sent.get("description"), str):
        found["description"] = sent["description"]
    return found


def _reached(document: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Return the definitions that are needed: those in ``known``, those that the paths refer to, and those that other needed
    definitions refer to.
    """
    definitions: dict[str, Any] = document["definitions"]
    todo, found = _references({"paths": document["paths"]}) | (known & set(definitions)), set[str]()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo |= _references(definitions[name])
    return {name: item for name, item in definitions.items() if name in found}


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"].rpartition("/")[2]} if str(value.get("$ref", "")).startswith("#/definitions/") else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


if __name__ == "__main__":
    sys.exit(main())
