"""Derivatives of traced programs: graph, traversal, custom operations, gradient checks."""

if __name__ != "luxgrad.ad":
    raise ImportError("import luxgrad.ad instead of ad: the folder is part of the package luxgrad")
