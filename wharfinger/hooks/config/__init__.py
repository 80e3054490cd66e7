"""The reader of hooks' configurations. A hook prints its configuration as a document, in one of several versions. The result of
reading has all bindings of the hook, or all problems of the document.

Pure. May import no other folder.
"""
