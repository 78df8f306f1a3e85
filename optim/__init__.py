"""Optimisers, losses and the fitting loop."""

if __name__ != "luxgrad.optim":
    raise ImportError("import luxgrad.optim instead of optim: the folder is part of the package luxgrad")
