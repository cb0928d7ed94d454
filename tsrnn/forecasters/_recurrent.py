"""Base of the forecasters with a recurrent network: arguments, frames and fits."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from tsrnn.contract import (
    Arguments,
    Calibration,
    FittedData,
    Forecaster,
    Summary,
    as_saved,
    check_is_fitted,
    check_not_too_large,
    choice,
    frequency_defaults,
    positive_integer,
    verbosity,
    with_shared_arguments,
)
from tsrnn.data import Layout, Panel, quote
from tsrnn.forecasters._by_series import (
    arguments_by_series,
    combine_members,
    members_from_file,
    panels_of,
)
from tsrnn.forecasters._columns import REGRESSION
from tsrnn.forecasters._components import ComponentMethods
from tsrnn.forecasters._effect_curves import effect_curves
from tsrnn.forecasters._forecast_part import ForecastPart
from tsrnn.forecasters._outliers import outlier_frame
from tsrnn.forecasters._prior import (
    FittedPrior,
    prior_from_file,
    read_prior,
    takes_prior,
    training_arguments,
)
from tsrnn.forecasters._scaling import boxcox_lambda, check_positive
from tsrnn.forecasters._stacking import stacked_from_file
from tsrnn.forecasters._validation_part import FEWEST_ROWS, independent_horizons, usual_horizon
from tsrnn.forecasters._with_columns import with_columns_from_file
from tsrnn.interpret import ForecastPaths, active_networks
from tsrnn.prior import TrainedPrior, check_outliers

# Modules that train and read networks need torch, and are imported when they are used.
if TYPE_CHECKING:
    from torch import Tensor

    from tsrnn.forecasters._fit import Fit, Preparation
    from tsrnn.forecasters._fitted import FittedNetworks
    from tsrnn.forecasters._model import ForecastModel
    from tsrnn.forecasters._settings import Settings
    from tsrnn.forecasters._stability import FeatureStability
    from tsrnn.kernels import Cell
    from tsrnn.layers import Ensemble, LayerChoice, RecurrentNetwork

    AnyFit = tuple[ForecastPart[Any], Any]

LARGEST = 1e290  # largest value, so that differences and means are finite
MOST_MISSING = 0.1  # largest share of missing values, filled seasonally, to train a network
# Least number of independent forecasts to validate candidates, over at least the usual horizon of
# the frequency. Series share shocks: n series count as the square root of n.
FEWEST_HORIZONS = 5.0
MANY = 64  # networks of fits made together: more gain little, and all are in memory


@with_shared_arguments
class RecurrentForecaster(ComponentMethods, Forecaster[Any]):
    """Base of the forecasters with a recurrent network; not to be used by itself.

    A subclass names its layers (`_layer`), and its cell where that is no argument (`_cell`).

    Parameters
    ----------
    horizon : int, optional
        Steps forecast directly; by frequency.
    prior, outliers, season_length
        Pretrained network of the cell and other candidates, as in `ParaRNNForecaster`.
    input_size, preset, hidden_size, n_layers, engine, aggregation, multivariate
        Network, as in `ParaRNNForecaster`.
    local_level, linear_path, network, use_boxcox, intervals
        Parts around the network, likewise.
    val_size, loss, learning_rate, weight_decay, batch_size, max_epochs, patience, n_estimators
        Training, likewise.
    per_series, refit, device, strategy, devices, callbacks, random_state, verbose
        Course of the training, likewise.
    target, known_ahead, effects, static, calendar, holidays, id_col, time_col, freq
        Data, likewise.
    missing, strict, support
        Data, likewise.

    Examples
    --------
    >>> from tsrnn import ARMA, LRUForecaster
    >>> from tsrnn.forecasters import RecurrentForecaster
    >>> [issubclass(model, RecurrentForecaster) for model in (LRUForecaster, ARMA)]
    [True, False]
    """

    not_saved = ("callbacks",)
    takes_static = True
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")
    keeps_missing_columns: ClassVar[bool] = True
    offers = frozenset({"plot_components", "plot_effects", "sample_paths"})
    fitted_: ForecastPart[Any]

    def __init__(
        self,
        horizon: int | None = None,
        *,
        prior: str | Path | None = "auto",
        outliers: str | None = "pulse",
        season_length: int | None = None,
        input_size: int | None = None,
        preset: str = "default",
        hidden_size: int | None = None,
        n_layers: int | None = None,
        engine: str = "auto",
        aggregation: str | None = None,
        local_level: bool | str | None = None,
        linear_path: bool | None = None,
        network: bool | str | None = None,
        use_boxcox: bool | str | float = False,
        multivariate: str | None = None,
        intervals: str = "conformal",
        val_size: int | None = None,
        loss: str | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        batch_size: int = 32,
        max_epochs: int | None = None,
        patience: int | None = None,
        n_estimators: int = 1,
        per_series: bool = False,
        refit: bool | None = None,
        device: str = "cpu",
        strategy: str | None = None,
        devices: int | None = None,
        callbacks: Sequence[Any] | None = None,
        effects: Mapping[Any, str | Sequence[str]] | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(horizon=horizon, **shared)
        self.prior = prior
        self.outliers = outliers
        self.season_length = season_length
        self.input_size = input_size
        self.preset = preset
        self.hidden_size = hidden_size
        self.n_layers = n_layers
        self.engine = engine
        self.aggregation = aggregation
        self.local_level = local_level
        self.linear_path = linear_path
        self.network = network
        self.use_boxcox = use_boxcox
        self.multivariate = multivariate
        self.intervals = intervals
        self.val_size = val_size
        self.loss = loss
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.n_estimators = n_estimators
        self.per_series = per_series
        self.refit = refit
        self.device = device
        self.strategy = strategy
        self.devices = devices
        self.callbacks = callbacks
        self.effects = effects

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        super()._update_header(header)
        header["params"].setdefault("engine", "auto")
        header["params"].setdefault("per_series", False)
        header["params"].setdefault("network", True)
        for name in ("prior", "outliers", "season_length", "effects"):
            header["params"].setdefault(name, None)
        fitted = header["fitted"]
        members = fitted.get("members", [fitted])
        for member in members if isinstance(members, list) else []:
            if isinstance(member, dict):  # other values are refused later
                member.setdefault("pooled_units", 1)
                member.setdefault("tests", {})
                if isinstance(member.get("settings"), dict):
                    member["settings"].setdefault("network", True)
                    level = member["settings"].get("local_level")
                    member["settings"].setdefault("local_levels", [level])
                    for name in ("factor_lags", "n_factors"):
                        member["settings"].setdefault(name, 0)

    @staticmethod
    def _cell(arguments: Arguments) -> str | Cell | None:
        """Cell of the recurrence as given; None for a user's layers."""
        return arguments.as_dict().get("cell")

    @staticmethod
    @abstractmethod
    def _layer(filled: dict[str, Any]) -> LayerChoice:
        """Layers of the network, given the resolved arguments of a fit."""

    def _fit_panel(self, arguments: Arguments, data: FittedData, panel: Panel) -> AnyFit:
        (fitted,) = self._fit_panels([(arguments, data, panel)])
        return fitted

    def _fit_panels(self, fits: Sequence[tuple[Arguments, FittedData, Panel]]) -> list[AnyFit]:
        first, default = fits[0][0], Arguments.of(type(self)())
        cell = self._cell(first)
        prior = read_prior(first.prior, cell)
        check_outliers(first.outliers)
        results: list[Any] = [None] * len(fits)
        for number, (arguments, data, panel) in enumerate(fits):
            if takes_prior(arguments, default, cell):
                assert prior is not None
                results[number] = self._fit_prior(arguments, data, panel, prior)
        others = [number for number, fitted in enumerate(results) if fitted is None]
        if others and first.missing == "keep":
            raise ValueError(
                'missing="keep" is for the prior network, which skips missing values; these '
                "arguments ask for a trained network. Leave them out, or fill gaps by "
                'missing="interpolate"'
            )
        if others:
            trained = self._train_panels([fits[number] for number in others])
            for number, fitted in zip(others, trained, strict=True):
                results[number] = fitted
        return results

    def _fit_prior(
        self, arguments: Arguments, data: FittedData, panel: Panel, prior: TrainedPrior
    ) -> AnyFit:
        """Fit the pretrained network: alone, or stacked if there are enough rows to validate."""
        if isinstance(arguments.prior, str) and arguments.prior == "only":
            return FittedPrior.unadapted(arguments, data, panel, prior)[:2]
        if all(support.name == "count" for support in data.supports):
            # Count models need no adaptation and skip missing rows. Counts together with other
            # targets are stacked, so that these have all candidates.
            return FittedPrior.of(arguments, data, panel, prior, adapts=False)
        missing = [np.isnan(rows).mean() for rows in (panel.values, panel.exog) if rows.size]
        gaps = arguments.missing == "keep" or max(missing) > MOST_MISSING
        if gaps or not set(data.exog_names) <= set(data.known_ahead):
            return FittedPrior.of(arguments, data, panel, prior, adapts=True)
        horizon = max(arguments.horizon or 1, frequency_defaults(panel.layout).horizon)
        n_units = panel.n_series * panel.values.shape[1]
        n_horizons = independent_horizons(panel.lengths, horizon) * math.sqrt(n_units)
        # Series that are too short to train a network on have no other candidate.
        if n_horizons < FEWEST_HORIZONS or panel.lengths.min() < FEWEST_ROWS:
            return FittedPrior.of(arguments, data, panel, prior, adapts=True)
        from tsrnn.forecasters._candidates import fit_stacked

        return fit_stacked(arguments, data, panel, prior, self._layer)

    def _train_panels(self, fits: Sequence[tuple[Arguments, FittedData, Panel]]) -> list[AnyFit]:
        """Train the networks of all fits side by side."""
        from tsrnn.forecasters._fit import fit_all, prepare_all
        from tsrnn.forecasters._settings import resolve

        if fits[0][0].per_series:
            prepared = [self._prepared_by_series(*fit) for fit in fits]
        else:
            filled = resolve(fits[0][0].as_dict())
            described = [(arguments, data) for arguments, data, _ in fits]
            panels, nameless = [panel for *_, panel in fits], [""] * len(fits)
            whole = prepare_all(described, panels, filled, self._layer(filled), nameless)
            prepared = [[fit] for fit in whole]
        trained = iter(fit_all([fit for parts in prepared for fit in parts]))
        results: list[Any] = []
        for (arguments, data, _), parts in zip(fits, prepared, strict=True):
            members = [next(trained) for _ in parts]
            results.append(
                combine_members(arguments, data, members) if arguments.per_series else members[0]
            )
        return results

    def _fits_together(self) -> int:
        # Lightning's options and other devices are for networks trained one by one.
        arguments = Arguments.of(self)
        alone = (arguments.strategy, arguments.devices) != (None, None)
        if alone or arguments.callbacks or arguments.device != "cpu":
            return 1
        from tsrnn.forecasters._settings import resolve

        return max(MANY // resolve(arguments.as_dict())["n_estimators"], 1)

    def _prepared_by_series(
        self, arguments: Arguments, data: FittedData, panel: Panel
    ) -> list[Preparation]:
        """Prepare the fits of a panel whose series have a network each."""
        from tsrnn.forecasters._fit import prepare_all
        from tsrnn.forecasters._settings import resolve

        filled = resolve(arguments.as_dict())
        # A frame of forecasts has one horizon; everything else is chosen for each series.
        filled["horizon"] = filled["horizon"] or usual_horizon(panel)
        parts = panels_of(panel)
        where = [
            panel.axis.where(i) or f"column {quote(part.target_names[0])}: "
            for i, part in enumerate(parts)
        ]
        described = arguments_by_series(arguments, data)
        return prepare_all(described, parts, filled, self._layer(filled), where)

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        super()._check(arguments, panel)
        if self._may_take_prior(arguments):  # all other arguments have their defaults
            for name in ("horizon", "season_length"):
                if getattr(arguments, name) is not None:
                    positive_integer(name, getattr(arguments, name))
            verbosity(arguments.verbose)
        else:
            from tsrnn.forecasters._settings import resolve

            self._layer(resolve(arguments.as_dict()))
        if arguments.per_series and arguments.static:
            raise ValueError(
                "static columns distinguish series that share a network; with per_series=True each "
                f"series has its own, which sees constants. Got static={quote(arguments.static)}: "
                "leave it out and drop these columns, or leave per_series out"
            )

    def _from_file(
        self,
        arguments: Arguments,
        data: FittedData,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        last_times: np.ndarray,
    ) -> AnyFit:
        if header.get("prior"):
            return prior_from_file(arguments, data, header, arrays, last_times)
        if "parts" in header:

            def read_part(part: dict[str, Any], of_part: dict[str, np.ndarray]) -> AnyFit:
                return self._from_file(arguments, data, part, of_part, last_times)

            return stacked_from_file(header, arrays, read_part)
        from tsrnn.forecasters._file import check_settings, from_file
        from tsrnn.forecasters._settings import resolve

        with as_saved("params"):
            filled = resolve(arguments.as_dict())
            layer_arguments = dict(filled)

        def read(
            arguments: Arguments,
            data: FittedData,
            header: dict[str, Any],
            arrays: dict[str, np.ndarray],
            last_times: np.ndarray,
        ) -> Fit:
            of_columns = {name: header.pop(name) for name in REGRESSION if name in header}
            numbers = {
                name: arrays.pop(name) for name in list(arrays) if name.startswith("columns.")
            }
            check_settings(header, arrays)
            with as_saved("params"):
                self._layer(dict(layer_arguments))
            network, state = from_file(arguments, data, filled, header, arrays, last_times)
            if of_columns or numbers:
                return with_columns_from_file(of_columns, numbers, network, state)
            return network, state

        if not filled["per_series"]:
            return read(arguments, data, header, arrays, last_times)
        described = arguments_by_series(arguments, data)
        members = members_from_file(header, arrays, last_times, described, read)
        return combine_members(arguments, data, members)

    def _read_frame(self, df: Any, arguments: Arguments, **shape: Any) -> Panel:
        panel = super()._read_frame(df, arguments, **shape)
        check_not_too_large(panel, LARGEST)
        if boxcox_lambda(arguments.use_boxcox) is not None:
            check_positive(panel)
        return panel

    def _filter(self, panel: Panel) -> Any:
        return self.fitted_.filter(panel, self.state_)

    def _read(self, df: Any) -> Panel:
        panel, arguments = super()._read(df), self.fitted_.arguments
        if arguments.missing == "auto" and not self.fitted_.skips_missing:
            return self._interpolated(panel, first=False)
        return panel

    def _skips_missing(self, arguments: Arguments) -> bool:
        return self._may_take_prior(arguments)

    def _has_effects_by_holiday(self, arguments: Arguments) -> bool:
        return self._may_take_prior(arguments)

    def _may_take_prior(self, arguments: Arguments) -> bool:
        """Return True if no argument asks for a trained network."""
        default, cell = Arguments.of(type(self)()), self._cell(arguments)
        return arguments.prior is not None and not training_arguments(arguments, default, cell)

    def _outlier_rows(self, state: Any, layout: Layout) -> pd.DataFrame | None:
        pretrained = self.fitted_.pretrained(state)
        return None if pretrained is None else outlier_frame(*pretrained, layout)

    @property
    def outliers_(self) -> pd.DataFrame:
        """Gross errors and level shifts in the last rows of the series."""
        check_is_fitted(self)
        layout = replace(self.fitted_.data.layout, backend="pandas")
        outliers = self._outlier_rows(self.state_, layout)
        if outliers is None:
            raise AttributeError(
                "only the prior network finds outliers_; this forecaster trained a network on "
                "these series. tsrnn.prior.find_outliers takes any series"
            )
        return outliers

    def for_series(self, series: Any) -> Self:
        """Forecaster of one series, if fitted with ``per_series=True``.

        It equals a fit to that series alone, and can be updated by itself. Functions that read a
        network, such as `tsrnn.recurrence_features`, accept it.

        Parameters
        ----------
        series : id or str
            Id in a long frame, column in a wide one.

        Returns
        -------
        forecaster
            Fitted, with ``per_series=False``.

        Raises
        ------
        ValueError
            If there is no such series, or the forecaster was fitted with ``per_series=False``.

        Examples
        --------
        >>> from tsrnn import ParaRNNForecaster
        >>> from tsrnn.datasets import load_macrodata
        >>> rates = load_macrodata()[["infl", "unemp"]]
        >>> model = ParaRNNForecaster(horizon=4, hidden_size=4, max_epochs=1, per_series=True)
        >>> model.fit(rates).for_series("infl").predict(2).columns.tolist()
        ['infl']
        """
        check_is_fitted(self)
        (number, fitted), past = self.fitted_.member(series), self._history
        other = copy.copy(self).set_params(**fitted.arguments.as_dict())
        other.fitted_, other.state_ = fitted, self.state_.members[number]
        if past.most and self.fitted_.data.layout.id_col is None:
            past = replace(past, values=[past.values[0][:, [number]]])
        elif past.most:
            past = replace(past, values=[past.values[number]], times=[past.times[number]])
        other._history = past
        return other

    @property
    def parts_(self) -> dict[str, Self]:
        """Forecasters of the parts of a stacked forecast, by name.

        Raises
        ------
        AttributeError
            If one model forecasts.
        """
        check_is_fitted(self)
        forecasters = {}
        for name, (part, state) in self.fitted_.parts_of(self.state_).items():
            forecaster: Any = copy.copy(self)
            forecaster.fitted_, forecaster.state_ = part, state
            forecasters[name] = forecaster
        return forecasters

    def recurrent_blocks(self) -> Any:
        """Recurrent matrices of the network, for `tsrnn.recurrence_features`.

        Returns
        -------
        list
            By layer, of all networks if `n_estimators` is more than one.
        """
        return copy.deepcopy(self.network_.recurrent_blocks())  # the network has views of weights

    def contributions(self, X: Any = None, X_future: Any = None) -> pd.DataFrame:
        r"""Additive parts of the forecasts of the next `horizon_` steps.

        A trained network has the parts local level, linear path, columns known ahead, each block of
        the last layer (the equation after (7) of Cai et al., 2026) and constant, in the units of
        the data. The network is one part if its layers have no blocks, the aggregation is not
        linear, or it contributes nothing (``network_active_`` is False); in the last case the part
        is zero. The parts sum to `predict` to rounding, or with ``use_boxcox`` to the transformed
        forecast.

        The prior network has the parts ``level`` after the last row, growth by the ``trend``,
        ``cycle`` (a stationary autoregression) and ``season`` of its structural models, weighted as
        in the forecast; ``network``, its shift of their median; and the effect of each column. In
        models of logarithms each part is the difference that it makes to the parts before it, in
        that order. A season has mean zero over a season. The total effect of factors is
        divided among them in proportion to their logarithms. `ParaRNNForecaster.components` has
        standard errors.

        Parameters
        ----------
        X : frame, optional
            Data to forecast after, as in `predict`.
        X_future : frame, optional
            As in `predict`.

        Returns
        -------
        DataFrame
            A row for each series, target and step (index levels `unique_id`, `target`,
            `step`; only `step` for one target of one series), and a column for each part.
        """
        check_is_fitted(self)
        fitted, data, state = self.fitted_, self.fitted_.data, self._state_after(X)
        future = data.read_future(X_future, state.ids, state.last_times, fitted.horizon)
        parts = fitted.contributions(state, future)
        columns = {name: np.moveaxis(part, 2, 1).ravel() for name, part in parts.items()}
        names, steps = data.layout.target_names, range(1, fitted.horizon + 1)
        if len(state.ids) * len(names) == 1:
            return pd.DataFrame(columns, index=pd.Index(steps, name="step"))
        levels = [fitted.arguments.id_col, "target", "step"]
        index = pd.MultiIndex.from_product([state.ids, names, steps], names=levels)
        return pd.DataFrame(columns, index=index)

    def effect_curves(self) -> pd.DataFrame:
        """Effects of the columns over their values and by lag.

        A curve is the mean effect over series of each value of a column, relative to the effect of
        its median. In a stacked forecast, the heaviest part with effects gives the curves. If all
        terms of a column are linear, the curve is the effect of a lasting change, and the responses
        to a change of one unit are given by lag. Curves that vary over the day are given at four
        hours, and curves that vary over the year in their mean.

        Returns
        -------
        DataFrame
            ``column``; ``kind``: "curve", "mark" at the quantiles of the column from 5 to 95
            percent, "lag", "cumulated"; ``of``: the lag or average of the curve, "" for all terms;
            ``target`` if there are several; ``hour``; ``at``: the value or the lag; ``effect`` in
            the units of the target, for factors in percent, see ``attrs["units"]``; ``se``, the
            mean posterior standard deviation over series, given the terms.

        Raises
        ------
        ValueError
            If no column has an effect, or each series has a network of its own.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from tsrnn import ParaRNNForecaster
        >>> heat = np.random.default_rng(0).normal(size=60)
        >>> df = pd.DataFrame({"sales": 9 + 2 * heat, "heat": heat})
        >>> model = ParaRNNForecaster(target="sales", known_ahead="heat").fit(df)
        >>> curve = model.effect_curves().query("kind == 'curve'")
        >>> (curve["effect"].diff() / curve["at"].diff()).tail(2).round(2).tolist()
        [2.0, 2.0]
        """
        check_is_fitted(self)
        regression = self.fitted_.regression
        if regression is None or not regression.data.exog_names:
            raise ValueError(
                "effect_curves are of exogenous columns with effects; this forecaster has none. "
                "Fit to data with columns beside the target, known ahead"
            )
        return effect_curves(regression)

    def summary(self, *, stability: FeatureStability | None = None) -> Summary:
        """Summary of the fit; print the result.

        Trained networks have their accuracy, the gain by each part of the forecasts, and recurrence
        features; with ``per_series=True``, a table by series. The prior network has its training
        data, the weights of its structural models, and the features of its forecasts. A stacked
        forecast has the candidates, followed by the page of the heaviest part.

        Parameters
        ----------
        stability : FeatureStability, optional
            Result of `tsrnn.forecasters.feature_stability` for the whole forecast. Its features
            are shown with the share of refits in which each returns.
        """
        check_is_fitted(self)
        return self.fitted_.summarise(self, stability)

    def block_shares_(self) -> list[np.ndarray] | None:
        """Share of the network's output variance by block, an array for each layer of each network.

        Computed on the last rows of the data fitted to, for networks that contribute; see
        `tsrnn.recurrence_features`. None if the layers have no blocks.

        Raises
        ------
        tsrnn.interpret.UninformativeNetworkError
            If no network contributes.
        """
        from tsrnn.interpret import block_shares
        from tsrnn.layers import CellStack

        members = [network for _, network in active_networks(self, "block_shares_")]
        if not all(isinstance(member.rnn, CellStack) for member in members):
            return None
        return [share.numpy() for member in members for share in block_shares(member, self.sample_)]

    def forecast_paths(self, *, at: str = "data") -> ForecastPaths:
        """Paths of forecasts along the data, for `forecast_features`.

        Parameters
        ----------
        at : {"data", "mean"}
            Points of the derivatives by which the forecasts are linearised.

        Returns
        -------
        tsrnn.interpret.ForecastPaths
        """
        check_is_fitted(self)
        at = choice("at", at, ("data", "mean"))
        return self.fitted_.forecast_paths(self.state_, at)

    def _trained(self) -> FittedNetworks:
        check_is_fitted(self)
        return self.fitted_.trained

    @property
    def settings_(self) -> Settings:
        """Resolved arguments, with defaults filled in."""
        settings = self._trained().settings
        return replace(settings, options=dict(settings.options))

    @property
    def model_(self) -> ForecastModel:
        """Local level, linear path, network and effect of columns known ahead."""
        return self._trained().model

    @property
    def network_(self) -> RecurrentNetwork | Ensemble:
        """Recurrent network, an ensemble of several."""
        return self._trained().model.network

    @property
    def calibration_(self) -> Calibration:
        """Validation errors, from which the intervals are computed."""
        return self._trained().calibration

    @property
    def history_(self) -> list[dict[str, float]]:
        """Losses and learning rate of every epoch."""
        return [dict(epoch) for epoch in self._trained().history]

    @property
    def linear_path_(self) -> dict[str, Any]:
        """Form of the linear path; empty without one."""
        return dict(self._trained().linear_path)

    @property
    def validation_(self) -> pd.DataFrame:
        """Root mean squared error by step on the validation part."""
        return self._trained().validation.copy()

    @property
    def sample_(self) -> Tensor:
        """Sample of inputs of the network, for the features of its blocks."""
        return self._trained().sample.clone()

    @property
    def sample_length_(self) -> int:
        """Rows of the longest series fitted to."""
        return self._trained().sample_length

    @property
    def best_epochs_(self) -> list[int]:
        """Epoch whose parameters are kept, for each network; 0 is the start."""
        return list(self._trained().best_epochs)

    @property
    def best_epoch_(self) -> int:
        """Epoch whose parameters are kept; the largest of several networks."""
        return max(self.best_epochs_)

    @property
    def network_active_(self) -> bool:
        """True if a network contributes to the forecasts of any series: its best epoch is not 0."""
        check_is_fitted(self)
        return self.fitted_.network_active

    @property
    def inactive_networks_(self) -> dict[int, str]:
        """Reason by network, counted from 1, that contributes nothing to the forecasts."""
        check_is_fitted(self)
        return self.fitted_.inactive_networks
