package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n"

func built(t *testing.T, request Kustomization) string {
	t.Helper()
	answer := Build(request)
	if answer.Code != 0 {
		t.Fatalf("code %d: %s", answer.Code, answer.Errors)
	}
	if answer.Heap == 0 {
		t.Error("the heap is not reported")
	}
	return string(answer.Output)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestBuild(t *testing.T) {
	kustomization := "namePrefix: x-\nresources: [base]\n"
	base := "resources: [a.yaml]\n"
	folder := write(t, map[string]string{"kustomization.yaml": kustomization, "base/kustomization.yaml": base, "base/a.yaml": configMap})
	if got, wanted := built(t, Kustomization{Folder: folder}), "apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  name: x-a\n"; got != wanted {
		t.Errorf("got %q", got)
	}
	seen := map[string]string{}
	for path, state := range Build(Kustomization{Folder: folder, Unrestricted: true}).Files {
		name, err := filepath.Rel(folder, path)
		if err != nil {
			t.Fatal(err)
		}
		seen[name] = state
	}
	wanted := map[string]string{
		".": folderState, "kustomization.yaml": digest(kustomization), "kustomization.yml": absentState, "Kustomization": absentState,
		"base": folderState, "base/kustomization.yaml": digest(base), "base/kustomization.yml": absentState,
		"base/Kustomization": absentState, "base/a.yaml": digest(configMap),
	}
	if !maps.Equal(seen, wanted) {
		t.Errorf("seen %v", seen)
	}
}

func TestLinksOfARestrictedBuildHaveNoState(t *testing.T) {
	folder := write(t, map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": configMap})
	if answer := Build(Kustomization{Folder: folder}); answer.Code != 0 || answer.Files != nil {
		t.Errorf("code %d, seen %v", answer.Code, answer.Files)
	}
}

func TestABuildThroughALinkHasNoState(t *testing.T) {
	folder := write(t, map[string]string{"a/kustomization.yaml": "resources: [../link]\n", "b/kustomization.yaml": "resources: [b.yaml]\n", "b/b.yaml": configMap})
	if err := os.Symlink("b", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if answer := Build(Kustomization{Folder: filepath.Join(folder, "a"), Unrestricted: true}); answer.Code != 0 || answer.Files != nil {
		t.Errorf("code %d, %s, seen %v", answer.Code, answer.Errors, answer.Files)
	}
}

func TestFilesOfTheRequest(t *testing.T) {
	folder := write(t, map[string]string{"apps/a.yaml": configMap})
	request := Kustomization{
		Folder:       filepath.Join(folder, "made"),
		Files:        map[string]string{"kustomization.yaml": "nameSuffix: -x\nresources: [../apps/a.yaml, b.yaml]\n", "b.yaml": strings.Replace(configMap, "name: a", "name: b", 1)},
		Unrestricted: true,
	}
	if got := built(t, request); !strings.Contains(got, "name: a-x\n") || !strings.Contains(got, "name: b-x\n") {
		t.Errorf("got %q", got)
	}
	answer := Build(request)
	if wanted := map[string]string{filepath.Join(folder, "apps/a.yaml"): digest(configMap)}; !maps.Equal(answer.Files, wanted) {
		t.Errorf("seen %v", answer.Files)
	}
	request.Unrestricted = false
	if answer := Build(request); !strings.Contains(string(answer.Errors), "is not in or below") {
		t.Errorf("errors %q", answer.Errors)
	}
}

func TestErrorsOfBuilds(t *testing.T) {
	for kustomization, wanted := range map[string]string{
		"resources: [absent.yaml]": "no such file or directory",
		"resources: ['../']":       "cycle detected",
		"a: [b":                    "invalid Kustomization",
		"helmCharts: [{name: a, repo: https://127.0.0.1}]": "must specify --enable-helm",
	} {
		answer := Build(Kustomization{Folder: write(t, map[string]string{"kustomization.yaml": kustomization})})
		if answer.Code != 1 || !bytes.HasPrefix(answer.Errors, []byte("error: ")) || !strings.Contains(string(answer.Errors), wanted) ||
			len(answer.Output) > 0 || answer.Remote {
			t.Errorf("%s: code %d, output %q, errors %q", kustomization, answer.Code, answer.Output, answer.Errors)
		}
	}
}

func TestNothingIsFetched(t *testing.T) {
	for _, resource := range []string{"http://127.0.0.1:9/a.yaml", "https://example.test/owner/name//folder?ref=main", "ssh://git@example.test/owner/name"} {
		answer := Build(Kustomization{Folder: write(t, map[string]string{"kustomization.yaml": "resources: ['" + resource + "']\n"})})
		if answer.Code != 1 || !answer.Remote {
			t.Errorf("%s: code %d, remote %v, errors %q", resource, answer.Code, answer.Remote, answer.Errors)
		}
	}
}

// A schema of its own must not reach the next build in the same process.
func TestSchemasAreForgotten(t *testing.T) {
	files := map[string]string{
		"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: patch.yaml}]\n",
		"a.yaml":             "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a, image: a}, {name: b, image: b}]}}}\n",
		"patch.yaml":         "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: a, image: new}]}}}\n",
	}
	folder := write(t, files)
	files["kustomization.yaml"] += "openapi: {path: schema.json}\n"
	files["schema.json"] = `{"definitions": {"io.k8s.api.apps.v1.Deployment": {"type": "object", "properties": {"spec": {"type": "object"}},` +
		`"x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Deployment", "version": "v1"}]}}}`
	before := built(t, Kustomization{Folder: folder})
	if !strings.Contains(before, "image: b") {
		t.Fatalf("got %q", before)
	}
	if own := built(t, Kustomization{Folder: write(t, files)}); own == before {
		t.Error("the schema of a build changes nothing, so this test proves nothing")
	}
	if after := built(t, Kustomization{Folder: folder}); after != before {
		t.Errorf("got %q", after)
	}
}

func TestCopiesOfAPatchAreBounded(t *testing.T) {
	patched := func(copies int) Answer {
		patch := "patches:\n- target: {kind: ConfigMap}\n  patch: |-\n    - {op: add, path: /data/x, value: []}\n"
		for range copies {
			patch += "    - {op: copy, from: /data/x, path: /data/x/-}\n"
		}
		files := map[string]string{"kustomization.yaml": "resources: [a.yaml]\n" + patch, "a.yaml": configMap}
		return Build(Kustomization{Folder: write(t, files)})
	}
	if answer := patched(5); answer.Code != 0 {
		t.Errorf("code %d: %s", answer.Code, answer.Errors)
	}
	if answer := patched(40); answer.Code == 0 || !strings.Contains(string(answer.Errors), "copy") {
		t.Errorf("code %d: %.300s", answer.Code, answer.Errors)
	}
}
