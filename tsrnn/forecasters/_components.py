"""Components of the pretrained network's forecasts, over the data and over the horizon."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tsrnn.contract import check_fits, check_is_fitted, positive_integer
from tsrnn.data import Layout, Panel, by_row, past_times
from tsrnn.prior import Components, structural_components

if TYPE_CHECKING:
    from tsrnn.forecasters._forecast_part import ForecastPart
    from tsrnn.forecasters._prior import FittedPrior, PriorState

BYTES_OF_A_STEP = 320  # for each model: forty numbers of components, variances and weights
STATES = ("level", "trend", "cycle", "season")  # in the order of the structural models


def structural_parts(fitted: FittedPrior, state: PriorState, h: int) -> Components:
    """Components of the residuals of each series and of h steps ahead, shape (S, C, ...)."""
    n_series, _, n_targets = state.tail.shape
    rows, counts, outliers = fitted.rows_read(state)
    components = structural_components(
        fitted.prior, rows, counts, fitted.season_length, h, state.earlier_rows
    )
    units, _, _ = outliers.errors_at_end(state.last_rows[0], counts)
    if fitted.counts is not None:
        units = np.union1d(units, np.flatnonzero(fitted.counting(state)))
    # Structural models know no mixture of two futures and no counts: the network's component is
    # then the difference to the forecast.
    if len(units):
        median = fitted.residual_forecasts(state, h).median
        network = components.network.copy()
        network[units] = (median - components.parts.sum(-1))[units]
        components = replace(components, network=network)
    arrays = vars(components).values()
    return Components(*(array.reshape(n_series, n_targets, *array.shape[1:]) for array in arrays))


def forecast_contributions(
    fitted: FittedPrior, state: PriorState, future: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Additive parts of the forecasts of `horizon` steps, shape (S, h, C), by name."""
    h = fitted.horizon
    components = structural_parts(fitted, state, h)
    parts = {
        name: components.parts[..., number].swapaxes(1, 2)
        for number, name in enumerate(STATES)
        if name != "season" or fitted.season_length > 1
    }
    parts["network"] = components.network.swapaxes(1, 2)
    if fitted.columns is not None:
        median = sum(parts.values())
        added, _ = column_parts(fitted, state, h, future, np.asarray(median))
        for number, name in enumerate(fitted.columns.part_names):
            parts[name] = parts.get(name, 0.0) + added[..., number]
    return parts


def column_parts(
    fitted: FittedPrior, state: PriorState, h: int, future: np.ndarray | None, median: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Effects of columns on the forecasts by part, (S, h, C, m), and their standard errors."""
    assert fitted.columns is not None
    assert state.columns is not None
    exog, times = fitted.exog_ahead(state, h, future), fitted.data.times_ahead(state, h)
    return fitted.columns.contributions(state.columns, times, exog, median)


def component_rows(
    fitted: FittedPrior, state: PriorState, h: int, future: np.ndarray | None
) -> tuple[Panel, dict[str, np.ndarray]]:
    """Components of the last rows of each series and of h >= 0 steps ahead, shape (N, C)."""
    structural = structural_parts(fitted, state, max(h, 1))
    names = [name for name in STATES if name != "season" or fitted.season_length > 1]
    places = [STATES.index(name) for name in names]
    regression, window = fitted.columns, state.tail.shape[1]
    of_columns = [] if regression is None else regression.part_names
    network = structural.network.swapaxes(1, 2)[:, :h]
    median = structural.parts.sum(-1).swapaxes(1, 2)[:, :h] + network
    added, errors = np.zeros((2, *median.shape, len(of_columns)))
    if regression is not None and h:
        added, errors = column_parts(fitted, state, h, future, median)

    blocks: list[list[np.ndarray]] = []
    for series, count in enumerate(state.counts.tolist()):
        states, deviations = (
            array[series, :, : count + h].swapaxes(0, 1)
            for array in (structural.states, structural.errors)
        )  # (T + h, C, 4)
        data = state.tail[series, :count]
        fit = (states.sum(-1) - states[..., STATES.index("trend")])[:count]
        parts = np.zeros((*data.shape, len(of_columns)))
        if regression is not None:
            assert state.columns is not None
            shares = state.columns.shares[series, window - count :]
            known = np.where(np.isnan(data), fit, data)  # factors multiply the fit of missing rows
            parts = shares * regression.effects.ratio(known, shares.sum(-1))[..., None]
            data = regression.effects.restored(data, shares.sum(-1))
        # Rows of the data, then rows ahead; NaN if a column is not defined there.
        blocks.append(
            [
                np.concatenate([data, np.full_like(network[series], np.nan)]),
                np.concatenate([fit + parts.sum(-1), median[series] + added[series].sum(-1)]),
                states[..., places],
                np.concatenate([parts, added[series]]),
                np.concatenate([np.full_like(data, np.nan), network[series]]),
                deviations[..., places],
                np.concatenate([np.full_like(parts, np.nan), errors[series]]),
            ]
        )
    labels = ["data", "fit", *names, *of_columns, "network"]
    labels += [f"{name}-se" for name in (*names, *of_columns)]
    columns = np.concatenate(
        [
            np.concatenate([part.reshape(*part.shape[:2], -1) for part in block], 2)
            for block in blocks
        ]
    )
    panel = rows_with_horizon(fitted, state, h, columns[..., 0])
    return panel, {name: columns[..., i] for i, name in enumerate(labels)}


def rows_with_horizon(fitted: FittedPrior, state: PriorState, h: int, values: np.ndarray) -> Panel:
    """Panel of the last rows of each series, followed by h steps ahead."""
    data, counts = fitted.data, state.counts
    past = past_times(state.last_times, state.tail.shape[1], data.layout.grid, tz=data.layout.tz)
    parts = [times[len(times) - count :] for times, count in zip(past, counts, strict=True)]
    if h:
        later = data.times_ahead(state, h)
        parts = [np.concatenate(pair) for pair in zip(parts, later, strict=True)]
    indptr = np.concatenate([[0], (counts + h).cumsum()])
    no_columns = np.empty((len(values), 0))
    return Panel(values, indptr, state.ids, np.concatenate(parts), no_columns, (), data.layout)


class ComponentMethods:
    """Mixin of `components` for forecasters with a pretrained network."""

    fitted_: ForecastPart[Any]
    state_: Any
    _state_after: Any

    def components(
        self, X: Any = None, h: int | None = None, X_future: Any = None, *, ids: Any = None
    ) -> Any:
        """Components of the last rows of the data, and of the forecasts.

        Level, trend, cycle and season are the filtered states of the structural models, given the
        rows up to each and weighted as in the forecast. The trend is the growth of the level in a
        row; all other components sum to ``fit``. Effects of columns and the calendar are relative
        to their means in the rows fitted to. ``network`` is the difference of the forecast from the
        structural models.

        Standard errors ``-se`` are conditional on the rows up to each, and for effects on the
        chosen terms. Ahead they include the changes of the states. They take the noise variances
        and the model weights as known, and include the spread between models. Standard errors of
        effects are not computed over the data.

        Parameters
        ----------
        X : frame, optional
            Data in place of the rows seen so far.
        h : int, optional
            Steps ahead; `horizon_` by default, 0 for the data alone.
        X_future : frame, optional
            As in `predict`.
        ids : id or list of ids, optional
            Series of a long frame, as in `predict`.

        Returns
        -------
        frame
            Frame in the library of the data with a row for each series, target and time. Keys are
            the id of a long frame, the time, and ``target`` if there are several. Then follow
            ``data``, NaN ahead and if the target, or a column with an effect, is missing; ``fit``,
            which ahead is the forecast; ``level``, ``trend``, ``cycle``; ``season`` if there is
            one; a column for each effect; ``network``, NaN over the data; and the standard errors.

        Raises
        ------
        ValueError
            If a network that was trained on the series forecasts.

        Examples
        --------
        >>> from tsrnn import ParaRNNForecaster
        >>> from tsrnn.datasets import load_nile
        >>> frame = ParaRNNForecaster(horizon=4).fit(load_nile()).components()
        >>> frame[["data", "level", "level-se"]].tail(5).round().values.tolist()[:2]
        [[740.0, 799.0, 88.0], [nan, 792.0, 109.0]]
        """
        layout = self._prior_network("components").data.layout
        return self._component_frame(X, h, X_future, ids, layout)

    def _component_frame(
        self, X: Any, h: int | None, X_future: Any, ids: Any, layout: Layout
    ) -> Any:
        """Components as a frame of the given layout."""
        fitted = self._prior_network("components")
        h = fitted.horizon if h is None else h
        h = 0 if isinstance(h, int) and h == 0 and h is not False else positive_integer("h", h)
        state = self._state_after(X, ids)
        future = None
        if h:
            n_bytes = float(h) * fitted.prior.n_models(fitted.season_length) * BYTES_OF_A_STEP
            check_fits(f"components of h={h} steps", n_bytes, "Take a smaller h")
            future = fitted.data.read_future(X_future, state.ids, state.last_times, h)
        panel, columns = component_rows(fitted, state, h, future)
        return by_row(replace(panel, layout=layout), columns)

    def _prior_network(self, method: str) -> FittedPrior:
        """Fitted pretrained network; `method` names the caller in messages."""
        check_is_fitted(self)
        pretrained = self.fitted_.pretrained(self.state_)
        if pretrained is None:
            raise ValueError(
                f"{method} needs forecasts by the prior network; this forecaster trained a network "
                "of these series, whose forecasts contributions() splits. Fit again with "
                'prior="only"'
            )
        network, _ = pretrained
        if network is not self.fitted_:
            parts = self.fitted_.parts_of(self.state_)
            name = next(name for name, (part, _) in parts.items() if part is network)
            raise ValueError(
                f"{method} needs forecasts by the prior network alone; here it is a part of the "
                f"forecast. Take parts_[{name!r}].{method}(), or contributions() of all parts"
            )
        return network
