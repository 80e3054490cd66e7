"""The daemon's report about a chart with a manifest that does not fit the schema of its kind."""

from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.programs import attempt, wharfinger
from tests.runtime.support.killing import Kubectl, application, embedded_daemon

MISSPELT = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {prots: [{port: 80}]}\n"


@pytest.mark.slow
def test_a_misspelt_field_is_reported_and_stalls_the_package(tmp_path: Path) -> None:
    """The API server answers the apply with status 500, although another attempt cannot help."""
    local = chart(tmp_path / "local" / "web", "web", "1.0.0", {"templates/service.yaml": MISSPELT})
    with embedded_daemon(tmp_path, "--local-packages", str(tmp_path)) as running:
        running.wait_line("ready:")
        kubectl = Kubectl(tmp_path / "state" / "embedded" / "kubeconfig")
        repository = f"{{folder: {{path: '{local.parent}'}}}}"
        kubectl.apply(tmp_path / "app.yaml", application("web", repository))
        kubectl("wait", "--for=condition=Stalled", "application/app", "--timeout=45s")
        told = attempt(
            *wharfinger("why", "default.app", "--socket", str(tmp_path / "state" / "run" / "debug.sock"))
        ).stdout
    assert ".spec.prots: field not declared in schema" in told
    assert "correct the manifest in the chart" in told
