"""The Modules that are on, as hooks and templates see them."""

from dataclasses import replace

from tests.runtime.package.test_machine import PLAIN
from tests.runtime.support.notes import instance, learn, put
from wharfinger.formats.json.value import find_list
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.runtime.core.modules import Modules
from wharfinger.runtime.package.findings import Configured, CrdsEstablished, PackageRead, SettingsConverted
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.package.state import NO_SETTINGS
from wharfinger.runtime.resources.identity import GLOBAL, AppId, ModuleId, PackageId
from wharfinger.runtime.scheduler.events import IntentSet, NodeAdded, Resumed, ScriptVoted
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.scheduler import Scheduler


def world(*on: PackageId, off: tuple[PackageId, ...] = ()) -> Modules:
    """Return the Modules of a runtime in which these packages are loaded. The weight of a package is the length of its name."""
    scheduler, instances = Scheduler(), dict[str, Instance]()
    scheduler.apply(Resumed())
    for identity in (*on, *off):
        one = instances[identity.name] = instance(identity)
        learn(one, PackageRead(replace(PLAIN, name=identity.name, weight=len(identity.name)), ()))
        scheduler.apply(IntentSet(identity.name, enabled=identity in on))
        scheduler.apply(NodeAdded(Node(identity.name, "1.0.0", NO_REQUIREMENTS)))
        scheduler.apply(ScriptVoted(identity.name, None))
    return Modules(instances, scheduler, "1.33.0")


def test_modules_that_are_on_are_seen_and_applications_are_not() -> None:
    seen = world(ModuleId("dns"), ModuleId("web"), AppId("prod", "shop"), off=(ModuleId("off"),)).global_values()
    assert find_list(seen, "enabledModules") == ["dns", "web"]


def test_the_values_and_settings_of_the_module_global_are_seen_once_it_is_configured() -> None:
    modules = world(ModuleId(GLOBAL), ModuleId("dns"))
    assert modules.global_settings() == {}
    own, settings = modules.instances[GLOBAL], replace(NO_SETTINGS, settings={"a": 1}, secrets=("hunter22",))
    put(own, configuration={"values": {"a": 1}})
    learn(own, SettingsConverted(settings))
    assert "a" not in modules.global_values()
    assert modules.global_secrets() == ("hunter22",)
    learn(own, Configured(own.loaded(), settings, {"a": 1}, {"a": 1, "b": 2}))
    assert modules.global_values()["b"] == 2
    assert modules.global_settings() == {"a": 1}
    assert world(ModuleId("dns")).global_secrets() == ()
    assert world(ModuleId("dns")).global_settings() == {}


def test_a_script_sees_the_modules_of_a_lower_order_that_are_on() -> None:
    modules = world(ModuleId("aa"), ModuleId("b"), ModuleId("cc"), ModuleId("ddd"), off=(ModuleId("e"),))
    seen = {name: modules.before(one) for name, one in modules.instances.items()}
    assert seen == {"b": (), "e": ("b",), "aa": ("b",), "cc": ("aa", "b"), "ddd": ("aa", "b", "cc")}
    put(modules.instances["cc"], files={"definition": None})
    assert modules.before(modules.instances["cc"]) == ()
    assert modules.before(modules.instances["ddd"]) == ("aa", "b")


def test_definitions_are_seen_when_they_are_established() -> None:
    modules = world(ModuleId("dns"))
    learn(modules.instances["dns"], CrdsEstablished(("example.com/v1/Thing",)))
    assert "example.com/v1/Thing" in str(modules.global_values())
