"""Make wharfinger/control_plane/kinds/list_types.json: the merge rules and the printed form of the built-in kinds.

There are two sources: one for the merge rules, and one for the form in which Go prints values. (For example, an unset struct is
printed unless Go holds it by pointer, and OpenAPI does not record this.)

* The OpenAPI definitions in the PyPI package ``kubernetes-validate`` have the list types, keys, map types and merge keys.
* The Go modules ``k8s.io/client-go``, ``k8s.io/apiextensions-apiserver`` and ``k8s.io/kube-aggregator`` have the Go types. The
  small program below reads these types by reflection. ``go run`` runs it in a temporary folder.

To make the table for another version of Kubernetes::

    python -m venv /path/to/venv && /path/to/venv/bin/pip install kubernetes-validate
    python tools/kubernetes/generate_list_types.py --minor 36 --patch 2 --site-packages /path/to/venv/lib/python3.11/site-packages

The file contains two tables. ``kinds`` maps each kind (such as ``apps/v1/Deployment``) to the name of its type. ``types`` maps
each name to a struct with these members:

* ``o``: its fields in Go's order, separated by spaces. A scalar is written as ``name=CODE``, any other field as its name
  alone. A code is a letter (``s`` string, ``b`` bool, ``i`` int32, ``l`` int64, ``f`` float64, ``y`` bytes in base64,
  ``q`` quantity, ``x`` int or string, ``t`` time, ``m`` time with microseconds, ``o`` a schema or a list of them, ``c`` a
  schema or a boolean, ``d`` a schema or a list of strings, no letter for any JSON that only changes as a whole). The letter
  is preceded by ``*`` if Go holds the field by pointer. It is followed by the name of the Go type, unless the letter implies
  the type (``s:v1.PullPolicy``);
* ``f``: the fields that are not scalars. The name of a struct stands for this struct, ``{"r": name, …}`` for a struct with
  further members (see below), ``{"l": list type, "e": element, …}`` for a list, ``{"m": element, …}`` for a map, and ``""`` for
  any JSON. Elements are written in the same way, and scalar elements as ``=CODE``;
* ``e``: the fields that belong to an embedded struct: name of that struct → fields;
* ``a``: whether the struct is atomic; ``z``: the printed form of the empty struct;
* ``p``: the lists and maps of the struct for which an empty value differs from an absent one.

Structs, lists and maps inside ``f`` can have these further members: ``k`` (keys of a list), ``d`` (defaults of keys), ``x``
(patch merge key), ``s`` (patch strategy), ``a`` (whether the struct or map is atomic) and ``g`` (the Go type, unless it follows
from the rest).
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

ROOT: Final = Path(__file__).resolve().parents[2]
OUTPUT: Final = Path(__file__).resolve().parents[2] / "wharfinger" / "control_plane" / "kinds" / "list_types.json"

ALSO: Final = ("meta.v1.ObjectMeta", "meta.v1.DeleteOptions")
"""Types that are added because no kind with metadata refers to them."""

KEY_DEFAULTS: Final[dict[tuple[str, str], str]] = {
    ("core.v1.ContainerPort", "protocol"): "TCP",
    ("core.v1.LocalObjectReference", "name"): "",
    ("core.v1.ServicePort", "protocol"): "TCP",
}
"""Defaults of fields that are keys of lists. They are markers in the Go source, and absent in the published definitions."""

SAYS_EMPTY: Final = {"apiextensions.v1.JSONSchemaProps": "dependencies"}
"""Fields for which only the presence matters: the API server refuses a schema with such a field even if the field is empty."""

PREFIXES: Final = (
    ("io.k8s.api.", ""),
    ("io.k8s.apimachinery.pkg.apis.", ""),
    ("io.k8s.apimachinery.pkg.", ""),
    ("io.k8s.apiextensions-apiserver.pkg.apis.", ""),
    ("io.k8s.kube-aggregator.pkg.apis.", ""),
)
SCALARS: Final = {
    "api.resource.Quantity": "q",
    "util.intstr.IntOrString": "x",
    "meta.v1.Time": "t",
    "meta.v1.MicroTime": "m",
    "apiextensions.v1.JSONSchemaPropsOrArray": "o",
    "apiextensions.v1.JSONSchemaPropsOrBool": "c",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "d",
}
KINDS: Final = {"string": "s", "bool": "b", "int32": "i", "int64": "l", "float64": "f", "slice": "y", "struct": "s"}
OPAQUE: Final = ("runtime.RawExtension", "meta.v1.FieldsV1", "apiextensions.v1.JSON")

GO_PROGRAM: Final = """
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	aggregation "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type described struct {
	Type    string     `json:"type"`
	Kind    string     `json:"kind"`
	Pointer bool       `json:"pointer"`
	Of      *described `json:"of"`
}

type member struct {
	described
	Name     string `json:"name"`
	Embedded string `json:"embedded"`
}

type printed struct {
	Zero    json.RawMessage `json:"zero"`
	Members []member        `json:"members"`
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
	seen[name(t)] = printed{Zero: zero, Members: members(t, []member{}, "")}
}

func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func describe(t reflect.Type) described {
	held := bare(t)
	one := described{Type: held.String(), Kind: held.Kind().String(), Pointer: t.Kind() == reflect.Pointer}
	if held.Kind() == reflect.Slice || held.Kind() == reflect.Map {
		of := describe(held.Elem())
		one.Of = &of
	}
	return one
}

func members(t reflect.Type, found []member, embedded string) []member {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" {
			found = members(bare(field.Type), found, strings.TrimPrefix(embedded+"."+field.Name, "."))
			continue
		}
		found = append(found, member{described: describe(field.Type), Name: tag, Embedded: embedded})
		look(field.Type)
	}
	return found
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
	look(reflect.TypeOf(meta.DeleteOptions{}))
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		panic(err)
	}
}
"""


def main() -> int:
    """Write the file, and return 1 if a source is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", type=int, required=True, help="minor version of Kubernetes")
    parser.add_argument("--patch", type=int, required=True, help="patch version of its Go modules")
    parser.add_argument(
        "--site-packages", type=Path, required=True, help="the folder in which kubernetes-validate is installed"
    )
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
    """Return the members of each Go struct and the printed form of its zero value, by the name of the struct."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.go").write_text(GO_PROGRAM)
        Path(folder, "go.mod").write_text("module listtypes\n\ngo 1.24\n")
        modules = ("k8s.io/client-go", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator")
        subprocess.run(["go", "get", *(f"{module}@{version}" for module in modules)], cwd=folder, check=True)
        run = subprocess.run(["go", "run", "."], cwd=folder, check=True, stdout=subprocess.PIPE)
    found: dict[str, Object] = json.loads(run.stdout)
    return {short(name): facts for name, facts in found.items()}


def build(definitions: dict[str, Object], printed: dict[str, Object]) -> Object:
    """Return the content of the file: all kinds that have metadata, and all types that they refer to."""
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
    waiting = [*map(text, kinds.values()), *ALSO]
    while waiting:
        name = waiting.pop()
        if name in types or name not in schemas:
            continue
        types[name], reached = struct_of(name, schemas, printed.get(name, {}))
        waiting += reached
    return {"kinds": kinds, "types": types}


def struct_of(name: str, schemas: dict[str, Object], printed: Object) -> tuple[Object, list[str]]:
    """Return the entry of a struct, and the names of the structs that its fields refer to."""
    schema = schemas[name]
    zero = as_object(printed.get("zero", {}))
    declared = members(schema)
    order = [as_object(member) for member in as_list(printed.get("members", []))]
    known = {text(member["name"]) for member in order}
    order = [member for member in order if text(member["name"]) in declared]
    order += [{"name": field, "embedded": ""} for field in declared if field not in known]
    names: list[str] = []
    others: Object = {}
    embedded: dict[str, list[str]] = {}
    reached: list[str] = []
    for member in order:
        field = text(member["name"])
        code = code_of(as_object(declared[field]), schemas, member, reached)
        if isinstance(code, str) and code.startswith("="):
            names.append(f"{field}{code}")
        else:
            names.append(field)
            others[field] = code
        if member["embedded"] and member["embedded"] != "TypeMeta":
            embedded.setdefault(text(member["embedded"]), []).append(field)
    entry: Object = {"o": " ".join(names)}
    if others:
        entry["f"] = others
    if embedded:
        entry["e"] = {holder: " ".join(fields) for holder, fields in embedded.items()}
    if zero:
        entry["z"] = zero
    if schema.get("x-kubernetes-map-type") == "atomic":
        entry["a"] = 1
    if name in SAYS_EMPTY:
        entry["p"] = SAYS_EMPTY[name]
    return entry, reached


def code_of(schema: Object, schemas: dict[str, Object], go: Object, reached: list[str]) -> Json:
    """Return the code of a field or element (see the module's docstring). The names of structs in it are added to ``reached``."""
    name = ref_of(schema)
    if name in OPAQUE:
        return ""
    if name and name not in SCALARS and (members(schemas[name]) or go.get("kind") == "struct"):
        reached.append(name)
        code: Object = {"r": name, **strategy_of(schema)}
        if said := schema.get("x-kubernetes-map-type"):
            code["a"] = int(said == "atomic")
        return code if len(code) > 1 else name
    kinds = schema.get("type") if not name else "string"
    if name:
        return scalar_of(name, schemas[name], go)
    kinds = schema.get("type")
    of = as_object(go.get("of") or {})
    if kinds == "array" or (isinstance(kinds, list) and "array" in kinds):
        element = code_of(as_object(schema["items"]), schemas, of, reached)
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
        return with_go_type(entry, f"[]{'*' if of.get('pointer') else ''}{of.get('type') if element else ''}", go)
    if "additionalProperties" in schema:
        entry = {"m": code_of(as_object(schema["additionalProperties"]), schemas, of, reached)}
        if schema.get("x-kubernetes-map-type") == "atomic":
            entry["a"] = 1
        return with_go_type(entry, f"map[string]{of.get('type')}", go)
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        return ""
    return scalar_of("", schema, go)


def with_go_type(entry: Object, expected: str, go: Object) -> Object:
    """Return the entry of a list or map with its Go type. The type is left out if it is the expected one and contains no
    pointer.
    """
    found = go.get("type")
    return {**entry, "g": found} if found and (found != expected or "*" in expected) else entry


def scalar_of(name: str, schema: Object, go: Object) -> str:
    """Return the ``=CODE`` of a scalar.

    The letter follows from the name of the type if this is in SCALARS, else from the Go kind if this is known, else from the
    OpenAPI type.
    """
    kinds = schema.get("type")
    said = next((text(kind) for kind in as_list(kinds) if kind != "null"), "") if isinstance(kinds, list) else kinds
    kind = text(go.get("kind") or {"integer": "int64", "boolean": "bool", "number": "float64"}.get(str(said), "string"))
    letter = SCALARS[name] if name in SCALARS else KINDS[kind]
    found = text(go.get("type", ""))
    named = "" if name in SCALARS or kind in ("slice", "struct") or found in ("", kind) else f":{found}"
    return f"={'*' if go.get('pointer') else ''}{letter}{named}"


def strategy_of(schema: Object) -> Object:
    """Return the members of a field's entry that only strategic merge patches need: the merge key and the strategy."""
    found: Object = {}
    if "x-kubernetes-patch-merge-key" in schema:
        found["x"] = schema["x-kubernetes-patch-merge-key"]
    if "x-kubernetes-patch-strategy" in schema:
        found["s"] = schema["x-kubernetes-patch-strategy"]
    return found


def ref_of(schema: Object) -> str:
    """Return the short name to which a schema refers, or ""."""
    ref = schema.get("$ref")
    return short(ref.rpartition("/")[2]) if isinstance(ref, str) else ""


def members(schema: Object) -> Object:
    """Return the ``properties`` of a schema, or an empty object if there are none."""
    return as_object(schema.get("properties", {}))


def short(name: str) -> str:
    """Return the short form of a name: ``io.k8s.api.apps.v1.Deployment`` → ``apps.v1.Deployment``."""
    for prefix, instead in PREFIXES:
        if name.startswith(prefix):
            return instead + name.removeprefix(prefix)
    return name


def as_object(value: Json) -> Object:
    """Return the value, which must be an object. Raises TypeError."""
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, found {value!r}")
    return value


def as_list(value: Json) -> list[Json]:
    """Return the value, which must be a list or null; null gives []. Raises TypeError."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"expected a list, found {value!r}")
    return value


def text(value: Json) -> str:
    """Return the value, which must be a string. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"expected a string, found {value!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
