"""Make cluster/control_plane/list_types.json: how the built-in kinds merge, and how their Go types print.

Two published sources, one for what merges how, one for what Go prints of a value that is zero (OpenAPI does not say
whether a struct is held by a pointer, and so whether it is printed when nobody set it):

* the OpenAPI definitions inside the PyPI package ``kubernetes-validate`` (list types, keys, map types, merge keys);
* the Go modules ``k8s.io/client-go``, ``k8s.io/apiextensions-apiserver`` and ``k8s.io/kube-aggregator``, whose types
  are looked at by reflection (a small program below, run by ``go run`` in a temporary folder).

To bring it to another version of Kubernetes::

    python -m venv /path/to/venv && /path/to/venv/bin/pip install kubernetes-validate
    python deploy/generate_list_types.py --minor 36 --patch 2 --site-packages /path/to/venv/lib/python3.11/site-packages

The file holds three tables. ``kinds``: ``apps/v1/Deployment`` → name of its type. ``types``: name → the fields of a
struct: ``s`` scalars that are left out when zero, ``p`` scalars held by pointers, ``n`` scalars that are always
printed, ``q`` quantities (each a string of names), ``f`` the other fields (a name is a struct, ``{"l": …}`` a list,
``{"m": …}`` a map, ``""`` anything), ``a`` whether it is atomic, ``z`` what an object of it prints when nothing is
set. ``lists`` and ``maps`` inside carry ``e`` (element), ``k`` (keys), ``d`` (defaults of keys), ``x`` (patch merge
key) and ``s`` (patch strategy).
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = dict[str, Json]

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "cluster" / "control_plane" / "list_types.json"

KEY_DEFAULTS: Final[dict[tuple[str, str], str]] = {
    ("core.v1.ContainerPort", "protocol"): "TCP",
    ("core.v1.ServicePort", "protocol"): "TCP",
}
"""Defaults of fields that are keys of lists: markers in the Go source that the published definitions leave out."""

PREFIXES: Final = (
    ("io.k8s.api.", ""),
    ("io.k8s.apimachinery.pkg.apis.", ""),
    ("io.k8s.apimachinery.pkg.", ""),
    ("io.k8s.apiextensions-apiserver.pkg.apis.", ""),
    ("io.k8s.kube-aggregator.pkg.apis.", ""),
)
QUANTITY: Final = "api.resource.Quantity"
OPAQUE: Final = ("runtime.RawExtension", "meta.v1.FieldsV1", "apiextensions.v1.JSON")

GO_PROGRAM: Final = """
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	aggregation "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type printed struct {
	Zero     json.RawMessage `json:"zero"`
	Pointers []string        `json:"pointers"`
}

var (
	seen      = map[string]printed{}
	marshaler = reflect.TypeOf((*json.Marshaler)(nil)).Elem()
)

func name(t reflect.Type) string {
	domain, rest, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(domain, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}

func look(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return
	}
	if _, done := seen[name(t)]; done {
		return
	}
	zero, err := json.Marshal(reflect.New(t).Interface())
	if err != nil {
		panic(err)
	}
	seen[name(t)] = printed{Zero: zero}
	seen[name(t)] = printed{Zero: zero, Pointers: fields(t, []string{})}
}

func fields(t reflect.Type, pointers []string) []string {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" {
			pointers = fields(field.Type, pointers)
			continue
		}
		if field.Type.Kind() == reflect.Pointer {
			pointers = append(pointers, tag)
		}
		look(field.Type)
	}
	return pointers
}

func main() {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, extensions.AddToScheme, aggregation.AddToScheme,
	} {
		if err := add(all); err != nil {
			panic(err)
		}
	}
	for _, t := range all.AllKnownTypes() {
		look(t)
	}
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		panic(err)
	}
}
"""


def main() -> int:
    """Write the file; exit code 1 where a source is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", type=int, required=True, help="minor version of Kubernetes")
    parser.add_argument("--patch", type=int, required=True, help="patch version of its Go modules")
    parser.add_argument("--site-packages", type=Path, required=True, help="where kubernetes-validate is installed")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    folder = args.site_packages / "kubernetes_validate" / "kubernetes-json-schema" / f"v1.{args.minor}.0-local"
    source = folder / "_definitions.json"
    if not source.is_file() or shutil.which("go") is None:
        print(f"error: {source} or the go command is missing", file=sys.stderr)
        return 1
    definitions: dict[str, Object] = json.loads(source.read_text())["$defs"]
    table = build(definitions, printed_types(f"v0.{args.minor}.{args.patch}"))
    args.output.write_text(json.dumps(table, separators=(",", ":"), sort_keys=True) + "\n")
    return 0


def printed_types(version: str) -> dict[str, Object]:
    """Name of a Go struct → what it prints when zero, and which of its fields are pointers."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.go").write_text(GO_PROGRAM)
        Path(folder, "go.mod").write_text("module listtypes\n\ngo 1.24\n")
        modules = ("k8s.io/client-go", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator")
        subprocess.run(["go", "get", *(f"{module}@{version}" for module in modules)], cwd=folder, check=True)
        run = subprocess.run(["go", "run", "."], cwd=folder, check=True, stdout=subprocess.PIPE)
    found: dict[str, Object] = json.loads(run.stdout)
    return {short(name): facts for name, facts in found.items()}


def build(definitions: dict[str, Object], printed: dict[str, Object]) -> Object:
    """The content of the file, of the kinds with metadata and the types they reach."""
    schemas = {short(name): definition for name, definition in definitions.items()}
    kinds: Object = {}
    for name, schema in sorted(schemas.items()):
        if "metadata" not in members(schema) or ref_of(as_object(members(schema)["metadata"])) != "meta.v1.ObjectMeta":
            continue
        for entry in as_list(schema.get("x-kubernetes-group-version-kind", [])):
            gvk = as_object(entry)
            group, version = text(gvk["group"]), text(gvk["version"])
            if "alpha" in version:
                continue
            kinds["/".join(part for part in (group, version, text(gvk["kind"])) if part)] = name
    types: Object = {}
    waiting = [text(name) for name in kinds.values()] + ["meta.v1.ObjectMeta"]
    while waiting:
        name = waiting.pop()
        if name in types or name not in schemas:
            continue
        types[name], reached = struct_of(name, schemas, printed.get(name, {}))
        waiting += reached
    return {"kinds": kinds, "types": types}


def struct_of(name: str, schemas: dict[str, Object], printed: Object) -> tuple[Object, list[str]]:
    """The entry of one struct, and the names of the structs in it."""
    schema = schemas[name]
    zero = as_object(printed.get("zero", {}))
    pointers = as_list(printed.get("pointers", []))
    scalars: dict[str, list[str]] = {"s": [], "p": [], "n": [], "q": []}
    others: Object = {}
    reached: list[str] = []
    for field, value in members(schema).items():
        code = code_of(as_object(value), schemas, reached)
        if code == "scalar":
            scalars["p" if field in pointers else "n" if field in zero else "s"].append(field)
        elif code == "quantity":
            scalars["q"].append(field)
        else:
            others[field] = code
    entry: Object = {key: " ".join(sorted(names)) for key, names in scalars.items() if names}
    if others:
        entry["f"] = others
    if zero:
        entry["z"] = zero
    if schema.get("x-kubernetes-map-type") == "atomic":
        entry["a"] = 1
    return entry, reached


def code_of(schema: Object, schemas: dict[str, Object], reached: list[str]) -> Json:
    """How the file writes one field or element (see the story above); names of structs are added to ``reached``."""
    name = ref_of(schema)
    if name == QUANTITY:
        return "quantity"
    if name in OPAQUE:
        return ""
    if name:
        if not members(schemas[name]):
            return "scalar" if name not in ("apiextensions.v1.JSONSchemaPropsOrArray",) else ""
        reached.append(name)
        if schema.get("x-kubernetes-map-type") == "atomic":
            return {"r": name, "a": 1, **strategy_of(schema)}
        return {"r": name, **strategy_of(schema)} if strategy_of(schema) else name
    kinds = schema.get("type")
    if kinds == "array" or (isinstance(kinds, list) and "array" in kinds):
        element = code_of(as_object(schema["items"]), schemas, reached)
        entry: Object = {"l": schema.get("x-kubernetes-list-type", "atomic"), "e": element, **strategy_of(schema)}
        if "x-kubernetes-list-map-keys" in schema:
            keys = [text(key) for key in as_list(schema["x-kubernetes-list-map-keys"])]
            entry["k"] = " ".join(keys)
            defaults: Object = {
                key: KEY_DEFAULTS[element, key]
                for key in keys
                if isinstance(element, str) and (element, key) in KEY_DEFAULTS
            }
            if defaults:
                entry["d"] = defaults
        return entry
    if "additionalProperties" in schema:
        entry = {"m": code_of(as_object(schema["additionalProperties"]), schemas, reached)}
        if schema.get("x-kubernetes-map-type") == "atomic":
            entry["a"] = 1
        return entry
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        return ""
    return "scalar"


def strategy_of(schema: Object) -> Object:
    """The parts of a field that only strategic merge patches read."""
    found: Object = {}
    if "x-kubernetes-patch-merge-key" in schema:
        found["x"] = schema["x-kubernetes-patch-merge-key"]
    if "x-kubernetes-patch-strategy" in schema:
        found["s"] = schema["x-kubernetes-patch-strategy"]
    return found


def ref_of(schema: Object) -> str:
    """The short name a schema refers to, or ""."""
    ref = schema.get("$ref")
    return short(ref.rpartition("/")[2]) if isinstance(ref, str) else ""


def members(schema: Object) -> Object:
    """``properties``."""
    return as_object(schema.get("properties", {}))


def short(name: str) -> str:
    """``io.k8s.api.apps.v1.Deployment`` → ``apps.v1.Deployment``."""
    for prefix, instead in PREFIXES:
        if name.startswith(prefix):
            return instead + name.removeprefix(prefix)
    return name


def as_object(value: Json) -> Object:
    """The value, which must be an object."""
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {value!r}")
    return value


def as_list(value: Json) -> list[Json]:
    """The value, which must be a list or null."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {value!r}")
    return value


def text(value: Json) -> str:
    """The value, which must be a string."""
    if not isinstance(value, str):
        raise TypeError(f"expected a string, found {value!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
