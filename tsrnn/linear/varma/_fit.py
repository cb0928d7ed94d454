"""Maximum likelihood of VARMA models for many units: standardise, start, climb, report."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._estimates import Estimates
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.varma._checks import at_the_edge, collinear, unusable
from tsrnn.linear.varma._identification import verdicts
from tsrnn.linear.varma._innovations import OuterProducts, outer_products
from tsrnn.linear.varma._likelihood import admissible, evaluated, portions, prepared
from tsrnn.linear.varma._sample import Sample
from tsrnn.linear.varma._scaling import Scaling, fit_scaling
from tsrnn.linear.varma._search import Found, search
from tsrnn.linear.varma._shape import Shape
from tsrnn.linear.varma._start import start


def fit(
    sample: Sample, names: tuple[str, ...], targets: list[str], searches: int, verbose: int = 0
) -> Estimates:
    """Estimates of all units; those that cannot be fitted say why.

    Parameters
    ----------
    sample : Sample
        In the units of the data.
    names : tuple of str
        Of the parameters.
    targets : list of str
    searches : int
        Most searches of a unit, see `search`.
    verbose : int
        Whether to show the search.
    """
    n_units = len(sample.y)
    reasons = unusable(sample, targets)
    which = np.array([i for i in range(n_units) if i not in reasons], int)
    if not len(which):
        return _nothing(sample.shape, names).placed(n_units, which, reasons)
    chosen = sample.select(which)
    scaling = fit_scaling(chosen)
    standard = scaling.standardised(chosen)
    first, spread = start(standard)
    refused = collinear(spread, targets)
    reasons |= {int(which[i]): reason for i, reason in refused.items()}
    kept = np.array([i for i in range(len(which)) if i not in refused], int)
    which, first = which[kept], first[kept]
    if not len(which):
        return _nothing(sample.shape, names).placed(n_units, which, reasons)
    chosen, standard = chosen.select(kept), standard.select(kept)
    scaling = Scaling(*(part[kept] for part in scaling.parts))
    progress = f"{standard.shape.k} parameters of {len(first)} series" if verbose else ""
    found = search(standard, first, searches, progress)
    return _estimates(chosen, scaling, names, found).placed(n_units, which, reasons)


def given(sample: Sample, params: np.ndarray, names: tuple[str, ...]) -> Estimates:
    """As `fit`, with parameters (U, k) in the units of the data that need not be optimal."""
    n_units, shape = len(sample.y), sample.shape
    good = admissible(shape, params, sample.rows)
    reasons = {int(i): _inadmissible(shape) for i in np.flatnonzero(~good)}
    which = np.flatnonzero(good)
    if not len(which):
        return _nothing(sample.shape, names).placed(n_units, which, reasons)
    chosen = sample.select(which)
    scaling = fit_scaling(chosen)
    none = np.zeros(len(which), int)
    as_given = Found(scaling.standard(shape, params[which]), none, none == 0, none, none)
    made = _estimates(chosen, scaling, names, as_given)
    return made.placed(n_units, which, reasons)


def _estimates(sample: Sample, scaling: Scaling, names: tuple[str, ...], found: Found) -> Estimates:
    """Everything about the end of a search in standard units, told in those of the data."""
    shape, params = sample.shape, found.params
    standard = scaling.standardised(sample)
    n_units, k = params.shape
    last = Evaluation(np.empty(n_units), np.empty((n_units, k)), np.empty((n_units, k, k)))
    products = OuterProducts(*(np.empty((n_units, k, k)) for _ in range(2)))
    for units in portions(standard, np.arange(n_units), by_row=True):
        at = prepared(params[units], standard.select(units))
        for whole, part in zip(
            (*last, *products), (*evaluated(at, exact=True), *outer_products(at)), strict=True
        ):
            whole[units] = part
    back = np.linalg.inv(scaling.jacobian(shape))
    turned = back.swapaxes(1, 2)
    natural = scaling.natural(shape, params)
    fixed, messages = verdicts(shape, natural, sample.n_obs)
    lost, warnings = at_the_edge(shape, params, found)
    return Estimates(
        names=names,
        params=natural,
        loglik=last.value - scaling.log_scale(sample),
        n_obs=sample.n_obs,
        gradient=(turned @ last.gradient[..., None])[..., 0],
        hessian=-(turned @ last.curvature @ back),
        opg=turned @ products.opg @ back,
        information=turned @ products.information @ back,
        iterations=found.iterations,
        converged=found.converged,
        fixed=fixed | lost,
        messages=tuple((*a, *b) for a, b in zip(messages, warnings, strict=True)),
        starts=found.searches,
        agreement=found.agreeing,
    )


def _nothing(shape: Shape, names: tuple[str, ...]) -> Estimates:
    """Estimates of no unit."""
    k = shape.k
    square = np.empty((0, k, k))
    return Estimates(
        names, np.empty((0, k)), np.empty(0), np.empty(0, int), np.empty((0, k)), square, square,
        square, np.empty(0, int), np.empty(0, bool), np.empty((0, k), bool), (),
        np.empty(0, int), np.empty(0, int),
    )  # fmt: skip


def _inadmissible(shape: Shape) -> str:
    needs = ", the autoregression stationary" if shape.exact else ""
    return (
        "the parameters given are not admissible: the moving average must be invertible"
        f"{needs} and the entries sqrt.var positive."
    )
