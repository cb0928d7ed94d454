"""The forecasting model: local level, linear path, recurrent network, effect of known futures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from tsrnn.forecasters._distribution import HEADS, Distribution
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import Units, Windows, autocorrelation
from tsrnn.kernels import linear as linear_map
from tsrnn.layers import Ensemble, LayerChoice, RecurrentNetwork, make_layer, shapes_only

# The effect of columns known ahead is computed for every step of every forecast, the state once for
# each row: narrow layers keep the effect cheap beside the recurrence.
CONTEXT_SIZE = 8  # width of the projected state that the effect depends on
FUTURE_WIDTH = 32  # width of the hidden layer


class Parts(NamedTuple):
    """Additive parts of standardised forecasts, each of shape (..., h, C).

    `linear` and `future` are zero-dimensional zeros if the model has no such part.
    """

    level: Tensor
    linear: Tensor
    network: Tensor
    future: Tensor

    def total(self) -> Tensor:
        """Sum of the parts, the forecast."""
        parts = (part for part in (self.linear, self.network, self.future) if part.ndim)
        return sum(parts, start=self.level)


class ForecastModel(nn.Module):
    r"""Direct forecasts of h steps from every row.

    .. math:: \hat y_{t+k} = \ell_t + \Gamma_k' \ell_t
        + \Big( A_k + \sum_j \rho_{jt} A_{jk} \Big)' d_t + s_t \, g_k(h_t)
        + s_t \, f(x_{t+k}, h_t)

    with the local level :math:`\ell_t`, over the mean of the training part, and spread
    :math:`s_t` of the last W rows; :math:`\Gamma_k = -I` reverts to that mean. Further the
    deviations :math:`d_t` from the level of the last W rows of the targets and of the columns that
    are not known ahead, the autocorrelations :math:`\rho_{jt}` of the targets at the lengths of the
    seasons (a varying-coefficient autoregression, Hastie and Tibshirani, 1993), the state
    :math:`h_t` of the recurrent network, whose inputs are :math:`z_t = (y_t - \ell_t) / s_t` and
    standardised columns, its head g, and columns known ahead x.
    Without ``local_level``, :math:`\ell_t = 0` and :math:`s_t = 1`; without
    ``linear_path``, A = 0; without either, or where the validation part is short,
    :math:`\Gamma = 0`. A constant series is forecast as its level.

    With ``multivariate="factor"`` the linear path of each target is of its own past, with
    coefficients common to all, and r factors of all of them are added:

    .. math:: \hat y_{t+k} = \ldots + B_k' F' x_t

    with the deviations and levels :math:`x_t` of the last rows of all columns, weights F of the
    factors and loadings :math:`B_k`.

    Parameters
    ----------
    settings : Settings
    n_targets : int
        Targets C of a unit.
    n_exog : int
        Exogenous columns E.
    known : list of int
        Numbers of the exogenous columns known ahead.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> forecaster = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> model = forecaster.fit(load_elec_equip()).model_
    >>> model.horizon, model.n_targets, model.seasons
    (12, 1, [12])
    """

    def __init__(self, settings: Settings, n_targets: int, n_exog: int, known: list[int]) -> None:
        super().__init__()
        self.horizon = settings.horizon
        self.n_targets = n_targets
        self.network_inputs = n_targets + n_exog
        self.known = [n_targets + i for i in known]
        inputs, size = self.network_inputs, settings.n_estimators
        networks = [_network(settings, inputs, n_targets) for _ in range(size)]
        self.network = networks[0] if size == 1 else Ensemble(networks)
        # Columns known ahead have no lags: their future rows say more than their past rows.
        others = [n_targets + i for i in range(n_exog) if i not in known]
        self.lagged = [*range(n_targets), *others]
        self.linear = self.linear_level = self.linear_varying = None
        self.factor_weights = self.factor_loadings = None
        self.seasons, self.by_target = settings.varying_seasons, settings.factor
        self.factor_lags = settings.factor_lags
        if settings.linear_path:
            together = 1 if self.by_target else n_targets
            outputs = self.horizon * together
            lags = (together + len(others)) * settings.input_size
            self.linear = nn.Parameter(torch.empty(lags, outputs))
            if settings.local_level and settings.judges_level:
                self.linear_level = nn.Parameter(torch.empty(together, outputs))
            if self.seasons:
                rows = together * settings.input_size
                self.linear_varying = nn.Parameter(torch.empty(rows, len(self.seasons) * outputs))
        if self.by_target:
            columns = len(self.lagged) * self.factor_lags
            columns += 0 if self.linear_level is None else n_targets
            r, outputs = settings.n_factors, self.horizon * n_targets
            # Estimated in closed form and not trained, as training them would be slow.
            self.factor_weights = nn.Parameter(torch.empty(columns, r), requires_grad=False)
            self.factor_loadings = nn.Parameter(torch.empty(r, outputs), requires_grad=False)
        hidden, futures = settings.hidden_size, range(size if known else 0)
        self.futures = nn.ModuleList(FutureHead(hidden, len(known), n_targets) for _ in futures)
        head = HEADS.get(settings.intervals)
        self.distributions = nn.ModuleList()
        if head is not None:
            self.distributions.extend(head(hidden, self.horizon, n_targets) for _ in range(size))

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator, *, zero_output: bool) -> None:
        """Draw the network's parameters; set the linear path to zero."""
        self.network.reset_parameters(generator, zero_output=zero_output)
        for parameter in self.linear_parameters():
            parameter.zero_()
        for future in self.futures:
            future.reset_parameters(generator)  # type: ignore[operator]

    @property
    def takes_replicates(self) -> bool:
        """True if parameters may have a first axis of replicates, see `Recurrent`."""
        only_network = not self.futures and not self.distributions
        return (
            only_network
            and isinstance(self.network, RecurrentNetwork)
            and self.network.takes_replicates
        )

    def linear_parameters(self) -> list[nn.Parameter]:
        """Coefficients of the linear path."""
        parts = (
            self.linear, self.linear_level, self.linear_varying,
            self.factor_weights, self.factor_loadings,
        )  # fmt: skip
        return [part for part in parts if part is not None]

    def targets(self, units: Units, rows: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        """Targets of the forecasts from some rows.

        Parameters
        ----------
        units : Units
        rows, ends : integer Tensors of equal shape
            Origins, and the row before which targets are known.

        Returns
        -------
        targets : Tensor of shape (..., h, C)
        known : boolean Tensor of shape (..., h, 1)
            True if the target lies before `ends`.
        """
        target = rows[..., None] + torch.arange(1, self.horizon + 1, device=rows.device)
        values = units.values[target.clamp(max=len(units.values) - 1)][..., : self.n_targets]
        return values, (target < ends[..., None])[..., None]

    def columns_ahead(self, units: Units, rows: Tensor) -> Tensor | None:
        """Columns known ahead after each row, shape (..., h, n_known); None without any."""
        if not self.known:
            return None
        target = rows[..., None] + torch.arange(1, self.horizon + 1, device=rows.device)
        return units.values[target.clamp(max=len(units.values) - 1)][..., self.known]

    def forecast(self, units: Units, rows: Tensor, starts: Tensor, states: Tensor) -> Tensor:
        """Standardised forecasts from some rows, shape (..., h, C).

        Parameters
        ----------
        units : Units
        rows, starts : integer Tensors of equal shape
            Origins, and the first row of the unit of each.
        states : Tensor of shape (..., hidden_size)
            Outputs of the last layer at the origins.
        """
        return self.parts(units.at(rows, starts), states, self.columns_ahead(units, rows)).total()

    def parts(
        self,
        windows: Windows,
        states: Tensor,
        future: Tensor | None,
        regressors: Regressors | None = None,
    ) -> Parts:
        """Parts of the forecasts from the ends of windows.

        Parameters
        ----------
        windows : Windows
        states : Tensor of shape (..., hidden_size)
            Outputs of the last layer after these windows.
        future : Tensor of shape (..., h, n_known) or None
            Standardised columns known ahead.
        regressors : Regressors, optional
            Regressors of these windows, if precomputed.
        """
        shape = (self.horizon, self.n_targets)
        level, linear = self.level_and_path(windows, regressors)
        spread = windows.spread[..., None, :]
        ahead = level.new_zeros(())
        if future is not None:
            parts = states.chunk(len(self.futures), -1)
            heads = zip(self.futures, parts, strict=True)
            effects = [head(future, part) for head, part in heads]
            ahead = spread * torch.stack(effects).mean(0)
        network = spread * self.network.head(states).unflatten(-1, shape)
        return Parts(level, linear, network, ahead)

    def level_and_path(
        self, windows: Windows, regressors: Regressors | None = None
    ) -> tuple[Tensor, Tensor]:
        """Local level and linear path, each (..., h, C), as in `parts`."""
        shape = (self.horizon, self.n_targets)
        means, spread = windows.level[..., : self.n_targets], windows.spread[..., None, :]
        level = means[..., None, :].expand(*means.shape[:-1], *shape)
        if self.linear is None:
            return level, level.new_zeros(())
        if windows.path is not None:
            return level, windows.path
        lags, strength = self.regressors(windows) if regressors is None else regressors
        if self.by_target:
            linear = self._own_path(lags, strength, means).mT
            assert self.factor_weights is not None
            assert self.factor_loadings is not None
            scores = _mapped(self.factor_regressors(lags, means), self.factor_weights)
            linear = linear + _mapped(scores, self.factor_loadings).unflatten(-1, shape)
        else:
            linear = self._own_path(lags, strength, means).unflatten(-1, shape)
        # Zero spread means a constant series, whose forecast is its level.
        return level, torch.where(spread > 0, linear, 0.0)

    def _own_path(self, lags: Tensor, strength: Tensor | None, means: Tensor) -> Tensor:
        """Linear path, (..., h C), or (..., C, h) if each target has its own."""
        assert self.linear is not None
        if self.by_target:
            c, columns = self.n_targets, lags.unflatten(-1, (len(self.lagged), -1))
            others = columns[..., None, c:, :].flatten(-2)
            others = others.expand(*others.shape[:-2], c, others.shape[-1])
            lags = torch.cat([columns[..., :c, :], others], -1)
            means = means[..., None]
        linear = _mapped(lags, self.linear)
        if self.linear_varying is not None and strength is not None:
            target_lags = lags[..., : self.linear_varying.shape[-2]]
            varying = _mapped(target_lags, self.linear_varying)
            # Multiply after the linear map, not before it: there are more lags than forecasts.
            varying = strength[..., None] * varying.unflatten(-1, (-1, linear.shape[-1]))
            linear = linear + varying.sum(-2)
        if self.linear_level is not None:
            linear = linear + _mapped(means, self.linear_level)
        return linear

    def factor_regressors(self, lags: Tensor, means: Tensor) -> Tensor:
        """Regressors of the common factors, shape (..., p).

        These are the last lags of all columns, and the levels of the targets if forecasts may
        revert to a mean.

        Parameters
        ----------
        lags : Tensor of shape (..., (C + H) W)
            Lags from `Units.lags`.
        means : Tensor of shape (..., C)
        """
        columns = lags.unflatten(-1, (len(self.lagged), -1))
        last = columns[..., columns.shape[-1] - self.factor_lags :].flatten(-2)
        return last if self.linear_level is None else torch.cat([last, means], -1)

    def regressors(self, windows: Windows) -> Regressors:
        """Regressors of the linear path, without the level."""
        lags, strength = windows.lags(self.lagged), windows.strength
        if strength is None and self.linear_varying is not None:
            strength = self.season_strength(lags)
        return Regressors(lags, strength)

    def season_strength(self, lags: Tensor) -> Tensor:
        """Autocorrelations of the targets' windows at the seasons, from `Units.lags`.

        Mean over the targets, (..., J), or (..., C, J) if each target has its own path.
        """
        windows = lags.unflatten(-1, (len(self.lagged), -1))[..., : self.n_targets, :]
        return autocorrelation(windows[..., None, :] if self.by_target else windows, self.seasons)

    def linear_forecasts(self, windows: Windows) -> tuple[Tensor, Tensor]:
        """Forecasts of the local level without and with the linear path, each (..., h, C)."""
        level, linear = self.level_and_path(windows)
        return level, level + linear

    def quantiles(self, states: Tensor, probabilities: Sequence[float]) -> Tensor:
        """Learned quantiles of errors over the local spread, (..., h, C, n), mean over members."""
        parts = states.chunk(len(self.distributions), -1)
        heads = cast("Iterable[Distribution]", self.distributions)
        quantiles = [
            head.quantiles(head(part), probabilities)
            for head, part in zip(heads, parts, strict=True)
        ]
        return torch.stack(quantiles).mean(0)

    def distribution_loss(self, error: Tensor, spread: Tensor, states: Tensor) -> Tensor:
        """Loss of the learned distribution at errors of the point forecast, shape (..., h, C)."""
        (head,) = cast("Iterable[Distribution]", self.distributions)  # one, as members train alone
        return head.loss(error, spread, head(states))

    @classmethod
    def merged(
        cls, members: Sequence[ForecastModel], make: Callable[[], ForecastModel]
    ) -> ForecastModel:
        """Merge models trained one by one into a model of `make` that forecasts their mean."""
        if len(members) == 1:
            return members[0]
        empty = make()
        assert isinstance(empty.network, Ensemble)
        for i, member in enumerate(members):
            empty.network.members[i].load_state_dict(member.network.state_dict())
            for name in ("futures", "distributions"):
                for head in getattr(member, name):
                    getattr(empty, name)[i].load_state_dict(head.state_dict())
        linear = zip(*(member.linear_parameters() for member in members), strict=True)
        with torch.no_grad():
            for mean, parts in zip(empty.linear_parameters(), linear, strict=True):
                mean.copy_(torch.stack(parts).mean(0))
        return empty


class Regressors(NamedTuple):
    """Regressors of a linear path.

    `lags`, shape (..., (C + H) W), are of the targets and the columns not known ahead, by
    `Units.lags`. `strength`, shape (..., J) or (..., C, J), are autocorrelations at the seasons,
    with which the coefficients of the lags vary, if they do.
    """

    lags: Tensor
    strength: Tensor | None


def _mapped(x: Tensor, coefficients: Tensor) -> Tensor:
    """Multiply regressors (..., p) by coefficients (p, m), or (R, p, m) of replicates."""
    if coefficients.ndim == 3:
        return linear_map(x, coefficients.mT)
    return x @ coefficients.to(x.dtype)


def _network(settings: Settings, inputs: int, n_targets: int) -> RecurrentNetwork:
    projected = settings.input_projection
    layers = make_layer(
        LayerChoice(settings.layer, settings.options),
        settings.hidden_size if projected else inputs,
        settings.hidden_size,
        settings.n_layers,
    )
    return RecurrentNetwork(
        layers,
        settings.horizon * n_targets,
        aggregation=settings.aggregation,
        input_size=inputs if projected else None,
    )


class FutureHead(nn.Module):
    """Effect of columns known ahead: one small network for all steps, given the state."""

    def __init__(self, hidden_size: int, n_known: int, n_targets: int) -> None:
        super().__init__()
        self.context = nn.Linear(hidden_size, CONTEXT_SIZE)
        self.inner = nn.Linear(CONTEXT_SIZE + n_known, FUTURE_WIDTH)
        self.output = nn.Linear(FUTURE_WIDTH, n_targets)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw the parameters; the effect starts at zero."""
        for module in (self.context, self.inner):
            bound = module.in_features**-0.5
            module.weight.uniform_(-bound, bound, generator=generator)
            module.bias.uniform_(-bound, bound, generator=generator)
        self.output.weight.zero_()
        self.output.bias.zero_()

    def forward(self, known: Tensor, states: Tensor) -> Tensor:
        """Map columns (..., h, n_known) and states (..., hidden) to effects (..., h, C)."""
        context = self.context(states)[..., None, :].expand(*known.shape[:-1], CONTEXT_SIZE)
        return self.output(torch.tanh(self.inner(torch.cat([context, known], -1))))


def empty_model(settings: Settings, n_targets: int, n_exog: int, known: list[int]) -> ForecastModel:
    """Model with uninitialised parameters, which leaves torch's global generator untouched."""
    model = model_without_values(settings, n_targets, n_exog, known)
    # As `to_empty`, but its `empty_like` of tensors without storage would load torch's compiler.
    return model._apply(lambda shape: torch.empty(shape.shape, dtype=shape.dtype))


def model_without_values(
    settings: Settings, n_targets: int, n_exog: int, known: list[int]
) -> ForecastModel:
    """Model whose parameters have shapes but no storage."""
    with shapes_only():
        return ForecastModel(settings, n_targets if settings.joint else 1, n_exog, known)
