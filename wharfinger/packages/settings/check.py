"""A check of a user's settings, as the daemon checks them when it configures a package, but without a running package.

`SettingsChecker.check` converts the settings, adds defaults, and checks the settings. If they have no problems, it also checks
the values that are made from them. It returns all problems instead of raising the first.
``wharfinger package check --settings`` and ``wharfinger validate`` use it. Patches of hooks are not included, so the check also
works for a package that never ran.
"""

from dataclasses import dataclass

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.problem import Problem
from wharfinger.packages.definition.conversions import JqRunner, convert
from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.errors import ConversionError
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.packages.settings.report import SettingsReport
from wharfinger.packages.settings.values import SettingsError, check_settings, check_values_rules, merged_values


@dataclass(frozen=True, slots=True)
class SettingsChecker:
    """A checker of settings: ``jq`` runs conversions, ``rules`` evaluates the rules of schemas."""

    jq: JqRunner
    rules: Rules

    async def check(
        self, definition: Definition, settings: JsonObject, version: int = 0, old: JsonObject | None = None
    ) -> SettingsReport:
        """Check settings that are written for ``version`` (0: the newest). ``old`` are the user's settings until now. Rules of
        the schema may compare both.

        If there are no problems, the report's ``settings`` are the effective settings. Raises PackageError only if the check
        itself fails, for example because no worker process can be started.
        """
        try:
            newest, _ = await convert(definition.conversions, self.jq, settings, version)
        except ConversionError as error:
            if error.transient:
                raise
            return SettingsReport((Problem("", str(error)),), (), settings)
        report = await check_settings(definition, newest, old, self.rules)
        if report.problems:
            return report
        try:
            values = merged_values(definition, newest)
            before = None if old is None else merged_values(definition, old)
        except SettingsError as error:
            return SettingsReport(error.problems, report.warnings, settings)
        after = await check_values_rules(definition, values, before, self.rules)
        problems = tuple(Problem(each.path, f"{each.message} (in the values)") for each in after.problems)
        # A values schema that extends the settings schema repeats the warnings of the settings schema.
        warnings = dict.fromkeys([*report.warnings, *after.warnings])
        return SettingsReport(problems, tuple(warnings), report.settings)
