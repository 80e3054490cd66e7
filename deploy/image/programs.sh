#!/bin/sh
# Build the Go programs of the image into the folder $1: the chart engine, helm and kubectl. The versions are those of engine/go.mod
# and deploy/image/tools/go.mod. The same sources and the same Go give the same bytes. Needs Go, and the modules' proxy. GOOS and GOARCH
# name another platform. The modules in the programs are listed in the file $2, if it is given.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/../.."
out=${1:?usage: programs.sh FOLDER [MODULES]}
modules=${2:-/dev/null}
case $modules in /*) ;; *) modules=$PWD/$modules ;; esac
mkdir -p "$out"
out=$(CDPATH='' cd -- "$out" && pwd)
export CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false -mod=readonly'
version() { go list -m -f '{{.Version}}' "$1"; }

helm=$(cd engine && version helm.sh/helm/v4)
(cd engine && go build -ldflags "-s -w -buildid= -X main.version=$helm" -o "$out/wharfinger-engine" .)
cd deploy/image/tools
[ "$(version helm.sh/helm/v4)" = "$helm" ] || {
    echo "programs.sh: error: engine/go.mod has helm $helm, deploy/image/tools/go.mod another version; make them equal" >&2
    exit 1
}
go build -ldflags "-s -w -buildid= -X helm.sh/helm/v4/internal/version.version=$helm" -o "$out/helm" helm.sh/helm/v4/cmd/helm
# Kubernetes 1.N publishes its libraries as 0.N.
kubectl=$(version k8s.io/kubectl)
go build -ldflags "-s -w -buildid= -X k8s.io/component-base/version.gitVersion=v1${kubectl#v0}" -o "$out/kubectl" ./kubectl
for program in wharfinger-engine helm kubectl; do go version -m "$out/$program"; done >"$modules"
