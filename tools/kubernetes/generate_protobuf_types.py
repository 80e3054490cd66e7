"""Make wharfinger/control_plane/wire/protobuf_types.json, a table for converting built-in kinds between protobuf and JSON.

Typed Go clients send protobuf. The struct tags of the Go types contain both the number of a field in protobuf and its name
in JSON. A small program, which ``go run`` runs in a temporary folder, reads these tags by reflection from the modules
``k8s.io/client-go``, ``k8s.io/apiextensions-apiserver`` and ``k8s.io/kube-aggregator``.

To make the table for another version of Kubernetes::

    python tools/kubernetes/generate_protobuf_types.py --minor 36 --patch 2

The file holds two tables. ``kinds`` maps each kind (``apps/v1/Deployment``) to the name of its type. ``types`` maps the name of
each type to its fields, and the number of each field to a text: the field's name in JSON, a space, and a code. The name in JSON
is empty if the members of the field belong to the enclosing JSON object. The code is ``s`` for a string, ``b`` for a boolean,
``i`` for an integer, ``y`` for bytes, ``d`` for a double, or the name of a type. It is preceded by ``[`` for a list, and by ``{``
for a map with string keys.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

OUTPUT: Final = Path(__file__).resolve().parents[2] / "wharfinger" / "control_plane" / "wire" / "protobuf_types.json"

GO_PROGRAM: Final = """
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"reflect"
	"strings"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	aggregation "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type table struct {
	Kinds map[string]string            `json:"kinds"`
	Types map[string]map[string]string `json:"types"`
}

var found = table{map[string]string{}, map[string]map[string]string{}}

// name is the group's folder, the version and the type: core.v1.Pod.
func name(t reflect.Type) string {
	folder := path.Dir(t.PkgPath())
	return path.Base(folder) + "." + path.Base(t.PkgPath()) + "." + t.Name()
}

func code(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return code(t.Elem())
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8:
		return "i"
	case reflect.Float64:
		return "d"
	case reflect.Map:
		return "{" + code(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		if t.PkgPath() != "" {
			// A named list is a message of its own, with the items in field 1.
			if _, done := found.Types[name(t)]; !done {
				found.Types[name(t)] = map[string]string{"1": "items [" + code(t.Elem())}
			}
			return name(t)
		}
		return "[" + code(t.Elem())
	case reflect.Struct:
		look(t)
		return name(t)
	}
	panic(fmt.Sprint("no code for ", t))
}

func look(t reflect.Type) {
	if _, done := found.Types[name(t)]; done {
		return
	}
	fields := map[string]string{}
	found.Types[name(t)] = fields
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		inner := code(field.Type)
		if field.Type.Kind() == reflect.Slice && field.Type.PkgPath() != "" && tag[2] == "rep" {
			inner = "[" + code(field.Type.Elem())
		}
		label, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			label = ""
		}
		fields[tag[1]] = label + " " + inner
	}
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
	for gvk, t := range all.AllKnownTypes() {
		unstable := strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta")
		_, object := t.FieldByName("ObjectMeta")
		if (object && !unstable && gvk.Version != runtime.APIVersionInternal) || gvk.Kind == "DeleteOptions" {
			key := strings.TrimPrefix(gvk.Group+"/"+gvk.Version+"/"+gvk.Kind, "/")
			if gvk.Kind == "DeleteOptions" {
				key = gvk.Kind
			}
			look(t)
			found.Kinds[key] = name(t)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		panic(err)
	}
}
"""


def main() -> int:
    """Write the file, and return 1 if the go command is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", type=int, required=True, help="minor version of Kubernetes")
    parser.add_argument("--patch", type=int, required=True, help="patch version of its Go modules")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    if shutil.which("go") is None:
        print("error: the go command is missing", file=sys.stderr)
        return 1
    version = f"v0.{args.minor}.{args.patch}"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.go").write_text(GO_PROGRAM)
        Path(folder, "go.mod").write_text("module protobuftypes\n\ngo 1.24\n")
        modules = ("k8s.io/client-go", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator")
        subprocess.run(["go", "get", *(f"{module}@{version}" for module in modules)], cwd=folder, check=True)
        run = subprocess.run(["go", "run", "."], cwd=folder, check=True, stdout=subprocess.PIPE)
    args.output.write_text(json.dumps(json.loads(run.stdout), separators=(",", ":"), sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
