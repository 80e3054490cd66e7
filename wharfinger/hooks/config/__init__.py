"""The configuration of a hook: the reader of the document that it prints, in every version. The result has all bindings of
the hook, or all problems of the document.

Pure. May import no other folder.
"""
