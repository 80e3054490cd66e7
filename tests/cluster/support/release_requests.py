"""Release requests for tests, made from manifest text as the renderer makes them."""

from wharfinger.cluster.releases.request import ReleaseRequest
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object
from wharfinger.formats.yaml.reader import read_yaml_all

CHART: JsonObject = {"apiVersion": "v2", "name": "web", "version": "1.2.3", "appVersion": "9"}


def objects_of(manifest: str) -> tuple[JsonObject, ...]:
    """Return the documents of a manifest."""
    return tuple(as_object(document, "document") for document in read_yaml_all(manifest, what="manifest"))


def config_map(name: str, extra: str = "", **data: str) -> str:
    """Return a ConfigMap as manifest text. ``extra`` is added to its metadata."""
    lines = [f"  {key}: {value!r}" for key, value in data.items()] or ["  {}"]
    metadata = f"  name: {name}\n" + "".join(f"  {line}\n" for line in extra.splitlines())
    return f"---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n{metadata}data:\n" + "\n".join(lines) + "\n"


def deployment(name: str, image: str = "registry.example/web:1") -> str:
    """Return a Deployment as manifest text."""
    return (
        f"---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n"
        f"  selector: {{matchLabels: {{app: {name}}}}}\n"
        f"  template:\n    metadata: {{labels: {{app: {name}}}}}\n"
        f"    spec: {{containers: [{{name: main, image: '{image}'}}]}}\n"
    )


def request(
    *manifests: str, name: str = "web", crds: tuple[JsonObject, ...] = (), **values: JsonValue
) -> ReleaseRequest:
    """Return a request in the namespace ``default``."""
    manifest = "".join(manifests)
    return ReleaseRequest(name, "default", CHART, {**values}, manifest, crds=crds, objects=objects_of(manifest))
