"""Operations with derivatives of their own: `CustomOp`, `custom`, and the hub node that stands for one call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..jit.arrays import tree
from .api import detach, grad
from .graph import ADNode, Rule, connect, enabled, here, new_index
from .widen import widened

Give = Callable[..., None]


class Hub:
    """One call of an operation with several inputs and outputs: its derivative callbacks and output gradients."""

    name = "custom"

    def __init__(self) -> None:
        self.inputs: list[ADNode] = []
        self.outputs: list[Any] = []  # weak references to the outputs' nodes, by position
        self.out_grads: dict[int, Any] = {}

    def backward(self, give: Give) -> None:
        """Hand the inputs their gradients; `out_grads` holds those of the outputs."""
        raise NotImplementedError

    def forward(self) -> dict[int, Any]:
        """Return the outputs' tangents by position."""
        raise NotImplementedError


class HubRule(Rule):
    """The hub itself: runs once all outputs have handed in their gradients."""

    nested = True

    def __init__(self, hub: Hub) -> None:
        self.hub, self.name = hub, hub.name

    def backward(self, node: ADNode, grad: Any, give: Give) -> None:
        """Run the operation's reverse mode."""
        self.hub.backward(give)
        self.hub.out_grads.clear()

    def forward(self, node: ADNode) -> Any:
        """Run the operation's forward mode; the hub's own tangent only says that there is one."""
        if all(p is None or p.grad is None for p in node.parents):
            return None
        self.hub.out_grads = self.hub.forward()
        return node.cls(1)


class OutputRule(Rule):
    """One output of a hub; data: its position."""

    name = "output"

    def backward(self, node: ADNode, grad: Any, give: Give) -> None:
        """Leave the gradient with the hub."""
        hub_node = node.parents[0]
        hub: Hub = hub_node.rule.hub  # type: ignore[union-attr]
        known = hub.out_grads.get(node.data)
        hub.out_grads[node.data] = grad if known is None else known + grad
        give(hub_node, hub_node.cls(1))  # type: ignore[union-attr]

    def forward(self, node: ADNode) -> Any:
        """Fetch the tangent from the hub."""
        hub: Hub = node.parents[0].rule.hub  # type: ignore[union-attr]
        return hub.out_grads.get(node.data)


_OUTPUT = OutputRule()


def install_hub(hub: Hub, inputs: list[ADNode], outputs: list[Any]) -> None:
    """Make `outputs` (flat arrays) depend on `inputs` through the hub; integer outputs stay detached."""
    floats = [x for x in outputs if x.dtype.is_float and x.is_diff]
    if not floats or not inputs:
        return
    anchor = type(floats[0])(0)
    hub.inputs = inputs
    node = connect(anchor, HubRule(hub), tuple(inputs), ())
    for position, x in enumerate(outputs):
        if x.dtype.is_float and x.is_diff:
            x._ad = connect(x, _OUTPUT, (node,), (), position)


class CustomOp:
    """Base of operations that define their own derivatives: override eval, forward and backward.

    `eval` computes without recording gradients; `forward` reads grad_in(name) and calls set_grad_out; `backward` reads
    grad_out() and calls set_grad_in(name, value). `name` is the name of an argument of `eval`.
    """

    def __init__(self) -> None:
        self._args: dict[str, Any] = {}
        self._extra: list[Any] = []
        self._output: Any = None
        self._give: Give | None = None
        self._hub: Any = None
        self._tangents: dict[int, Any] = {}

    def eval(self, *args: Any, **kwargs: Any) -> Any:
        """Return the operation's result from detached arguments."""
        raise NotImplementedError(f"{type(self).__name__}.eval()")

    def forward(self) -> None:
        """Compute the outputs' tangents."""
        raise NotImplementedError(f"{type(self).__name__} has no forward mode: override forward()")

    def backward(self) -> None:
        """Compute the inputs' gradients."""
        raise NotImplementedError(f"{type(self).__name__} has no reverse mode: override backward()")

    def name(self) -> str:
        """Return the name of the operation."""
        return type(self).__name__

    def add_input(self, value: Any) -> None:
        """Declare a further input that `eval` reads without being passed it."""
        self._extra.append(value)

    def add_output(self, value: Any) -> None:
        """Accepted for completeness: outputs are what `eval` returns."""

    def grad_in(self, name: str) -> Any:
        """Return the tangent of an argument."""
        return grad(self._argument(name))

    def set_grad_in(self, name: str, value: Any) -> None:
        """Add to the gradient of an argument."""
        targets = list(tree.arrays(self._argument(name)))
        sources = [value] * len(targets) if isinstance(value, (int, float)) else list(tree.arrays(value))
        for x, g in zip(targets, sources, strict=True):
            if x._ad is not None and self._give is not None:
                g = type(x)(g) if isinstance(g, (int, float)) else g
                self._give(x._ad, type(x).wrap(g._n), 1 if g._n.size == 1 else g._n.size)

    def grad_out(self) -> Any:
        """Return the gradients of the result."""
        position = iter(range(1 << 30))

        def pick(x: Any) -> Any:
            g = self._hub.out_grads.get(next(position))
            return type(x)(0) if g is None else widened(g, x._n.size)

        return tree.map_arrays(pick, self._output)

    def set_grad_out(self, value: Any) -> None:
        """Set the tangents of the result."""
        self._tangents = dict(enumerate(tree.arrays(value)))

    def _argument(self, name: str) -> Any:
        if name not in self._args:
            known = ", ".join(self._args)
            raise KeyError(f"{self.name()} has no argument '{name}'; its arguments are: {known}")
        return self._args[name]


class _OpHub(Hub):
    def __init__(self, op: CustomOp) -> None:
        super().__init__()
        self.op, self.name = op, op.name()

    def backward(self, give: Give) -> None:
        # Handed on after the isolated part: what lies before it is out of reach inside.
        contributions: list[tuple[Any, ...]] = []
        self.op._hub, self.op._give = self, lambda *args: contributions.append(args)
        with _isolated():
            self.op.backward()
        self.op._give = None
        for contribution in contributions:
            give(*contribution)

    def forward(self) -> dict[int, Any]:
        self.op._hub, self.op._tangents = self, {}
        with _isolated():
            self.op.forward()
        return self.op._tangents


class _isolated:
    """Gradients on, and traversals inside stop at what existed before: the outer traversal goes on from there."""

    def __enter__(self) -> None:
        self.before = (here().boundary, here().scopes)
        here().boundary = new_index()
        here().scopes = ()

    def __exit__(self, *_: object) -> None:
        here().boundary, here().scopes = self.before


def custom(cls: type[CustomOp], *args: Any, **kwargs: Any) -> Any:
    """Return cls().eval(*args, **kwargs), differentiable as the class says."""
    op = cls()
    bound = inspect.signature(op.eval).bind(*args, **kwargs)
    bound.apply_defaults()
    op._args = dict(bound.arguments)
    from .api import suspend_grad

    plain = {k: detach(v) for k, v in op._args.items()}
    call_args, call_kwargs = [], {}
    for name, parameter in inspect.signature(op.eval).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            call_args += list(plain[name])
        elif parameter.kind is parameter.VAR_KEYWORD:
            call_kwargs.update(plain[name])
        elif parameter.kind is parameter.KEYWORD_ONLY:
            call_kwargs[name] = plain[name]
        else:
            call_args.append(plain[name])
    with suspend_grad():
        result = op.eval(*call_args, **call_kwargs)
    inputs = {x._ad.index: x._ad for x in tree.arrays((op._args, op._extra)) if enabled(x._ad)}
    result = tree.map_arrays(lambda x: type(x).wrap(x._n), result)
    op._output = detach(result)
    install_hub(_OpHub(op), list(inputs.values()), list(tree.arrays(result)))
    return result
