"""The checks of a built tree: by the rules of an API server, and for references that lead nowhere.

May import ``orchestrator`` and below.
"""
