"""Equations put in order: elementwise phases, each followed by the products it makes possible."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tsrnn.kernels._dense.trace import Equations, Product
from tsrnn.kernels._graph import COMPARISONS, Op, Operand


class Phase(NamedTuple):
    """Operations on every unit, then matrix products."""

    ops: tuple[Op, ...]
    products: tuple[Product, ...]


class Program(NamedTuple):
    """Phases of a step, and where in a row of working memory its values are kept.

    The memory of a sequence is a row of slots of d numbers. `homes` has the slots of values
    that a later phase or a product reads; `operands` and `outs` the first slot of the operands
    and of the results of each product. A slot after the last result of a product is spare.
    """

    phases: tuple[Phase, ...]
    results: dict[str, tuple[Operand, ...]]
    homes: dict[str, int]
    operands: dict[Product, int]
    outs: dict[Product, int]
    slots: int

    def reads(self, phase: Phase) -> set[str]:
        """Values that a phase takes from elsewhere."""
        last = self.results.values() if phase is self.phases[-1] else ()
        wanted = [a for op in phase.ops for a in op.args]
        wanted += [a for product in phase.products for a in product.operands]
        wanted += [a for result in last for a in result]
        return {a for a in wanted if isinstance(a, str)} - {op.out for op in phase.ops}


def program(equations: Equations, carried: Sequence[str]) -> Program:
    """Order equations; the values `carried` live in the first slots from step to step."""
    phases = _phases(equations)
    plan = Program(
        phases, equations.results, {name: i for i, name in enumerate(carried)}, {}, {}, 0
    )
    slots = len(carried)
    for product in (product for phase in phases for product in phase.products):
        slots = _place(plan, product, slots)
    for phase in phases:
        for name in sorted(plan.reads(phase)):
            if name[0] == "v" and name not in plan.homes:
                plan.homes[name] = slots
                slots += 1
    return plan._replace(slots=slots)


def _place(plan: Program, product: Product, free: int) -> int:
    """Give a product its slots, from the first free one; returns the next free one."""
    if len(product.operands) == 1 and product.operands[0] in plan.homes:
        plan.operands[product] = plan.homes[str(product.operands[0])]
    else:
        plan.operands[product] = free
        for i, x in enumerate(product.operands):
            if isinstance(x, str) and x[0] == "v":
                plan.homes.setdefault(x, free + i)
        free += len(product.operands)
    plan.outs[product] = free
    plan.homes.update({name: free + i for i, name in enumerate(product.outs)})
    return free + len(product.outs) + 1


def _phases(equations: Equations) -> tuple[Phase, ...]:
    order = _Order(equations)
    wanted = [a for result in equations.results.values() for a in result]
    products = order.products_for(wanted)
    last = max([order.phase(a) for a in wanted], default=0)
    made: set[str] = set()
    phases = []
    for i in range(last + 1):
        now = tuple(p for p in products if order.phase_of(p) == i)
        targets = [a for p in now for a in p.operands]
        targets += [a for a in wanted if order.phase(a) == i]
        ops = order.ops_for(targets, made)
        # A comparison is no number that could be kept: it is made again where it is needed.
        made |= {op.out for op in ops if op.name not in COMPARISONS}
        phases.append(Phase(ops, now))
    return tuple(phases)


class _Order:
    """What depends on what."""

    def __init__(self, equations: Equations) -> None:
        self._ops = equations.ops
        self._made_by = {out: p for p in equations.products for out in p.outs}
        self._products = equations.products
        self.phase = functools.cache(self._phase)

    def _phase(self, operand: Operand) -> int:
        """First phase in which a value can be had."""
        if operand in self._made_by:
            return 1 + self.phase_of(self._made_by[str(operand)])
        op = self._ops.get(operand) if isinstance(operand, str) else None
        return max([self.phase(a) for a in op.args], default=0) if op else 0

    def phase_of(self, product: Product) -> int:
        """First phase after which a product can be had."""
        return max(self.phase(a) for a in product.operands)

    def products_for(self, wanted: Iterable[Operand]) -> list[Product]:
        """Products that some values need."""
        seen: set[Operand] = set()
        waiting = list(wanted)
        while waiting:
            operand = waiting.pop()
            if operand in seen:
                continue
            seen.add(operand)
            if operand in self._made_by:
                waiting += self._made_by[str(operand)].operands
            elif operand in self._ops:
                waiting += self._ops[str(operand)].args
        return [p for p in self._products if seen.intersection(p.outs)]

    def ops_for(self, targets: Iterable[Operand], made: set[str]) -> tuple[Op, ...]:
        """Operations that give the targets from what has been made."""
        needed: set[Operand] = set()
        waiting = list(targets)
        while waiting:
            operand = waiting.pop()
            if operand in self._ops and operand not in made | needed:
                needed.add(operand)
                waiting += self._ops[str(operand)].args
        return tuple(sorted((self._ops[str(a)] for a in needed), key=lambda op: int(op.out[1:])))
