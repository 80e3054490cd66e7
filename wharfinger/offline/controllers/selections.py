"""The label selectors by which ResourceSets choose their input providers, and the providers that each selector selects now.

A selector names no object, so a set cannot wait for the objects that it selects. Instead, each selection is a piece of data in
the fixpoint engine. Its content is the list of the selected providers with their digests. A set reads this data, and runs again
when the list changes.
"""

from wharfinger.formats.json.value import JsonObject, checksum
from wharfinger.hooks.config.selectors import SelectorError as SpecSelectorError
from wharfinger.hooks.config.selectors import label_selector
from wharfinger.kube.selectors import LabelSelector, SelectorError, parse_label_selector
from wharfinger.offline.controllers.gate import ReconcileError
from wharfinger.offline.store.kinds import RESOURCE_SET_INPUT_PROVIDER, SELECTION
from wharfinger.offline.store.store import ObjectStore, Stored
from wharfinger.runtime.fixpoint.model import Emission, Id


class Selections:
    """The label selectors that the ResourceSets of one run have used, each with the providers that it selects. Not
    thread-safe.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._selectors: dict[Id, LabelSelector] = {}

    def read(self, namespace: str, selector: JsonObject, field: str) -> tuple[Id, tuple[Stored, ...]]:
        """Return the id of a selection, and the providers of the namespace that it selects now, sorted.

        Raises ReconcileError for a selector that no server accepts, and FormatError for a malformed object.
        """
        try:
            text = label_selector(selector)
            who = Id(SELECTION, namespace, text)
            self._selectors.setdefault(who, parse_label_selector(text))
        except (SpecSelectorError, SelectorError) as error:
            raise ReconcileError(f"{field}: {error}") from error
        return who, self._selected(who)

    def emissions(self) -> tuple[Emission, ...]:
        """Return all selections as they are now; the engine ignores those that did not change."""
        return tuple(self.emission(who) for who in sorted(self._selectors))

    def emission(self, who: Id) -> Emission:
        """Return the present content of one selection, as an emission for the engine."""
        digests = [f"{each.id} {each.digest}" for each in self._selected(who)]
        return Emission(who, checksum({"selected": [*digests]}), runnable=False)

    def _selected(self, who: Id) -> tuple[Stored, ...]:
        selector = self._selectors[who]
        return tuple(
            each
            for each in self._store.list(RESOURCE_SET_INPUT_PROVIDER)
            if each.id.namespace == who.namespace and selector.matches(each.object)
        )
