"""The collection of a run's result: manifests with their namespaces, failures with their places, warnings, and orphans.

Orphans are nodes in files that no build reads.
"""

from collections import Counter
from collections.abc import Iterator

from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.offline.building.stand_ins import is_stand_in
from wharfinger.offline.controllers.built_files import BUILDERS, files_of
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.orchestrator.bodies import TreeBodies
from wharfinger.offline.orchestrator.result import FILES, Failure, Manifest, Notice, Result
from wharfinger.offline.orchestrator.scopes import Scopes
from wharfinger.offline.store.identity import object_id, shown
from wharfinger.offline.store.kinds import FOLDER, SCHEDULABLE, SECRET
from wharfinger.offline.store.store import ObjectStore, Place
from wharfinger.runtime.fixpoint.converge import Report
from wharfinger.runtime.fixpoint.model import Id


def collected(tree: Tree, store: ObjectStore, bodies: TreeBodies, report: Report) -> Result:
    """Return the result of a run that has converged."""
    sources = list(_sources(tree, store, bodies))
    scopes = Scopes(obj for _, _, objects in sources for obj in objects)
    manifests = {
        producer: tuple(_manifest(obj, namespace, tree, scopes) for obj in objects)
        for producer, namespace, objects in sorted(sources, key=lambda each: each[0])
    }
    failed = {each.id: each for each in sorted(_failures(tree, store, bodies, report), key=lambda each: each.id)}
    return Result(
        manifests=manifests,
        failed=failed,
        orphans=_orphans(tree, store),
        warnings=tuple(_warnings(manifests, bodies)),
        skipped={who: each.produced.skipped for who, each in sorted(bodies.made.items()) if each.produced.skipped},
        depends_on=dict(sorted(bodies.reads.items())),
        places={who: document.place for who, document in sorted(tree.declared.items())},
        internal=_internal(tree, store, bodies),
        runs=sum(report.runs.values()),
    )


def _internal(tree: Tree, store: ObjectStore, bodies: TreeBodies) -> dict[Id, Id]:
    """Return the objects that are not printed, each with its producer.

    Usually the producer is a node. A stand-in for a Secret (`stand_ins.py`) is made from another object, such as an
    ExternalSecret. If a file that is loaded declares this other object, the producer of the stand-in is the file.
    """
    found: dict[Id, Id] = {}
    for each in store.list(SECRET):
        if is_stand_in(each.object) and each.producer is None and each.place is not None:
            found[each.id] = Id(FILES, "", each.place.file)
    for who, made in sorted(bodies.made.items()):
        for obj in made.produced.internal:
            each_id = object_id(obj, tree.namespace)
            stored = store.get(each_id)
            if stored is not None and stored.producer == who and stored.object == obj:
                found[each_id] = who
    return found


def _sources(tree: Tree, store: ObjectStore, bodies: TreeBodies) -> Iterator[tuple[Id, str, tuple[JsonObject, ...]]]:
    """Yield each producer (a file or an object that was built), the default namespace for the objects that it produces, and
    these objects.
    """
    files: dict[str, list[JsonObject]] = {}
    built: set[Id] = set()
    if any(each.is_bootstrap for each in tree.loaded):
        built = {
            object_id(obj, made.produced.namespace or tree.namespace)
            for made in bodies.made.values()
            for obj in made.produced.objects
        }
    for each in tree.loaded:
        if each.is_synced:
            continue
        stored = store.get(each.id)
        # A bootstrap object is loaded and also built (`discovery/tree.py`). Then only the built one is yielded.
        if (stored is None or stored.producer is None) and each.id not in (built if each.is_bootstrap else ()):
            files.setdefault(each.document.place.file, []).append(each.document.object)
    for file, objects in files.items():
        yield Id(FILES, "", file), tree.namespace, tuple(objects)
    for who, made in bodies.made.items():
        if made.produced.objects:
            yield who, made.produced.namespace or tree.namespace, made.produced.objects


def _manifest(obj: JsonObject, namespace: str, tree: Tree, scopes: Scopes) -> Manifest:
    """Return an object with the namespace in which it would be applied, if its kind is known to have one."""
    who = object_id(obj, namespace or tree.namespace, scopes.cluster_scoped)
    if find_str(obj, "metadata", "namespace"):
        return Manifest(who, obj)
    namespaced = scopes.is_namespaced(obj)
    if namespaced is None:
        who = Id(who.kind, "", who.name)
    if namespaced:
        obj = {**obj, "metadata": {**find_object(obj, "metadata"), "namespace": who.namespace}}
    return Manifest(who, obj)


def _failures(tree: Tree, store: ObjectStore, bodies: TreeBodies, report: Report) -> Iterator[Failure]:
    for number, problem in enumerate(tree.problems):
        yield Failure(Id("File", "", f"{problem.place.file}#{number}"), problem.message, problem.place)
    for who, status in store.statuses():
        if status.has_failed:
            yield Failure(who, status.message, _place(who, tree, store, bodies), status.blockers)
    for who, message in report.crashed.items():
        yield Failure(who, f"an unexpected error: {message}", _place(who, tree, store, bodies))
    for who, exhausted in report.exhausted.items():
        yield Failure(who, exhausted.message, _place(who, tree, store, bodies))
    for who, unresolved in report.unresolved.items():
        named = ", ".join(map(shown, unresolved.lacks))
        yield Failure(who, f"waits for objects that nothing makes: {named}", _place(who, tree, store, bodies))


def _place(who: Id, tree: Tree, store: ObjectStore, bodies: TreeBodies) -> Place | None:
    """Return the place to show for a failed node: the place of the failure if it is known, otherwise the place of the node or,
    without one, of the node that produced it.
    """
    if (found := bodies.places.get(who)) is not None:
        return found
    if (declared := tree.declared.get(who)) is not None:
        return declared.place
    stored = store.get(who)
    if stored is None:
        return None
    if stored.place is not None:
        return stored.place
    return _place(stored.producer, tree, store, bodies) if stored.producer is not None else None


def _orphans(tree: Tree, store: ObjectStore) -> dict[Id, Place]:
    """Return the nodes that files declare and that are not in the store, because nothing builds these files.

    A node does not count as an orphan if a build reads its file, because the build may have changed the node's name or namespace,
    or may have failed.
    """
    lost = {
        who: document.place
        for who, document in sorted(tree.declared.items())
        if who.kind in SCHEDULABLE and who.kind != FOLDER and store.get(who) is None
    }
    if not lost:
        return {}
    built = {file for kind in BUILDERS for each in store.list(kind) for file in files_of(each, tree)}
    return {who: place for who, place in lost.items() if place.file not in built}


def _warnings(manifests: dict[Id, tuple[Manifest, ...]], bodies: TreeBodies) -> Iterator[Notice]:
    for who, made in sorted(bodies.made.items()):
        for message in made.produced.warnings:
            yield Notice(message, who)
    producers: dict[Id, list[Id]] = {}
    for producer, several_made in manifests.items():
        counts = Counter(manifest.id for manifest in several_made)
        for who, count in sorted(counts.items()):
            if count > 1:
                yield Notice(f"built {count} times by {shown(producer)}; only the first object is used", who)
        for manifest in several_made:
            if producer not in producers.setdefault(manifest.id, []):
                producers[manifest.id].append(producer)
    for who, several in sorted(producers.items()):
        if len(several) > 1:
            named = ", ".join(map(shown, several))
            yield Notice(f"made by {named}; the object of the first producer counts", who)
