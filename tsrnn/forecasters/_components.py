"""Components of series that the prior network forecasts: over the data and over the horizon."""

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

BYTES_OF_A_STEP = 320  # of a model: forty numbers, of components, variances and weights
STATES = ("level", "trend", "cycle", "season")  # of structural models, in their order


def structural_parts(fitted: FittedPrior, state: PriorState, h: int) -> Components:
    """Components (S, C, ...) of what columns leave of each series, and of h steps ahead."""
    n_series, _, n_targets = state.tail.shape
    rows, counts, outliers = fitted.rows_read(state)
    components = structural_components(
        fitted.prior, rows, counts, fitted.season_length, h, state.earlier_rows
    )
    units, _, _ = outliers.errors_at_end(state.last_rows[0], counts)
    if fitted.counts is not None:
        units = np.union1d(units, np.flatnonzero(fitted.counting(state)))
    if len(units):  # of two futures or of counts, the network adds what is left to the forecast
        median = fitted.forecasts_left(state, h).median
        network = components.network.copy()
        network[units] = (median - components.parts.sum(-1))[units]
        components = replace(components, network=network)
    arrays = vars(components).values()
    return Components(*(array.reshape(n_series, n_targets, *array.shape[1:]) for array in arrays))


def forecast_contributions(
    fitted: FittedPrior, state: PriorState, future: np.ndarray | None
) -> dict[str, np.ndarray]:
    """Parts (S, h, C) of the forecasts of `horizon` steps, by name."""
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
    """Parts (S, h, C, m) that columns add to forecasts without them, and standard errors."""
    assert fitted.columns is not None
    assert state.columns is not None
    exog, times = fitted.exog_ahead(state, h, future), fitted.data.times_ahead(state, h)
    return fitted.columns.contributions(state.columns, times, exog, median)


def component_rows(
    fitted: FittedPrior, state: PriorState, h: int, future: np.ndarray | None
) -> tuple[Panel, dict[str, np.ndarray]]:
    """Components (N, C) of the last rows of each series and of h steps ahead, 0 for none."""
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
            known = np.where(np.isnan(data), fit, data)  # factors of missing rows are of the fit
            parts = shares * regression.effects.ratio(known, shares.sum(-1))[..., None]
            data = regression.effects.restored(data, shares.sum(-1))
        # Over the data, then ahead: NaN where there is nothing.
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
    """Panel of the last rows of each series and of h steps ahead."""
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
    """Components of a forecaster with the prior network; a part of it."""

    fitted_: ForecastPart[Any]
    state_: Any
    _state_after: Any

    def components(
        self, X: Any = None, h: int | None = None, X_future: Any = None, *, ids: Any = None
    ) -> Any:
        """Components of the last rows of the data, and of the forecasts.

        Level, trend, cycle and season are those of the structural models of the prior network,
        filtered: of a row by the rows up to it, with the weights of the forecast. The trend is
        what the level grows by in a row; all others add to ``fit``. Columns and the calendar
        are effects against their means in the rows fitted to; ``network`` is what the network adds
        to its structural models.

        Standard errors ``-se`` are those of states given the rows up to each, of coefficients given
        their terms; ahead they hold the changes to come. The variances of noise and the weights
        of the models are taken as known, but the spread of the models is in them. Errors
        of columns over the data are not computed.

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
            In the library of the data. A row a series, target and time: the id of a long frame, the
            time, ``target`` where there are several; then ``data``, NaN ahead and where the target,
            or a column with an effect, is missing; ``fit``, which ahead is the forecast, ``level``,
            ``trend``, ``cycle``, ``season`` where there is one, a column an effect, ``network``,
            NaN over the data, and the errors.

        Raises
        ------
        ValueError
            If the forecasts are those of a network that was trained on the series.

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
        """Components with the times of a layout."""
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
        """Fitted prior network, which the method needs."""
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
