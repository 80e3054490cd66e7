"""The reader of hooks' configurations.

A hook prints its configuration as a document, in one of several versions of the format. The reader returns all bindings of the
hook, or raises an error with the problems of the document.

Pure. This folder may import no other folder of ``hooks``.
"""
