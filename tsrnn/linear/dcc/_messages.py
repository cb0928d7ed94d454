"""What a reader of estimates has to know of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsrnn.linear._estimates import Estimates
from tsrnn.linear.dcc._fit import Found, Order

_NEARLY_INTEGRATED = 2e-3


def judged(
    order: Order, targets: Sequence[object], univariate: Estimates, found: Found
) -> tuple[np.ndarray, tuple[tuple[str, ...], ...]]:
    """Parameters a and b without a standard error, (S, p + q), and warnings of all steps."""
    fixed = found.at_bound.copy()
    constant = np.asarray(~found.params[:, : order.p].any(axis=1) & (order.p > 0))
    fixed[constant] = True
    fixed[found.integrated, -1:] = True
    messages = []
    n = len(targets)
    for i in range(len(fixed)):
        said = [
            f"{target}: {message}"
            for j, target in enumerate(targets)
            for message in univariate.messages[i * n + j]
        ]
        messages.append((*said, *_dynamics(order, found, i, bool(constant[i]))))
    return fixed, tuple(messages)


def _dynamics(order: Order, found: Found, i: int, constant: bool) -> list[str]:
    said = []
    if constant:
        said.append(
            "a is zero, on its bound: correlations are constant and b is not identified; neither "
            "has a standard error"
        )
    else:
        said += [
            f"{name} is at its bound, 0: its estimator has no normal limit there"
            for name, held in zip(order.names, found.at_bound[i], strict=True)
            if held
        ]
    if found.integrated[i]:
        said.append(
            f"the likelihood rises up to a sum of a and b of one, which is imposed: "
            f"{order.names[-1]} follows from the others, and there are no unconditional "
            "correlations for rho to estimate"
        )
    elif (total := found.params[i].sum()) > 1 - _NEARLY_INTEGRATED:
        said.append(
            f"the sum of a and b is {total:.6g}: correlations hardly return to rho, whose "
            "standard errors are not to be relied on"
        )
    if not found.converged[i]:
        said.append(f"the search for a and b did not converge in {found.iterations[i]} iterations")
    return said
