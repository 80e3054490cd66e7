package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func request(t *testing.T, template string) Request {
	t.Helper()
	chart := write(t, map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: demo\nversion: 1.0.0\n",
		"templates/a.yaml": template,
		"crds/crd.yaml":    "kind: CustomResourceDefinition\n",
	})
	values := filepath.Join(write(t, map[string]string{"values.yaml": "colour: blue\n"}), "values.yaml")
	return Request{Release: "web", Namespace: "prod", Chart: chart, Values: values, KubeVersion: "v1.37.0",
		APIVersions: []string{"example.com/v1"}, IsUpgrade: true}
}

func TestRender(t *testing.T) {
	answer := Render(request(t, "kind: ConfigMap\ndata: {c: {{ .Values.colour }}, n: {{ .Release.Namespace }}, "+
		"u: '{{ .Release.IsUpgrade }}', a: '{{ .Capabilities.APIVersions.Has \"example.com/v1\" }}', "+
		"k: {{ .Capabilities.KubeVersion.Version }}}\n"))
	wanted := "---\n# Source: demo/crds/crd.yaml\nkind: CustomResourceDefinition\n\n---\n# Source: demo/templates/a.yaml\n" +
		"kind: ConfigMap\ndata: {c: blue, n: prod, u: 'true', a: 'true', k: v1.37.0}\n"
	if got := string(answer.Output); answer.Code != 0 || got != wanted {
		t.Errorf("code %d, %s\ngot  %q\nwant %q", answer.Code, answer.Errors, got, wanted)
	}
	if answer.Heap == 0 {
		t.Error("the heap is not reported")
	}
}

func TestErrors(t *testing.T) {
	for template, wanted := range map[string]string{
		"{{ fail \"not today\" }}": "not today",
		"{{ if }}":                 "missing value for if",
		"a: [b":                    "Use --debug flag to render out invalid YAML",
	} {
		answer := Render(request(t, template))
		if answer.Code != 1 || !strings.Contains(string(answer.Errors), "Error: ") ||
			!strings.Contains(string(answer.Errors), wanted) || len(answer.Output) > 0 {
			t.Errorf("%s: code %d, output %q, errors %q", template, answer.Code, answer.Output, answer.Errors)
		}
	}
	wrong := request(t, "")
	wrong.KubeVersion = "x"
	if answer := Render(wrong); !strings.Contains(string(answer.Errors), "invalid kube version 'x'") {
		t.Errorf("errors %q", answer.Errors)
	}
}

func TestFrames(t *testing.T) {
	var stream bytes.Buffer
	for _, text := range []string{"one", "", "three"} {
		if err := writeFrame(&stream, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, wanted := range []string{"one", "", "three"} {
		if got, err := readFrame(&stream); err != nil || string(got) != wanted {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if _, err := readFrame(&stream); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if _, err := readFrame(strings.NewReader("\x00\x00\x00\x09abc")); err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a frame that breaks off: %v", err)
	}
	large := binary.BigEndian.AppendUint32(nil, maxRequest+1)
	if _, err := readFrame(bytes.NewReader(large)); err == nil || !strings.Contains(err.Error(), "over the limit") {
		t.Errorf("a frame over the limit: %v", err)
	}
}
