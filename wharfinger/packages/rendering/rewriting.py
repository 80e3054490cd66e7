"""Changes of a rendered chart. They change both its objects and the text of its manifest, which Helm and users read later."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.packages.rendering.helm_output import document_objects, split_documents
from wharfinger.packages.rendering.renderer import Rendered

Change: TypeAlias = Callable[[JsonObject], JsonObject | None]
"""A function that returns a changed copy of an object, the object itself if nothing changes, or None to remove it."""


def rewritten(rendered: Rendered, change: Change) -> Rendered:
    """Return a rendered chart with ``change`` applied to its objects and Helm hooks.

    The text of the manifest is updated: a document with a changed object is written anew under its ``# Source`` line, other
    documents are not changed. Blocking: it reads the manifest. Raises RenderError if the manifest is invalid.
    """
    hooks = tuple(obj for obj in map(change, rendered.hooks) if obj is not None)
    objects: list[JsonObject] = []
    manifest: list[str] = []
    for document in split_documents(rendered.manifest):
        before = document_objects(document)
        changed = [change(obj) for obj in before]
        after = [obj for obj in changed if obj is not None]
        objects += after
        if all(new is old for new, old in zip(changed, before, strict=True)):
            manifest.append(f"---\n{document.text}")
        else:
            source = document.text.partition("\n")[0] + "\n" if document.text.startswith("# Source: ") else ""
            manifest += [f"---\n{source}{write_yaml(obj)}" for obj in after]
    return replace(rendered, hooks=hooks, objects=tuple(objects), manifest="".join(manifest))
