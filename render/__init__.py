"""Light: plugins, ray intersection and the integrators that render and differentiate scenes."""

if __name__ != "luxgrad.render":
    raise ImportError("import luxgrad.render instead of render: the folder is part of the package luxgrad")
