"""The uses of repositories: how a use is derived from a resource, and the register of all uses."""

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.repositories.package_scan import Interest
from wharfinger.runtime.repositories.repository_uses import Use, Uses, read_use
from wharfinger.runtime.resources.resources import APPLICATION, MODULE

SHOP = ObjectKey(APPLICATION, "prod", "shop")
INGRESS = ObjectKey(MODULE, "", "ingress")


def use(spec: JsonObject, status: JsonObject | None = None, key: ObjectKey = INGRESS) -> Use | None:
    return read_use(key, {"spec": spec, "status": status or {}})


def test_an_exact_version_uses_a_repository_without_following_it() -> None:
    assert use({"packageVersion": "1.0.0"}) == Use("default", "ingress", followed=False)
    assert use({"packageVersion": "1.0.0", "packageRepositoryName": "other", "packageName": "web"}, key=SHOP) == Use(
        "other", "web", followed=False
    )


def test_a_range_needs_the_tag_of_its_chosen_version() -> None:
    chosen: JsonObject = {"update": {"chosen": "1.2.0"}}
    assert use({"versionRange": "^1"}) == Use("default", "ingress", followed=True)
    interest = Interest(versions=frozenset({"1.2.0"}))
    assert use({"versionRange": "^1"}, chosen) == Use("default", "ingress", followed=True, interest=interest)


def test_a_channel_needs_only_its_own_tag() -> None:
    found = use({"releaseChannel": "stable"}, {"update": {"chosen": "1.2.0"}})
    assert found is not None
    assert found.interest == Interest(channels=frozenset({"stable"}))


def test_an_exact_version_whose_tag_is_watched_is_followed() -> None:
    found = use({"packageVersion": "1.0.0", "update": {"movedTag": "refuse"}})
    assert found == Use("default", "ingress", followed=True, interest=Interest(versions=frozenset({"1.0.0"})))


def test_an_invalid_resource_is_no_use() -> None:
    assert use({"packageName": 1}) is None


def test_an_invalid_version_uses_a_repository_without_following_it() -> None:
    assert use({"versionRange": "about 1"}) == Use("default", "ingress", followed=False)


def test_the_register_lists_users_followers_and_interests() -> None:
    uses = Uses()
    follows = Use("default", "web", followed=True, interest=Interest(channels=frozenset({"stable"})))
    other = Use("default", "web", followed=True, interest=Interest(versions=frozenset({"1.0.0"})))
    assert uses.put(SHOP, follows) == {"default"}
    assert uses.put(SHOP, follows) == frozenset()
    assert uses.put(INGRESS, other) == {"default"}
    assert uses.interests("default") == {"web": Interest(frozenset({"stable"}), frozenset({"1.0.0"}))}
    assert uses.users("default") == uses.followers("default", "web") == (SHOP, INGRESS)
    assert uses.put(SHOP, Use("other", "web", followed=False)) == {"default", "other"}
    assert uses.followers("other", "web") == ()
    assert uses.put(SHOP, None) == {"other"}
    assert not uses.is_used("other")
    assert uses.is_used("default")


KEYS = st.sampled_from([ObjectKey(APPLICATION, "prod", name) for name in "abc"])
USES = st.none() | st.builds(Use, st.sampled_from("xy"), st.sampled_from("pq"), st.booleans())


@given(st.lists(st.tuples(KEYS, USES), max_size=20))
def test_the_register_equals_a_newly_built_register(puts: list[tuple[ObjectKey, Use | None]]) -> None:
    uses, last = Uses(), dict[ObjectKey, Use | None]()
    for key, each in puts:
        uses.put(key, each)
        last[key] = each
    for repository in "xy":
        wanted = {key: each for key, each in last.items() if each is not None and each.repository == repository}
        assert uses.users(repository) == tuple(sorted(wanted))
        assert set(uses.interests(repository)) == {each.package for each in wanted.values() if each.followed}
