"""Scene files and dictionaries: loaders, writer, parameter traversal, built-in scenes."""

if __name__ != "luxgrad.scenes":
    raise ImportError("import luxgrad.scenes instead of scenes: the folder is part of the package luxgrad")
