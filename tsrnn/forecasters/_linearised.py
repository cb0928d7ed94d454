"""Linearised forecasts: mean derivatives with respect to past rows."""

from __future__ import annotations

import torch
from torch import Tensor

from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import Windows, floored_spread, network_inputs, subset
from tsrnn.interpret import ForecastPaths, path_steps

ORIGINS = 64  # averaged in the mean derivative, enough for all phases of a season
LEAST_MEMORY = 32  # least number of past rows through the network's state, however short its window
PATHS = 2048  # windows of data along which the linear forecasts are evaluated


def linear_paths(
    model: ForecastModel, rows: Tensor, settings: Settings, sample_length: int, at: str
) -> ForecastPaths:
    """Paths of the linearised forecasts along sampled rows, shape (B, T, c + E).

    The rows are standardised, without missing values; `sample_length` counts those of the longest
    series. The derivative is averaged over the data, or taken at the mean of the rows, by `at`.
    """
    c, n_units, length = model.n_targets, *rows.shape[:2]
    memory = min(length, settings.input_size - 1 + max(settings.input_size, LEAST_MEMORY))
    ends = torch.arange(memory, length + 1)  # rows after the window of each origin
    pairs = torch.cartesian_prod(torch.arange(n_units), ends)
    # Random origins: equally spaced ones could all have the same phase of a season.
    windows = torch.stack([rows[u, e - memory : e] for u, e in pairs[subset(len(pairs), PATHS)]])
    windows = windows.double()
    centre = windows.mean((0, 1), keepdim=True)
    # Exogenous columns are held at their means, as their effects are reported separately.
    windows[..., c:] = centre[..., c:]
    origins = windows[subset(len(windows), ORIGINS)]
    if at == "mean":
        response, _ = mean_response(model, centre.expand(1, memory, -1), settings)
        with torch.no_grad():
            forecasts = forecasts_of(model, origins, settings)
    else:
        response, forecasts = mean_response(model, origins, settings)
    past = (windows - centre)[..., :c]
    paths = continued(response, past, path_steps(model.horizon, max(settings.seasons, default=1)))
    deviations = origins[..., :c] - centre[..., :c]
    linear = torch.einsum("nrd,hrcd->nhc", deviations, response)
    # Deviations from the means, as the intercept of the linear map is free.
    actual = forecasts - forecasts.mean(0)
    left = actual - (linear - linear.mean(0))
    variance = float(actual.square().sum())
    error = float(left.square().sum()) / variance if variance > 0 else 0.0
    return ForecastPaths(
        (paths - paths.mean(0)).numpy(), model.horizon, sample_length, error, linear=True
    )


def mean_response(model: ForecastModel, rows: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    r"""Mean derivative (h, R, c, c) of forecasts by past targets, and the forecasts (N, h, c).

    .. math:: \frac{1}{N} \sum_t \frac{\partial \hat y_{t+k}}{\partial y_{t-j}}

    It has axes step, past row, forecast target and past target. It passes through level, spread,
    linear path and network, whose state starts at zero with the first whole window. `rows`, shape
    (N, R, c + E), are those up to each origin, in time order.
    """
    c = model.n_targets
    changed = rows[..., :c].clone().requires_grad_()
    forecasts = forecasts_of(model, torch.cat([changed, rows[..., c:]], -1), settings)
    response = torch.empty(model.horizon, rows.shape[1], c, c, dtype=rows.dtype)
    for step in range(model.horizon):
        for target in range(c):
            (gradient,) = torch.autograd.grad(
                forecasts[:, step, target].sum(), changed, retain_graph=True
            )
            response[step, :, target] = gradient.mean(0)
    return response, forecasts.detach()


def forecasts_of(model: ForecastModel, rows: Tensor, settings: Settings) -> Tensor:
    """Forecasts, (N, h, c), as a differentiable function of past rows, (N, R, c + E).

    The state of the network starts at zero with the first whole window. If there are fewer rows
    than a window, they are treated as the start of a series.
    """
    n, c, window = len(rows), model.n_targets, settings.input_size
    known = min(window, rows.shape[1])
    rows = torch.nn.functional.pad(rows, (0, 0, window - known, 0))
    length = rows.shape[1] - window + 1
    varies = torch.ones(1, c, dtype=rows.dtype)
    level, spread = torch.zeros_like(rows[:, -length:]), varies.expand(n, length, c)
    if settings.local_level:
        # Differences of cumulative sums are accurate enough for derivatives.
        zero = rows.new_zeros(n, 1, rows.shape[2])
        moments = (torch.cat([zero, part.cumsum(1)], 1) for part in (rows, rows.square()))
        level, squares = ((sums[:, window:] - sums[:, :-window]) / known for sums in moments)
        variance = (squares - level.square()).clamp(min=0)
        spread = floored_spread(variance, varies)
    network = model.network
    inputs = network_inputs(rows[:, -length:], level, spread)
    states = network.run(inputs.float(), network.initial_state(n))[0][:, -1].to(rows.dtype)
    count = torch.tensor([[known]])
    last = Windows.of(rows[:, -window:], count, varies, local_level=settings.local_level)
    return model.parts(last, states, None).total()


def continued(response: Tensor, past: Tensor, steps: int) -> Tensor:
    """Linear forecasts, (M, steps, c), from past rows, (M, R, c).

    Beyond the horizon they continue from forecasts, as `predict` does.
    """
    history, parts = past, []
    for _ in range(-(-steps // len(response))):
        ahead = torch.einsum("nrd,hrcd->nhc", history, response)
        parts.append(ahead)
        history = torch.cat([history, ahead], 1)[:, -past.shape[1] :]
    return torch.cat(parts, 1)[:, :steps]
