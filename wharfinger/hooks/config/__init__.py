"""The configuration of a hook: the reader of the document that it prints, in every version. The result has its bindings, or all
problems.

Pure. May import no other folder.
"""
