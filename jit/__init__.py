"""The compiler: trace, schedule, kernel, launch. It knows nothing of derivatives or light."""

if __name__ != "luxgrad.jit":
    raise ImportError("import luxgrad.jit instead of jit: the folder is part of the package luxgrad")
