"""Influences of the steps against numerical derivatives and refits."""

import numpy as np
import pytest

from tsrnn.linear._mean import Mean
from tsrnn.linear.dcc._equations import design_of, equations_at, fit_equations
from tsrnn.linear.dcc._fit import fit_correlations
from tsrnn.linear.dcc._inference import _rho_influences, _second_step, sensitivities
from tsrnn.linear.dcc._specification import FirstStep, Order

from .references import dcc_returns


def draw(steps=600, **arguments):
    return dcc_returns(steps, **arguments).to_numpy()


def moved(step, data, params, i, j, size):
    changed = params.copy()
    changed[0, i, j] += size
    return changed


@pytest.mark.parametrize("kind", ["zero", "constant", "var"])
@pytest.mark.parametrize(
    ("vol", "p", "q"), [("garch", 1, 1), ("gjr", 1, 1), ("garch", 2, 0), ("gjr", 2, 2)]
)
def test_sensitivities_equal_differences(kind, vol, p, q):
    step = FirstStep(Mean(kind), vol, p, q)
    _, data, _ = design_of(step.mean, [draw(steps=200)])
    own = {"garch": [0.1] + [0.1 / p] * p, "gjr": [0.1] + [0.06 / p] * p + [0.08 / p] * p}[vol]
    variance = np.tile(own + [0.7 / q for _ in range(q)], (1, 3, 1))
    params = np.concatenate([data.coefficients, variance], 2)

    def at(params, presample=None):
        found = equations_at(step, data, params, 1.3)  # a number: it does not move
        loglik = -0.5 * (np.log(2 * np.pi * found.h) + found.z**2)
        return found, loglik[0].T

    found, _ = at(params)
    result = sensitivities(
        step, data.regressors[0], found.e[0].T, found.h[0].T, variance[0], found.presample[0]
    )
    for i in range(3):
        for j in range(params.shape[2]):
            up, down = (at(moved(step, data, params, i, j, s)) for s in (1e-5, -1e-5))
            for ours, one, other in (
                (result.z[i, j], up[0].z, down[0].z),
                (result.h[i, j], up[0].h, down[0].h),
                (result.scores[i, j], up[1][i], down[1][i]),
            ):
                one, other = (x[0, :, i] if x.ndim == 3 else x for x in (one, other))
                difference = (one - other) / 2e-5
                np.testing.assert_allclose(ours, difference, rtol=1e-5, atol=1e-5)


def test_the_variances_are_those_of_garch():
    step = FirstStep(Mean("constant"), "garch", 1, 1)
    _, data, _ = design_of(step.mean, [draw(), draw(steps=400, seed=1)])
    found = fit_equations(step, data, "backcast", True)
    terms = np.where(data.observed[..., None], np.log(2 * np.pi * found.h) + found.z**2, 0.0)
    np.testing.assert_allclose(-0.5 * terms.sum(1).ravel(), found.estimates.loglik, rtol=1e-12)
    scores = found.estimates.opg
    for s in range(2):
        rows = slice(0, data.lengths[s])
        result = sensitivities(
            step,
            data.regressors[s, rows],
            found.e[s, rows].T,
            found.h[s, rows].T,
            found.variance[s],
            found.presample[s],
        )
        opg = np.einsum("nit,njt->nij", result.scores, result.scores)
        np.testing.assert_allclose(opg, scores[3 * s : 3 * s + 3], rtol=1e-8, atol=1e-8)


@pytest.mark.few("False-zero")
@pytest.mark.parametrize("kind", ["zero", "constant", "var"])
@pytest.mark.parametrize("corrected", [False, True])
def test_later_steps_move_with_the_first_as_refits_do(corrected, kind):
    step, order = FirstStep(Mean(kind), "garch", 1, 1), Order(1, 1, corrected)
    _, data, _ = design_of(step.mean, [draw(corrected=corrected)])
    variance = np.tile([0.1, 0.1, 0.8], (1, 3, 1))
    params = np.concatenate([data.coefficients, variance], 2)

    def refit(params):
        z = equations_at(step, data, params, 1.0).z
        best = fit_correlations(order, z, data.observed)
        assert best.converged.all()
        shift = _second_step(order, z[0], best.params[0])
        root = np.sqrt(np.diag(shift.moment))
        rho = (shift.moment / np.outer(root, root))[np.triu_indices(3, 1)]
        return best.params[0], rho

    found = equations_at(step, data, params, 1.0)
    z, sens = (
        found.z[0],
        sensitivities(
            step, data.regressors[0], found.e[0].T, found.h[0].T, variance[0], found.presample[0]
        ),
    )
    at = refit(params)[0]
    correlation = _second_step(order, z, at)
    for i, j in ((0, 0), (1, params.shape[2] - 1), (2, params.shape[2] - 2)):
        size = 1e-5
        ends = [refit(moved(step, data, params, i, j, s)) for s in (size, -size)]
        d_phi, d_rho = ((one - other) / (2 * size) for one, other in zip(*ends, strict=True))
        cross = np.einsum("kt,t->k", correlation.by_z[:, :, i], sens.z[i, j])
        ours = -np.linalg.solve(correlation.hessian, cross)
        np.testing.assert_allclose(ours, d_phi, rtol=1e-4, atol=1e-6)
        first = [np.zeros((len(z), params.shape[2])) for _ in range(3)]
        first[i][0, j] = 1.0
        dynamic = np.zeros((len(z), 2))
        dynamic[0] = ours
        none = np.zeros((len(z), 3, 3))
        coefficients = at[:1], at[1:]
        total = _rho_influences(
            order, correlation, sens, tuple(first), none, dynamic, coefficients, z.T
        )
        np.testing.assert_allclose(total[0], d_rho, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("corrected", [False, True])
def test_the_moment_enters_the_scores_as_differences_say(corrected):
    import torch

    from tsrnn.linear.dcc._likelihood import correlation_density, run_correlations, variables

    z = torch.from_numpy(draw())[None]
    at = np.array([0.05, 0.9])
    found = _second_step(Order(1, 1, corrected), z[0].numpy(), at)
    for i, j in ((0, 0), (0, 2), (2, 1)):
        ends = []
        for size in (1e-5, -1e-5):
            shift = torch.zeros(1, 1, 3, 3, dtype=torch.float64)
            shift[..., i, j] = size
            seen, jets = torch.ones(1, z.shape[1], dtype=bool), variables(torch.tensor(at[None]))
            result = run_correlations(z, seen, jets[:1], jets[1:], corrected=corrected, shift=shift)
            ends.append(correlation_density(result, z, seen).first.sum(-1)[:, 0].numpy())
        np.testing.assert_allclose(
            found.by_moment[:, i, j], (ends[0] - ends[1]) / 2e-5, rtol=1e-4, atol=1e-3
        )
