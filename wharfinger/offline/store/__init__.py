"""The central store of objects of one offline run: their identity, their place in a file, their producer and their status.

This folder may import no other folder of ``wharfinger/offline``.
"""
