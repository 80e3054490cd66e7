"""Releases as a whole: the engine with install, upgrade and uninstall, Helm's hooks, the checks before the first write, and
charts with `lookup`.

This folder may import all other subpackages of ``cluster``.
"""
