"""The site that is made from docs/: it is built without a warning, and the tutorial works as written. The pages explain each
state that `wharfinger why` reports, and each alert.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wharfinger.formats.json.value import find_list, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.runtime.status.reasons import Again, Reason

ROOT = Path(__file__).resolve().parent.parent
TROUBLE = (ROOT / "docs" / "troubleshooting.md").read_text()
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
TUTORIAL_S = 300


def headings() -> set[str]:
    return set(re.findall(r"^### (\S+)$", TROUBLE, re.MULTILINE))


def verdicts() -> set[str]:
    """Return the beginnings of the states that `why` reports, as found in its source."""
    found: set[str] = set()
    for path in (ROOT / "wharfinger" / "runtime" / "why").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Cause" and node.args:
                match node.args[0]:
                    case ast.Constant(value=str(text)):
                        found.add(text)
                    case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
                        found.add(text.strip())
                    case _:
                        pass
    return found


def test_each_alert_has_a_paragraph() -> None:
    alerts = read_yaml((ROOT / "deploy" / "chart" / "alerts" / "wharfinger.yaml").read_bytes(), what="alerts")
    names = {find_str(rule, "alert") for group in find_list(alerts, "groups") for rule in find_list(group, "rules")}
    assert names
    assert names <= headings()


def test_exactly_the_reasons_of_failures_have_paragraphs() -> None:
    failures = {str(each) for each in Reason if each.again is not Again.NOTHING}
    assert failures <= headings()
    assert {each for each in headings() if not each.startswith("Wharfinger")} == failures


def test_each_verdict_of_why_has_a_row_in_the_table() -> None:
    rows = re.findall(r"^\| ([a-z][^|]+?) \|", TROUBLE, re.MULTILINE)
    found = verdicts()
    assert len(found) > 15
    assert [text for text in found if not any(row.startswith(text) for row in rows)] == []


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=TUTORIAL_S)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "site" / "tutorial" / "index.html").exists()


@pytest.mark.slow
@pytest.mark.unmeasured
def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL))
    tools = ":".join(map(str, (ROOT / ".venv" / "bin", ROOT / ".cache" / "tools" / "bin")))
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    guarded = f"set -euo pipefail; trap 'kill %1 2>/dev/null || true' EXIT\n{script}"
    done = subprocess.run(
        ["bash", "-c", guarded],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=TUTORIAL_S,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for said in ("Hello, world", "corrected ConfigMap demo/greeting", "guests: 1", "no packages", "exit code 3"):
        assert said in done.stdout + done.stderr
