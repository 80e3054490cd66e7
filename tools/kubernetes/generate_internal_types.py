"""Make wharfinger/control_plane/objects/internal_types.json: the JSON form of kube-apiserver's internal types.

Some error messages of an API server show a whole struct, or the difference between two structs ("pod updates may not change
fields other than …"). Such a message shows the server's internal types and not those of the API: it has the field names of Go,
all fields, and null for each unset field.

The sources are Go files. The script reads them with regular expressions, because each field of a struct is on one line. To make
the table for another version of Kubernetes::

    go mod download -json k8s.io/kubernetes@v1.36.1 k8s.io/api@v0.36.1 k8s.io/apimachinery@v0.36.1   # prints each Dir
    python tools/kubernetes/generate_internal_types.py --kubernetes DIR --api DIR --apimachinery DIR

The file is an object that maps the name of each struct to the list of its fields. Each field is a list: the name that is printed,
the name in the API, and the type. A type is ``string``, ``int``, ``bool``, ``quantity``, ``time``, ``any``, ``json`` or the name
of a struct. It is preceded by ``*`` for a pointer, ``[]`` for a list, or ``{}`` for a map with string keys. A ``?`` after a
printed name means that the field is omitted when it is empty (in types of the API). A ``+`` instead of a printed name means that
the members of the field are printed in the enclosing struct.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Final, TypeAlias

Fields: TypeAlias = list[tuple[str, str, str, str]]
"""The fields of a struct: Go name, type, JSON name, and options of the tag."""

OUTPUT: Final = Path(__file__).resolve().parents[2] / "wharfinger" / "control_plane" / "objects" / "internal_types.json"
ROOTS: Final = (
    "core.PodTemplateSpec",
    "core.PersistentVolumeClaimSpec",
    "core.PersistentVolumeSpec",
    "core.ServiceSpec",
    "batch.PodFailurePolicy",
    "batch.SuccessPolicy",
    "batch.UncountedTerminatedPods",
    "autoscaling.HorizontalPodAutoscalerBehavior",
    "storage.VolumeAttachmentSpec",
    "flowcontrol.FlowSchemaSpec",
    "flowcontrol.PriorityLevelConfigurationSpec",
    "resource.AllocationResult",
    "resource.DeviceAttribute",
    "resource.ResourceClaimSpec",
    "resource.ResourceClaimTemplateSpec",
)
_PUBLISHED: Final = {
    "core": "core/v1", "batch": "batch/v1", "autoscaling": "autoscaling/v2", "storage": "storage/v1",
    "flowcontrol": "flowcontrol/v1", "resource": "resource/v1",
}  # fmt: skip
"""Packages of internal types → the folders of the corresponding API types."""
_ALIASES: Final = {"api": "core"}
"""Other names under which packages are imported."""
_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAMED: Final = re.compile(r"^type (\w+) ([\w.\[\]*]+)$", re.MULTILINE)
_FIELD: Final = re.compile(
    r"^\t(?:(\w+(?:, \w+)*)[ \t]+)?([\w.\[\]*]+)(?:[ \t]+`([^`]*)`)?(?:[ \t]*//.*)?$", re.MULTILINE
)
_TAG: Final = re.compile(r'json:"([^",]*)((?:,[^"]*)?)"')
_SPECIAL: Final = {
    "resource.Quantity": "quantity", "metav1.Time": "time", "intstr.IntOrString": "any", "runtime.Object": "any",
    "runtime.RawExtension": "json",
    "int32": "int", "int64": "int", "int": "int", "uint8": "int", "byte": "int", "types.UID": "string",
}  # fmt: skip
_API_NAMES: Final = {
    ("core.PodSecurityContext", "HostNetwork"): "hostNetwork",
    ("core.PodSecurityContext", "HostPID"): "hostPID",
    ("core.PodSecurityContext", "HostIPC"): "hostIPC",
    ("core.PodSecurityContext", "ShareProcessNamespace"): "shareProcessNamespace",
    ("core.PodSecurityContext", "HostUsers"): "hostUsers",
}
"""The API names of fields that belong to another struct in the API. The code that prints a struct first moves their values."""


class Sources:
    """The structs and the named types of one Go package."""

    def __init__(self, package: str, text: str) -> None:
        self.package = package
        self.structs: dict[str, Fields] = {name: _fields(body) for name, body in _STRUCT.findall(text)}
        self.named: dict[str, str] = dict(_NAMED.findall(text))


def _fields(body: str) -> Fields:
    found: Fields = []
    for names, kind, tag in _FIELD.findall(re.sub(r"^\s*//.*$", "", body, flags=re.MULTILINE)):
        match = _TAG.search(tag or "")
        json_name, options = (match[1], match[2]) if match else ("", "")
        found += [(name, kind, json_name, options) for name in (names.split(", ") if names else [""])]
    return found


class Table:
    """The table of the structs in ROOTS, and of all structs that these refer to."""

    def __init__(self, internal: dict[str, Sources], published: dict[str, Sources], meta: Sources) -> None:
        self._packages = {**internal, "metav1": meta}
        self._published = published
        self.types: dict[str, list[list[str]]] = {}
        self._waiting = list(ROOTS)

    def build(self) -> dict[str, list[list[str]]]:
        """Return the whole table, sorted by name."""
        while self._waiting:
            name = self._waiting.pop()
            if name not in self.types:
                self.types[name] = self._struct(name)
        return dict(sorted(self.types.items()))

    def _struct(self, name: str) -> list[list[str]]:
        package, _, short = name.partition(".")
        rows: list[list[str]] = []
        api = self._published.get(package)
        published = {go: tag for go, _, tag, _ in self._flat(api, short)} if api else {}
        for go, kind, tag, options in self._packages[package].structs[short]:
            inner = self._type(package, kind)
            embedded = go == "" and not tag
            if embedded and inner == "metav1.ObjectMeta":
                rows.append(["+", "metadata", self._noted(inner)])
            elif embedded and api:
                rows += self._struct(inner)
            elif api:
                api_name = _API_NAMES.get((name, go)) or published.get(go) or go[:1].lower() + go[1:]
                rows.append([go, api_name, self._noted(inner)])
            else:
                rows.append([tag + ("?" if "omit" in options else ""), tag, self._noted(inner)])
        return rows

    def _flat(self, sources: Sources, short: str) -> Fields:
        found: Fields = []
        for go, kind, tag, options in sources.structs.get(short, []):
            if go or tag:
                found.append((go or kind.rpartition(".")[2], kind, tag, options))
            else:
                found += self._flat(sources, kind.lstrip("*"))
        return found

    def _type(self, package: str, kind: str) -> str:
        if kind.startswith("*"):
            return "*" + self._type(package, kind[1:])
        if kind.startswith("[]"):
            return "[]" + self._type(package, kind[2:])
        if kind.startswith("map["):
            return "{}" + self._type(package, kind.partition("]")[2])
        if kind in _SPECIAL or kind in {"string", "bool"}:
            return _SPECIAL.get(kind, kind)
        qualifier, _, short = kind.rpartition(".")
        package = _ALIASES.get(qualifier, qualifier) or package
        if package not in self._packages:
            return "string"
        sources = self._packages[package]
        if short in {"Time", "MicroTime"} and package == "metav1":
            return "time"
        if short == "FieldsV1":
            return "any"
        return f"{package}.{short}" if short in sources.structs else self._type(package, sources.named[short])

    def _noted(self, kind: str) -> str:
        struct = re.sub(r"^(\*|\[\]|\{\})+", "", kind)
        if "." in struct:
            self._waiting.append(struct)
        return kind


def main() -> None:
    """Read the Go files of the given folders, and write the table."""
    parser = argparse.ArgumentParser(description="Make the table of internal types.")
    for name in ("kubernetes", "api", "apimachinery"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="DIR", help=f"the module k8s.io/{name}")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    table = Table(
        {name: Sources(name, (args.kubernetes / f"pkg/apis/{name}/types.go").read_text()) for name in _PUBLISHED},
        {name: Sources("v1", (args.api / folder / "types.go").read_text()) for name, folder in _PUBLISHED.items()},
        Sources("metav1", (args.apimachinery / "pkg/apis/meta/v1/types.go").read_text()),
    ).build()
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(rows, separators=(',', ':'))}" for name, rows in table.items())
    args.output.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
