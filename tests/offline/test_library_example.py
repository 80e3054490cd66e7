"""The example for users of the library in docs/offline.md: it runs, and prints what the document says."""

import re
import subprocess
import sys

import pytest

from tests.programs import ROOT

_EXAMPLE = re.compile(
    r"## As a library\n\n```python\n(?P<program>.*?)```\n\nIt prints:\n\n```\n(?P<output>.*?)```\n", re.DOTALL
)


@pytest.mark.slow
def test_the_example_prints_the_output_in_the_document() -> None:
    found = _EXAMPLE.search((ROOT / "docs" / "offline.md").read_text())
    assert found is not None
    done = subprocess.run(
        [sys.executable, "-c", found["program"]], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, found["output"]), done.stderr
