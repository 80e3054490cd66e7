"""The software bill of materials: the list of the image's components."""

import json
import subprocess
import sys
from pathlib import Path

from tests.programs import ROOT
from wharfinger.formats.json.value import JsonObject

SCRIPT = ROOT / "deploy" / "image" / "sbom.py"
MODULES = """\
/out/helm: go1.26.8
\tpath\thelm.sh/helm/v4/cmd/helm
\tmod\thelm.sh/helm/v4\tv4.0.1\th1:abc=
\tdep\texample.com/old\tv1.0.0
\t=>\texample.com/new\tv1.1.0\th1:def=
\tbuild\t-trimpath=true
/out/kubectl: go1.26.8
\tdep\texample.com/new\tv1.1.0\th1:def=
"""


def sbom(*arguments: str) -> str:
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_each_library_and_module_is_listed_once(tmp_path: Path) -> None:
    (tmp_path / "modules.txt").write_text(MODULES)
    text = sbom(sys.prefix, str(tmp_path / "modules.txt"))
    assert sbom(sys.prefix, str(tmp_path / "modules.txt")) == text
    document: JsonObject = json.loads(text)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    components = json.loads(text)["components"]
    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("trio==")
    )
    versions = {each["purl"] for each in components}
    assert f"pkg:pypi/trio@{pinned['trio']}" in versions
    assert sorted(each for each in versions if each.startswith("pkg:golang/")) == [
        "pkg:golang/example.com/new@v1.1.0",
        "pkg:golang/example.com/old@v1.0.0",
        "pkg:golang/helm.sh/helm/v4@v4.0.1",
    ]
    assert json.loads(text)["metadata"]["component"]["name"] == "wharfinger"


def test_wrong_usage_is_a_one_line_error() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "usage: sbom.py FOLDER [MODULES]\n")
