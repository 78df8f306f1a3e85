"""luxgrad: a differentiable renderer and the tracing array compiler beneath it."""

__version__ = "0.1.0"
