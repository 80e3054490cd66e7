"""The kept answer of a package's enabled script, so that the script does not run again for the same input. Pure.

The scheduler never runs the script: it reads the script's last vote. The script runs like a hook, in a task of the package that
contains it, with a slot and a time limit (:mod:`wharfinger.hooks.running.enabled_script`), so a script that hangs does not
delay other packages. The known inputs of a script are its package and the values that it receives. The last answer is kept with
a key, which is a checksum of these inputs. While the key is the same, a reload or a changed specification uses the kept answer
and does not run the script. The script may also depend on inputs that are not known. So the key contains the user's requests for
a complete reconciliation (the annotations ``wharfinger.dev/reconcile-requested-at`` and ``force-requested-at``), and each new
request makes the script run again.

A failure is not an answer, and is never kept: the script runs again when its answer is needed the next time. Answers are kept
in memory only.
"""

from dataclasses import dataclass

from wharfinger.formats.json.value import JsonObject, JsonValue, checksum
from wharfinger.packages.digest import Digest
from wharfinger.runtime.resources.resources import Directives


@dataclass(frozen=True, slots=True)
class KeptVote:
    """The answer of a package's enabled script. ``key`` is the `vote_key` of the inputs that the script got. ``enabled`` is
    None if the package has no such script.
    """

    key: str
    enabled: bool | None
    reason: str


def vote_key(package: Digest, wanted: Directives, values: JsonObject, config_values: JsonObject) -> str:
    """Return the key under which a vote of the enabled script is kept: a checksum of the package, of the user's requests for a
    reconciliation, and of the two documents that the script gets.
    """
    asked: list[JsonValue] = [wanted.requested, wanted.forced]
    return checksum([package.text, asked, values, config_values])


def globals_for(name: str, global_values: JsonObject, before: tuple[str, ...] | None = None) -> JsonObject:
    """Return the values that a script gets under ``global``. They name the Modules that are on, except for the package of the
    script itself.

    If ``before`` is given, only Modules in ``before`` are named. Scripts of module folders run in the order of the modules, and
    each script sees only the modules before its own module (spec hook-protocol §5.6). So two scripts can neither wait for each
    other, nor switch each other's modules off and on forever.
    """
    enabled = global_values.get("enabledModules")
    if not isinstance(enabled, list):
        return global_values
    own = (name, f"{name}-crd")
    seen = [each for each in enabled if each not in own]
    if before is not None:
        told = {*before, *(f"{each}-crd" for each in before)}
        seen = [each for each in seen if each in told]
    return {**global_values, "enabledModules": seen}
