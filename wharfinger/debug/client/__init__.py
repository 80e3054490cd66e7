"""The commands' side: asking a daemon through its socket and giving out its answers.

May import ``server`` and below.
"""
