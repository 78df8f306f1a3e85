"""`luxgrad.opt`: optimisers under Dr.Jit's names."""

from __future__ import annotations

from luxgrad.optim.adam import Adam, AdamW
from luxgrad.optim.base import Optimizer
from luxgrad.optim.rmsprop import RMSProp
from luxgrad.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "RMSProp"]
