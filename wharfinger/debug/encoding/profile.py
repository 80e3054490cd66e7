"""A profile as a JSON document, and back; and a profile as text, as YAML and in the formats of other tools.

Shape::

    {seconds, samples, threads, frames: [{function, file, line}], stacks: [{thread, frames: [<position>], seconds, samples,
     waiting?}], main_cpu_s?, others_cpu_s?, sampling_cpu_s?, unlisted_s?}
"""

from typing import Final, Literal, TypeAlias

from wharfinger.debug.encoding.records import record_from_json, record_to_json
from wharfinger.debug.printing.output import OutputFormat, render, render_json
from wharfinger.debug.profile.flame_graphs import collapsed_stacks, speedscope_file
from wharfinger.debug.profile.profile import ProfileSnapshot
from wharfinger.debug.profile.text import profile_lines
from wharfinger.formats.json.value import JsonValue

ProfileFormat: TypeAlias = OutputFormat | Literal["text", "collapsed", "speedscope"]
PROFILE_FORMATS: Final[tuple[ProfileFormat, ...]] = ("text", "collapsed", "speedscope", "json", "yaml")


def profile_text(profile: ProfileSnapshot, output: ProfileFormat, columns: int | None = None) -> str:
    """Return a profile in one of the formats; ``columns`` is the width of the terminal, None if there is none."""
    if output == "text":
        return "".join(f"{line}\n" for line in profile_lines(profile, columns))
    if output == "collapsed":
        return collapsed_stacks(profile)
    if output == "speedscope":
        return render_json(speedscope_file(profile))
    return render(record_to_json(profile), output)


def profile_from_json(value: JsonValue) -> ProfileSnapshot:
    """Read a profile. Raises ShapeError."""
    return record_from_json(value, ProfileSnapshot, "profile")
