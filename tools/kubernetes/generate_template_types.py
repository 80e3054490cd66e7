"""Make the table of a pod template's Go types (wharfinger/control_plane/controllers/workloads/template_types.json).

The names of ReplicaSets and the revisions of DaemonSets end in a hash. The hash is computed from the pod template as Go prints
it, field by field in the order of the Go types. The small program below reads these types by reflection from the Go module
``k8s.io/api``. ``go run`` runs it in a temporary folder. To make the table for another version of Kubernetes::

    python tools/kubernetes/generate_template_types.py --minor 36 --patch 2

The file holds two tables. ``structs`` maps the name of each struct to its fields, each with its Go name, its name in JSON ("" for
an embedded struct) and its type. ``named`` maps the name of each other type to its underlying type (``string``,
``map[v1.ResourceName]resource.Quantity``).
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

OUTPUT: Final = (
    Path(__file__).resolve().parents[2]
    / "wharfinger"
    / "control_plane"
    / "controllers"
    / "workloads"
    / "template_types.json"
)

GO_PROGRAM: Final = """
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	core "k8s.io/api/core/v1"
)

var (
	structs = map[string][][3]string{}
	named   = map[string]string{}
	opaque  = map[string]bool{"resource.Quantity": true, "intstr.IntOrString": true, "v1.Time": true, "v1.FieldsV1": true}
)

func look(t reflect.Type) {
	switch {
	case opaque[t.String()]:
		return
	case t.Kind() == reflect.Pointer:
		look(t.Elem())
		return
	case t.Kind() == reflect.Struct:
		if _, done := structs[t.String()]; done {
			return
		}
		members := [][3]string{}
		structs[t.String()] = members
		for i := 0; i < t.NumField(); i++ {
			field := t.Field(i)
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			members = append(members, [3]string{field.Name, tag, field.Type.String()})
			look(field.Type)
		}
		structs[t.String()] = members
		return
	case t.Kind() == reflect.Slice:
		look(t.Elem())
		if t.Name() != "" {
			named[t.String()] = "[]" + t.Elem().String()
		}
	case t.Kind() == reflect.Map:
		look(t.Key())
		look(t.Elem())
		if t.Name() != "" {
			named[t.String()] = "map[" + t.Key().String() + "]" + t.Elem().String()
		}
	case t.PkgPath() != "":
		named[t.String()] = t.Kind().String()
	}
}

func main() {
	look(reflect.TypeOf(core.PodTemplateSpec{}))
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"structs": structs, "named": named}); err != nil {
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
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.go").write_text(GO_PROGRAM)
        Path(folder, "go.mod").write_text("module templatetypes\n\ngo 1.24\n")
        module = f"k8s.io/api/core/v1@v0.{args.minor}.{args.patch}"
        subprocess.run(["go", "get", module], cwd=folder, check=True)
        run = subprocess.run(["go", "run", "."], cwd=folder, check=True, stdout=subprocess.PIPE)
    args.output.write_text(json.dumps(json.loads(run.stdout), separators=(",", ":"), sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
