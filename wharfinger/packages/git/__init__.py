"""Git repositories, reached by the ``git`` program: how it is run, and what is read from a repository elsewhere.

May import ``digest`` and ``errors``, beside the parts below.
"""
