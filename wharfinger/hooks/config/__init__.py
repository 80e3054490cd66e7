"""What a hook asks for: the document that it prints, in every version, read into bindings, with each problem and its place.

Pure. May import no other room.
"""
