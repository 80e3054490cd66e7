"""Faults on purpose: which requests go wrong, and how, by rules that a person writes (``--chaos``) or a test.

:mod:`.rule` is what a rule says, :mod:`.rules` reads them, :mod:`.plan` decides (pure, repeatable by its seed), :mod:`.handler`
does it to requests before the control plane's own handler sees them. The control plane's own controllers are not hit.
"""
