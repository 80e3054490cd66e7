"""The nodes of a build, as commands list them."""

from wharfinger.offline.controllers.package import MODULES
from wharfinger.offline.orchestrator.result import FILES, Failure, Manifest, Result
from wharfinger.offline.output.nodes import Node, NodeState, nodes_of
from wharfinger.offline.store.kinds import CONFIG_MAP, HELM_RELEASE, KUSTOMIZATION, SECRET
from wharfinger.offline.store.store import Place
from wharfinger.runtime.fixpoint.model import Id

APPS, LATE, OFF, LOST = (Id(KUSTOMIZATION, "flux-system", name) for name in ("apps", "late", "off", "lost"))
WEB = Id(HELM_RELEASE, "apps", "web")
SETTINGS, PASSWORDS = Id(CONFIG_MAP, "apps", "settings"), Id(SECRET, "apps", "passwords")
FILE = Id(FILES, "", "apps.yaml")
AT = Place("apps.yaml", 3)

RESULT = Result(
    manifests={APPS: (Manifest(WEB, {}), Manifest(SETTINGS, {})), FILE: (Manifest(APPS, {}),)},
    failed={
        WEB: Failure(WEB, "Secret apps/passwords does not exist", Place("web.yaml", 1)),
        LATE: Failure(LATE, "needs HelmRelease apps/web", AT, (WEB,)),
    },
    orphans={LOST: Place("lost.yaml", 1)},
    skipped={OFF: "suspended"},
    depends_on={APPS: (), WEB: (SETTINGS, PASSWORDS, MODULES), LATE: (WEB,), OFF: ()},
    places={APPS: AT},
)


def test_nodes_are_listed_with_their_states() -> None:
    assert nodes_of(RESULT) == (
        Node(SETTINGS, NodeState.DATA, made_by=APPS),
        Node(
            WEB,
            NodeState.FAILED,
            place=Place("web.yaml", 1),
            made_by=APPS,
            depends_on=(SETTINGS, PASSWORDS),
            message="Secret apps/passwords does not exist",
        ),
        Node(APPS, NodeState.BUILT, objects=2, place=AT),
        Node(LATE, NodeState.BLOCKED, place=AT, depends_on=(WEB,), message="needs HelmRelease apps/web"),
        Node(
            LOST,
            NodeState.ORPHAN,
            place=Place("lost.yaml", 1),
            message="nothing builds the file that declares it",
        ),
        Node(OFF, NodeState.SKIPPED, message="suspended"),
        Node(PASSWORDS, NodeState.ABSENT),
    )


def test_an_empty_result_has_no_nodes() -> None:
    assert nodes_of(Result({}, {}, {})) == ()
