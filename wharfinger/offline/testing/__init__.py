"""An author's tests of what a package or a tree builds: their files, and the judgement of a build by them.

May import ``orchestrator`` and below.
"""
