#!/bin/sh
# Install the daemon and its libraries into the virtual environment $1, with the versions of constraints.txt, compiled and without pip.
# The embedded control plane is left out, because a cluster has its own. Needs Python with venv, and the registry of Python packages. The components are
# listed in sbom.cdx.json, with the Go modules in the file $2 if it is given.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/../.."
into=${1:?usage: python.sh FOLDER [MODULES]}
modules=${2:-}
python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore
# The time of all files in wheels and in compiled modules.
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-315619200}"

"$python" -m venv "$scratch/venv"
mkdir "$scratch/source"
cp -R wharfinger pyproject.toml README.md LICENSE constraints.txt "$scratch/source/"
(cd "$scratch/source" && PIP_CONSTRAINT=constraints.txt ../venv/bin/pip wheel --quiet --no-deps --wheel-dir ../wheel .)
"$python" -m venv --without-pip "$into"
"$scratch/venv/bin/pip" --python "$into/bin/python" install --quiet --no-compile -c constraints.txt "$(echo "$scratch"/wheel/*.whl)[admission]"
# pip records where the wheel was, which is another folder each time.
for info in "$into"/lib/python3*/site-packages/wharfinger-*.dist-info; do
    rm "$info/direct_url.json"
    sed -i '/\/direct_url\.json,/d' "$info/RECORD"
done
"$python" deploy/image/sbom.py "$into" ${modules:+"$modules"} >"$into/sbom.cdx.json"
# Compile all modules now, because the image is read-only. A compiled module is valid regardless of the times of files.
find "$into" -name __pycache__ -type d -prune -exec rm -rf {} +
"$into/bin/python" -m compileall -q --invalidation-mode unchecked-hash "$into"/lib
