"""The reader of hooks' configurations.

A hook prints its configuration as a document, in one of several versions. The result of reading it is all bindings of the hook,
or the problems of the document.

Pure. May import no other folder of ``hooks``.
"""
