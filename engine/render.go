package main

import (
	"bytes"
	"fmt"
	"log"
	"log/slog"
	"runtime"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/cli/values"
	"helm.sh/helm/v4/pkg/getter"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
)

// Request is one render, one build, or the templates of one set. Chart and Values are paths, for a render.
type Request struct {
	Release     string   `json:"release"`
	Namespace   string   `json:"namespace"`
	Chart       string   `json:"chart"`
	Values      string   `json:"values"`
	KubeVersion string   `json:"kube_version"`
	APIVersions []string `json:"api_versions"`
	IsUpgrade   bool     `json:"is_upgrade"`
	// Kustomization is built in place of rendering a chart.
	Kustomization *Kustomization `json:"kustomization"`
	// TemplateSet is executed in place of rendering a chart.
	TemplateSet *TemplateSet `json:"template_set"`
}

// Answer is what `helm template --include-crds` or `kubectl kustomize` would have written, and its exit code. For templates it
// is a list of Executed in JSON, or an error.
type Answer struct {
	Output []byte `json:"output"`
	Errors []byte `json:"errors"`
	Code   int    `json:"code"`
	// Heap is the memory of the process after the render, in bytes. The caller replaces a process that is too large.
	Heap uint64 `json:"heap"`
	// Files is what a build has read from the disk: the sha256 of each file in hexadecimal, "folder" or "absent", by path. It
	// is missing if the result may depend on anything else.
	Files map[string]string `json:"files,omitempty"`
	// Remote is true if a build failed because it needs a network.
	Remote bool `json:"remote,omitempty"`
}

// Render renders one chart. A panic of the library is an error of this request.
func Render(request Request) (answer Answer) {
	var said bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	log.SetOutput(&said)
	defer func() {
		if found := recover(); found != nil {
			answer = failed(&said, fmt.Errorf("panic: %v", found))
		}
		answer.Heap = heap()
	}()
	output, err := template(request)
	if err != nil {
		return failed(&said, err)
	}
	return Answer{Output: output, Errors: said.Bytes()}
}

func heap() uint64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapSys - memory.HeapReleased
}

func failed(said *bytes.Buffer, err error) Answer {
	fmt.Fprintf(said, "Error: %v\n", err)
	return Answer{Errors: said.Bytes(), Code: 1}
}

// template does what the commands `helm template` and `helm install` do around the library.
func template(request Request) ([]byte, error) {
	version, err := common.ParseKubeVersion(request.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("invalid kube version '%s': %w", request.KubeVersion, err)
	}
	client := action.NewInstall(action.NewConfiguration())
	client.DryRunStrategy = action.DryRunClient
	client.Replace = true // skips the check of the name
	client.ReleaseName = request.Release
	client.Namespace = request.Namespace
	client.KubeVersion = version
	client.APIVersions = common.VersionSet(request.APIVersions)
	client.IncludeCRDs = true
	client.IsUpgrade = request.IsUpgrade

	path, err := client.LocateChart(request.Chart, cli.New())
	if err != nil {
		return nil, err
	}
	given := values.Options{ValueFiles: []string{request.Values}}
	merged, err := given.MergeValues(getter.Providers{})
	if err != nil {
		return nil, err
	}
	found, err := loader.Load(path)
	if err != nil {
		return nil, err
	}
	if err := check(found); err != nil {
		return nil, err
	}
	result, err := client.Run(found, merged)
	release, isRelease := result.(*releasev1.Release)
	if err != nil {
		if isRelease && release != nil {
			return nil, fmt.Errorf("%w\n\nUse --debug flag to render out invalid YAML", err)
		}
		return nil, err
	}
	if !isRelease {
		return nil, fmt.Errorf("helm returned a release of type %T", result)
	}
	var output bytes.Buffer
	fmt.Fprintln(&output, strings.TrimSpace(release.Manifest))
	for _, hook := range release.Hooks {
		fmt.Fprintf(&output, "---\n# Source: %s\n%s\n", hook.Path, hook.Manifest)
	}
	return output.Bytes(), nil
}

// check refuses what `helm install` refuses: library charts, and charts that lack dependencies.
func check(found chart.Charter) error {
	accessor, err := chart.NewAccessor(found)
	if err != nil {
		return err
	}
	switch kind := accessor.MetadataAsMap()["Type"]; kind {
	case "", "application":
	default:
		return fmt.Errorf("%s charts are not installable", kind)
	}
	if wanted := accessor.MetaDependencies(); len(wanted) > 0 {
		if err := action.CheckDependencies(found, wanted); err != nil {
			return fmt.Errorf("an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies: %w", err)
		}
	}
	return nil
}
