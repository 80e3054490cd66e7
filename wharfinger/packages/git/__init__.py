"""Git repositories: runs of the ``git`` program, and reads from remote repositories.

May import ``digest`` and ``errors``, beside the parts below.
"""
