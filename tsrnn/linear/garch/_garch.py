"""GARCH models and their results: variances over time and ahead, persistence, simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
import torch

from tsrnn.contract import (
    Arguments,
    FittedData,
    check_is_fitted,
    choice,
    positive_integer,
    real_array,
    seed_of,
    with_shared_arguments,
)
from tsrnn.data import quote
from tsrnn.linear._arguments import burn_of
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._family import Family
from tsrnn.linear._frames import given_params, in_shape_of_data
from tsrnn.linear.garch._family import (
    INTERVALS,
    GARCHFamily,
    check_variances,
    draw_innovations,
    garch_family,
)
from tsrnn.linear.garch._filter import resting_state
from tsrnn.linear.garch._forecast import simulate_garch
from tsrnn.linear.garch._inference import (
    half_life,
    resting_variance,
    transition,
    unconditional_variance,
)
from tsrnn.linear.garch._prepare import units_of
from tsrnn.linear.garch._specification import SKIPPING_MEANS, Model, Step, persistence

METHODS = ("auto", "analytic", "simulation", "bootstrap")


@with_shared_arguments
class GARCH(LinearForecaster):
    r"""GARCH, GJR-GARCH, EGARCH and TGARCH by maximum likelihood, one series or many.

    .. math::

        y_t = \mu_t + e_t, \qquad e_t = \sqrt{h_t}\, z_t, \qquad
        h_t = \omega + \sum_{i=1}^p \alpha_i e_{t-i}^2 + \sum_{j=1}^q \beta_j h_{t-j}

    with independent :math:`z_t` of variance one. It is a linear recurrent network with input
    :math:`e_t^2` and state h (Cai et al., 2026, section 2.1; for GARCH(1,1) also Zhao et al.,
    2024). Other models have other shocks, or a recursion of another function of the variance:

    ============= =======================================================================
    ``"gjr"``     :math:`h_t = \omega + \sum_i (\alpha_i + \gamma_i 1[e_{t-i} < 0]) e_{t-i}^2
                  + \sum_j \beta_j h_{t-j}`
    ``"tgarch"``  :math:`\sigma_t = \omega + \sum_i (\alpha_i + \gamma_i 1[e_{t-i} < 0])
                  |e_{t-i}| + \sum_j \beta_j \sigma_{t-j}` with :math:`\sigma_t = \sqrt{h_t}`
    ``"avgarch"`` the same without :math:`\gamma`
    ``"egarch"``  :math:`\log h_t = \omega + \sum_i (\alpha_i (|z_{t-i}| - \sqrt{2/\pi})
                  + \gamma_i z_{t-i}) + \sum_j \beta_j \log h_{t-j}`
    ============= =======================================================================

    Every series and target is fitted by itself, all in one batch: Fisher scoring, then Newton's
    method, with exact derivatives of the whole likelihood. Names, parameters and log-likelihood
    agree with the package arch.

    Parameters
    ----------
    order : tuple of int, default (1, 1)
        p lags of the shocks (alpha, and gamma) and q lags of the variance, or of its function
        (beta), as in arch.
    mean : {"constant", "zero", "ar", "arma"}
        Conditional mean :math:`\mu_t`. With p lags of y, the likelihood leaves out the first p
        rows; moving averages begin with residuals of zero.
    mean_order : int, list of int or tuple of int, optional
        Lags of "ar", 1 by default; (p, q) of "arma", (1, 1) by default.
    distribution : {"normal", "t"}
        Distribution of z. Student's t is scaled to variance one and has nu degrees of freedom.
    vol : {"garch", "gjr", "egarch", "avgarch", "tgarch"}
        Name in the table `VOLATILITIES`.
    initial_variance : {"backcast", "sample", "fcp", "unconditional", "tsp"} or float
        Variance before the first observation, which also replaces the squared residuals there.

        - "backcast": mean of the first 75 squared residuals at the starting values, with weights
          0.94^t, as in arch ("tgarch", "avgarch": the squared weighted mean of absolute residuals).
        - "sample": mean of all squared residuals at the starting values; TSP's HINIT=OLS.
        - "fcp": mean of all squared residuals at the current parameters of the mean (Fiorentini,
          Calzolari and Panattoni, 1996); TSP's default.
        - "unconditional": the unconditional mean of h, sigma or log h at the current parameters;
          TSP's HINIT=STEADY.
        - "tsp", for "egarch" only: as "fcp", after a residual that is the mean of all residuals,
          as in TSP. The other choices put :math:`|z| - \sqrt{2/\pi}` and z at their expectation.
    stationary : bool, default True
        Hold the persistence at one if the likelihood rises beyond it (not for "egarch").
    intervals : {"simulated", "analytic", "conformal"}
        Prediction intervals beyond the first step: quantiles of simulated paths; quantiles of the
        innovations scaled to the variance of the forecast error, which is approximate beyond the
        first step; or conformal quantiles of errors over the widths of simulated intervals.
    n_simulations : int, default 2000
        Paths of each series.
    n_starts : int, optional
        Starting values of every series, besides the optima of nested models with more than one
        lag. By default, models of one lag have one start, and more if its optimum is doubtful;
        other models have the best candidate of each part of a grid. `agreement_` counts how many
        of `starts_` reached the highest log-likelihood.
    cov_type : str, default "robust"
        Kind of standard errors: quasi maximum likelihood, "hessian", "opg", "information",
        "bollerslev-wooldridge" or "arch-robust".
    missing : {"auto", "error", "interpolate", "keep"}
        "keep", and "auto" with a constant or zero mean, leaves a missing value out of the
        likelihood. Its shocks are at their expectation given the past: :math:`h_t` for
        :math:`e_t^2`, half of :math:`h_t` for :math:`e_t^2 1[e_t < 0]`, :math:`\sigma_t E|z|`
        for :math:`|e_t|`.
    horizon, id_col, time_col, freq, strict, support, verbose
        As in all linear models.
    target, known_ahead, static, calendar, holidays
        As in all linear models. GARCH takes no exogenous columns.
    random_state : int, numpy random generator or None
        Seed of simulated intervals.

    Notes
    -----
    The likelihood usually has several maxima with more than one lag, and with an "arma" mean whose
    two parts nearly cancel; moving averages are invertible. The search starts from the optima of
    nested models, which have a lag less, no leverage ("gjr", "tgarch") or a moving average less,
    so that no nested model is ever higher; and from other values. No search can prove that there
    is no higher maximum.

    Absolute residuals give the likelihoods of "egarch", "tgarch" and "avgarch" kinks in the
    parameters of the mean. The kinks' contribution to the curvature has expectation zero, and
    standard errors leave it out. In simulations with 1000 rows (4000 "egarch", 1000 "tgarch"), the
    median standard error of mu is 1.00 and 0.99 times the standard deviation of mu, and intervals
    of 95 percent cover mu in 95.0 percent of the converged fits (benchmarks/known_processes.py).

    With missing values, "garch" and "gjr" have the exact conditional variance up to the first
    row after a gap, and forecasts after missing last rows equal forecasts of more steps. An
    observation after a gap also carries information about the variance within the gap, which the
    recursion does not use; and the recursions of "egarch" and "tgarch" are not linear in the
    variance. Estimates are therefore quasi maximum likelihood, and nearly unbiased (see
    :doc:`/howto/missing`). arch takes no missing values.

    Intervals take the parameters as known; if the model is right, their coverage is nominal up to
    that and to simulation error. Variance forecasts of "egarch" beyond the first step are means of
    simulated paths; their expectation is infinite for Student's t unless the effect of shocks is
    negative.

    The persistence of "tgarch" is that of sigma, the expected effect of a shock on the next sigma.
    Even below one the variance may be infinite: for orders (1, 1) it is finite if
    :math:`E (\alpha |z| + \gamma |z| 1[z < 0] + \beta)^2 < 1`. `unconditional_variance_` and the
    messages report it.

    Bounds: omega at least 1e-8 of the variance of the series ("tgarch": of its standard
    deviation); alpha, alpha + gamma and beta not negative, beta at most one ("egarch": below one
    in absolute value), a single moving average of the mean between -1 and 1, nu from 2.05 to 500.
    A parameter on its bound has no standard error.

    References
    ----------
    Bollerslev, T. (1986). Generalized autoregressive conditional heteroskedasticity.
    Fiorentini, G., Calzolari, G., Panattoni, L. (1996). Analytic derivatives and the
    computation of GARCH estimates.
    Glosten, L., Jagannathan, R., Runkle, D. (1993). On the relation between the expected value
    and the volatility of the nominal excess return on stocks.
    Nelson, D. (1991). Conditional heteroskedasticity in asset returns: a new approach.
    Zakoian, J.-M. (1994). Threshold heteroskedastic models.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.linear import GARCH
    >>> returns = pd.Series(np.random.default_rng(0).normal(size=500), name="r")
    >>> GARCH(order=(1, 0)).fit(returns).params_.columns.tolist()
    ['mu', 'omega', 'alpha[1]']
    """

    column_name: ClassVar[str] = "GARCH"
    offers: ClassVar[frozenset[str]] = frozenset({"sample_paths", "predict_variance"})
    family_class: ClassVar[type[Family]] = GARCHFamily
    legal_intervals: ClassVar[tuple[str, ...]] = INTERVALS
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

    def __init__(
        self,
        order: tuple[int, int] = (1, 1),
        mean: str = "constant",
        mean_order: Any = None,
        distribution: str = "normal",
        vol: str = "garch",
        initial_variance: str | float = "backcast",
        stationary: bool = True,
        intervals: str = "simulated",
        n_simulations: int = 2000,
        n_starts: int | None = None,
        *,
        cov_type: str = "robust",
        **shared: Any,
    ) -> None:
        super().__init__(cov_type=cov_type, **shared)
        self.order = order
        self.mean = mean
        self.mean_order = mean_order
        self.distribution = distribution
        self.vol = vol
        self.initial_variance = initial_variance
        self.stationary = stationary
        self.intervals = intervals
        self.n_simulations = n_simulations
        self.n_starts = n_starts

    def _skips_missing(self, arguments: Arguments) -> bool:
        return arguments.mean in SKIPPING_MEANS

    def _family(self, arguments: Arguments, data: FittedData) -> GARCHFamily:
        return garch_family(arguments, data.n_targets)

    @property
    def persistence_(self) -> pd.Series:
        r"""Expected share of a deviation of h, sigma or log h that lasts to the next step.

        Sum of :math:`\alpha_i + \gamma_i / 2` ("tgarch": times :math:`E |z|`) and
        :math:`\beta_j`; for "egarch", sum of :math:`\beta_j`.
        """
        return self._derived(persistence, "persistence")

    @property
    def half_life_(self) -> pd.Series:
        """Steps in which a deviation of h, sigma or log h from its mean halves."""
        return self._derived(half_life, "half_life")

    @property
    def unconditional_variance_(self) -> pd.Series:
        """Unconditional variance of the residuals, inf if there is none."""
        return self._derived(unconditional_variance, "unconditional_variance")

    def conditional_volatility(self, df: Any = None) -> Any:
        r"""Conditional standard deviations :math:`\sqrt{h_t}` within the data.

        Parameters
        ----------
        df : frame, optional
            Other data; by default the data fitted to.

        Returns
        -------
        frame
            In the shape of the data; a column ``volatility`` in a long frame. NaN in the first
            rows, which have not all lags of y.
        """
        panel = self._data(df)
        units = self.fitted_.units_of(panel.ids)
        volatility = np.sqrt(self._current_family.residuals_and_variances(panel, units)[1])
        return in_shape_of_data(panel, volatility, "volatility")

    def predict_variance(
        self,
        h: int | None = None,
        X: Any = None,
        method: str = "auto",
        *,
        of: str = "residual",
        ids: Any = None,
    ) -> Any:
        r"""Forecasts of the variance of the residuals, or of the errors of forecasts.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X : frame, optional
            Data to forecast after; by default the data seen so far.
        method : {"auto", "analytic", "simulation", "bootstrap"}
            "analytic": expectations in closed form, which "egarch" has for the first step only.
            "simulation": means of simulated paths. "bootstrap": means of paths whose innovations
            are drawn from the standardised residuals of the data fitted to. "auto" is "analytic"
            if it exists, else "simulation".
        of : {"residual", "forecast"}
            Conditional variance of the residual :math:`e_{T+k}`; or variance of the error of the
            forecast of :math:`y_{T+k}`, :math:`\sum_{j<k} \psi_j^2 E h_{T+k-j}` with the impulse
            responses :math:`\psi_j` of the mean. They agree at the first step, and with a constant
            or zero mean.
        ids : id or list of ids, optional
            Series of a long frame to forecast, as in `predict`.

        Returns
        -------
        frame
            In the shape of the data; a column ``variance`` in a long frame.

        Raises
        ------
        ValueError
            If the method does not exist for this model or horizon.
        """
        options: dict[str, Any] = {"method": choice("method", method, METHODS)}
        if method == "bootstrap":
            check_is_fitted(self)
            panel, fitted = self._data(None), self.fitted_
            scaled, _ = units_of(panel, fitted.in_sample(panel)[1], fill=np.nan)
            drawn = self._state_after(X, ids).ids
            series = fitted.data.series_of(drawn, fitted.arguments.class_name)
            by_series = scaled.reshape(len(panel.ids), -1, scaled.shape[1])
            options["residuals"] = by_series[series].reshape(-1, scaled.shape[1])
        return self._variance_frame(h, X, ids, of, **options)

    def news_impact(self, z: Any = None) -> pd.DataFrame:
        r"""Variance after a shock to a recursion at rest (Engle and Ng, 1993).

        Parameters
        ----------
        z : array_like, optional
            Standardised residuals; by default 81 from -4 to 4.

        Returns
        -------
        DataFrame
            :math:`h_{t+1}`, a row for each residual and a column for each unit. :math:`h_t` is the
            fixed point of the recursion: :math:`\omega / (1 - P)` with the persistence P, its
            square for "tgarch", its exponential for "egarch". NaN for a unit without a fixed point.
        """
        sizes = np.linspace(-4, 4, 81) if z is None else real_array("z", z).reshape(-1)
        params, model = self.estimates_.params, self._current_family.model
        columns = torch.from_numpy(np.array(params.T))[..., None].unbind(0)
        at_rest = resting_state(model, params, resting_variance(model, params)).memory
        fields = tuple(torch.from_numpy(np.array(at_rest.T))[..., None].unbind(0))
        h, _ = model.vol.variance(fields[model.mean.n_ma :])
        e = torch.sqrt(h) * torch.from_numpy(sizes)
        after = Step(model).advance(fields, e, h, columns)
        variance = model.vol.variance(after[model.mean.n_ma :])[0].numpy()
        return pd.DataFrame(variance.T, index=pd.Index(sizes, name="z"), columns=self.units_)

    def simulate(
        self, n: int, params: Any = None, burn: int = 500, random_state: Any = None
    ) -> pd.DataFrame:
        """Draw series from the model.

        Parameters
        ----------
        n : int
            Number of rows.
        params : Series, dict or array_like, optional
            Parameters by name or in order, for a model that need not be fitted; by default the
            estimates of all units.
        burn : int, default 500
            Rows drawn first and discarded. Variances begin at the fixed point of their recursion.
            Without a fixed point they begin at the presample variance of the fit, with `params`
            at a number given as `initial_variance`.
        random_state : int, numpy random generator or None
            Seed; by default the seed of the fit.

        Returns
        -------
        DataFrame
            A column for each unit, or ``y`` with given parameters.

        Raises
        ------
        ValueError
            If an argument is not legal, the recursion has no fixed point and no variance to begin
            at, or variances do not stay positive and finite.
        """
        n, burn, family = positive_integer("n", n), burn_of(burn), self._current_family
        model, before = family.model, family.initial_variance
        if params is None:
            units, rows = self.units_, self.estimates_.params
            presample = self.fitted_.constants["presample"]
        else:
            units = pd.Index(["y"])
            rows = given_params(params, units, model.names)
            presample = np.full(1, np.nan if isinstance(before, str) else before)
        missing = np.isnan(rows).any(1)
        with np.errstate(divide="ignore", invalid="ignore"):  # nu may be two or less
            constant = model.density.constant(rows[:, model.shape_part]).value
        check_variances(model, rows, np.isfinite(constant) | missing)
        start = resting_variance(model, rows)
        start = np.where(np.isfinite(start), start, presample)
        if not (np.isfinite(start) | missing).all():
            raise ValueError(
                "initial_variance must be a number to begin at: with a persistence of one or "
                f"more, the recursion rests nowhere; got {quote(before)}"
            )
        given = self.arguments_.random_state if random_state is None else random_state
        rng = np.random.default_rng(seed_of(given))
        z = draw_innovations(model, rows, (n + burn, 1), rng)
        paths = simulate_garch(model, rows, resting_state(model, rows, start), z)
        positive = np.isfinite(paths.variance) & (paths.variance > 0)
        check_variances(model, rows, positive.all((1, 2)) | missing)
        return pd.DataFrame(paths.y[:, burn:, 0].T, columns=units)

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of the variances, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "variance", shape (U, r, r) with r = max(p, q): the companion matrix of
            :math:`\alpha_i + \gamma_i / 2 + \beta_i`, the transition of variance forecasts
            ("tgarch": of forecasts of sigma, with shocks times :math:`E |z|`; "egarch": of
            forecasts of log h, with :math:`\beta_i` alone). For orders (1, 1) it is the
            persistence.
            "beta": the companion matrix of :math:`\beta_i`, the recurrence by which the network
            forgets shocks. Absent if q is 0, and for "egarch".
        """
        estimates, model = self.estimates_, self._current_family.model
        params = estimates.params[estimates.fitted]
        blocks = {"variance": transition(model, params)[0]}
        if model.q and not model.vol.log:
            beta = np.tile(np.eye(model.q, k=1), (len(params), 1, 1))
            beta[:, :, 0] += params[:, model.beta]
            blocks["beta"] = beta
        return [blocks]

    def _derived(self, function: Callable[[Model, np.ndarray], np.ndarray], name: str) -> pd.Series:
        estimates = self.estimates_
        values, fitted = np.full(len(estimates.params), np.nan), estimates.fitted
        values[fitted] = function(self._current_family.model, estimates.params[fitted])
        return self._series(values, name)

    @property
    def _current_family(self) -> GARCHFamily:
        """Family of the fit; before one, that of the arguments."""
        fitted = vars(self).get("fitted_")
        return garch_family(self.arguments_) if fitted is None else cast(GARCHFamily, fitted.family)
