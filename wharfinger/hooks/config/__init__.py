"""The configuration of a hook: the document that it prints, in every version, read into bindings, with all problems.

Pure. May import no other folder.
"""
