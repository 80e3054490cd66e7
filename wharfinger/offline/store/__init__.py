"""The central store of objects of one offline run: their identity, their place in a file, their producer and their status.

May import nothing else of this part.
"""
