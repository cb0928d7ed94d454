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
from tsrnn.linear._arguments import burn_of
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._family import Family
from tsrnn.linear._frames import given_params, in_shape_of_data
from tsrnn.linear.garch._family import (
    INTERVALS,
    SKIPPING_MEANS,
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
from tsrnn.linear.garch._specification import Model, Step, persistence

METHODS = ("auto", "analytic", "simulation", "bootstrap")


@with_shared_arguments
class GARCH(LinearForecaster):
    r"""GARCH, GJR-GARCH, EGARCH and TGARCH by maximum likelihood, one series or many.

    .. math::

        y_t = \mu_t + e_t, \qquad e_t = \sqrt{h_t}\, z_t, \qquad
        h_t = \omega + \sum_{i=1}^p \alpha_i e_{t-i}^2 + \sum_{j=1}^q \beta_j h_{t-j}

    with independent :math:`z_t` of variance one. In :math:`e_t^2` it is a linear recurrent network
    with the state h (Cai et al., 2026, section 2.1; for GARCH(1,1) also Zhao et al., 2024).
    Others have other shocks, or follow another function of the variance:

    ============= =======================================================================
    ``"gjr"``     :math:`h_t = \omega + \sum_i (\alpha_i + \gamma_i 1[e_{t-i} < 0]) e_{t-i}^2
                  + \sum_j \beta_j h_{t-j}`
    ``"tgarch"``  :math:`\sigma_t = \omega + \sum_i (\alpha_i + \gamma_i 1[e_{t-i} < 0])
                  |e_{t-i}| + \sum_j \beta_j \sigma_{t-j}` with :math:`\sigma_t = \sqrt{h_t}`
    ``"avgarch"`` the same without :math:`\gamma`
    ``"egarch"``  :math:`\log h_t = \omega + \sum_i (\alpha_i (|z_{t-i}| - \sqrt{2/\pi})
                  + \gamma_i z_{t-i}) + \sum_j \beta_j \log h_{t-j}`
    ============= =======================================================================

    Every series and target is fitted by itself, all of them in one batch: Fisher scoring, then
    Newton's method, with exact derivatives of the whole likelihood. Names, parameters and
    log-likelihood are those of the package arch.

    Parameters
    ----------
    order : tuple of int, default (1, 1)
        p lags of the shocks (alpha, and gamma) and q lags of the variance, or of its function
        (beta), as in arch.
    mean : {"constant", "zero", "ar", "arma"}
        Conditional mean :math:`\mu_t`. Lags of y drop as many first rows from the likelihood;
        moving averages begin with residuals of zero.
    mean_order : int, list of int or tuple of int, optional
        Lags of "ar", 1 by default; (p, q) of "arma", (1, 1) by default.
    distribution : {"normal", "t"}
        Of z; Student's t is scaled to a variance of one and has nu degrees of freedom.
    vol : {"garch", "gjr", "egarch", "avgarch", "tgarch"}
        Name in the table `VOLATILITIES`.
    initial_variance : {"backcast", "sample", "fcp", "unconditional", "tsp"} or float
        Variance before the first observation, and in place of the squared residuals there:
        the mean of the first 75 squared residuals at the starting values with weights
        0.94^t ("tgarch", "avgarch": the square of that mean of absolute residuals), as in
        arch; the mean of all of them; that mean at the current parameters of the mean
        (Fiorentini, Calzolari and Panattoni, 1996); what the current parameters imply, of sigma
        or log h its mean; for "egarch", that of "fcp" after a residual that is the mean of all at
        the current parameters, as TSP has it, where all others put :math:`|z| - \sqrt{2/\pi}` and
        z at their expectation; or a number.
        TSP's GARCH has "fcp" by default, "sample" as HINIT=OLS and "unconditional" as
        HINIT=STEADY.
    stationary : bool, default True
        Hold the persistence at one where the likelihood rises beyond it (not of "egarch").
    intervals : {"simulated", "analytic", "conformal"}
        Prediction intervals beyond the first step: quantiles of simulated paths, or the
        shape of the innovations with the variance of the forecast error, which later steps
        do not have exactly; or conformal quantiles of errors over the widths of the first.
    n_simulations : int, default 2000
        Paths of each series.
    n_starts : int, optional
        Starting values of every series. With more than one lag, the optima of the models nested
        in this one are tried besides. By default one for models of one lag, and more where that
        leaves doubt; the best of each part of a grid for others. `agreement_` says how many of
        `starts_` reached the highest log-likelihood.
    cov_type : str, default "robust"
        Kind of standard errors: that of quasi maximum likelihood, "hessian", "opg",
        "information", "bollerslev-wooldridge" or "arch-robust".
    missing : {"auto", "error", "interpolate", "keep"}
        "keep", and "auto" with a mean that is a constant or zero: a missing value has no part in
        the likelihood, and its shocks are at their expectation given the past: :math:`h_t` for
        :math:`e_t^2`, half of it where e is negative, :math:`\sigma_t E|z|` for :math:`|e_t|`.
    horizon, id_col, time_col, freq, strict, support, verbose
        As in all linear models.
    target, known_ahead, static, calendar, holidays
        As in all linear models. GARCH takes no exogenous columns.
    random_state : int, numpy random generator or None
        For intervals that are simulated.

    Notes
    -----
    The likelihood of more than one lag has several maxima as a rule, and so has that of an "arma"
    mean, of moving averages that are invertible, where its two parts nearly cancel. The search
    begins from the optima of the models with a lag less, for "gjr" and "tgarch" of the one without
    leverage, for "arma" of the one with a moving average less, each found in the same way, so that
    none of them is ever higher; and from others. No search knows that there is no higher maximum.

    Absolute residuals, of "egarch", "tgarch" and "avgarch", give the likelihood kinks in the
    parameters of the mean. What they add to its curvature has expectation zero, and standard errors
    leave it out: of 4000 simulated "egarch" and 1000 "tgarch" of 1000 rows, the median one of mu is
    1.00 and 0.99 times the standard deviation of mu, and intervals of 95 percent cover it in 95.0
    percent of those that converged (benchmarks/known_processes.py).

    With missing values the variance of "garch" and "gjr" is the conditional one up to the first
    row after a gap, and forecasts after missing rows at the end are those of more steps. An
    observation after a gap also tells of the variance within it, which the recursion does not look
    back at, and those of "egarch" and "tgarch" are not linear in it: estimates are of quasi maximum
    likelihood, and nearly unbiased (see :doc:`/howto/missing`). arch takes no missing values.

    Intervals take the parameters as known; their coverage is the nominal one if the model is
    right, up to that and to the error of simulation. Forecasts of variances of "egarch" beyond
    the first step are means of simulated paths, whose expectation is infinite for Student's t
    unless the effect of shocks is negative.

    The persistence of "tgarch" is that of sigma, the expected effect of a shock on the next one.
    Below one, the variance may still be infinite: :math:`E (\alpha |z| + \gamma |z| 1[z < 0] +
    \beta)^2 < 1` makes it finite, for orders (1, 1). `unconditional_variance_` and the messages say
    so.

    Bounds: omega at least 1e-8 of the variance of the series, of its root for "tgarch"; alpha,
    alpha + gamma and beta not negative, beta at most one ("egarch": below one in absolute value),
    a single moving average of the mean between -1 and 1, nu from 2.05 to 500. A parameter on its
    bound has no standard error.

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
        r"""Share of a deviation that is expected to last: of h, of sigma or of log h.

        Sum of :math:`\alpha_i + \gamma_i / 2`, with "tgarch" times :math:`E |z|`, and of
        :math:`\beta_j`; "egarch": of the betas.
        """
        return self._derived(persistence, "persistence")

    @property
    def half_life_(self) -> pd.Series:
        """Steps in which half a deviation of h, sigma or log h from its mean is gone."""
        return self._derived(half_life, "half_life")

    @property
    def unconditional_variance_(self) -> pd.Series:
        """Variance of the residuals; inf where there is none."""
        return self._derived(unconditional_variance, "unconditional_variance")

    def conditional_volatility(self, df: Any = None) -> Any:
        r"""Conditional standard deviations :math:`\sqrt{h_t}` within the data.

        Parameters
        ----------
        df : frame, optional
            Data in place of those fitted to.

        Returns
        -------
        frame
            In the shape of the data; a column ``volatility`` in a long frame. NaN in the first
            rows, which lags of y take out of the likelihood.
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
            Data to forecast after; by default those seen so far.
        method : {"auto", "analytic", "simulation", "bootstrap"}
            Expectations in closed form, which "egarch" has for the first step only; means of
            simulated paths; or of paths with innovations drawn from the standardised
            residuals of the data fitted to. "auto" is "analytic" where that exists.
        of : {"residual", "forecast"}
            Whose variance: that of the residual :math:`e_{T+k}` given what is known; or that of
            the error of the forecast of :math:`y_{T+k}`, :math:`\sum_{j<k} \psi_j^2 E h_{T+k-j}`
            with the impulse responses :math:`\psi_j` of the mean. They are the same at the first
            step, and where the mean is a constant or zero.
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
        r"""Variance after a shock, all before it being at rest (Engle and Ng, 1993).

        Parameters
        ----------
        z : array_like, optional
            Standardised residuals; by default 81 from -4 to 4.

        Returns
        -------
        DataFrame
            :math:`h_{t+1}` with a row a residual and a column a unit, from an :math:`h_t` at
            which the recursion rests: :math:`\omega / (1 - P)` with the persistence P, its
            square for "tgarch", its exponential for "egarch". NaN for a unit whose recursion does
            not rest anywhere.
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
        self,
        n: int,
        params: Any = None,
        burn: int = 500,
        random_state: Any = None,
    ) -> pd.DataFrame:
        """Draw series from the model.

        Parameters
        ----------
        n : int
            Rows.
        params : Series, dict or array_like, optional
            Parameters by name or in order; by default those fitted, of all units. With them
            the model need not be fitted.
        burn : int, default 500
            Rows drawn before and thrown away. Variances begin where their recursion rests; where
            it rests nowhere, at the presample variance of the fit, with `params` at a number
            given as `initial_variance`.
        random_state : int, numpy random generator or None
            By default that of the fit.

        Returns
        -------
        DataFrame
            A column a unit, ``y`` where parameters are given.

        Raises
        ------
        ValueError
            If an argument cannot be used, the recursion rests nowhere and there is no variance
            to begin at, or variances do not stay positive and finite.
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
        with np.errstate(divide="ignore", invalid="ignore"):  # of a nu that is not above two
            constant = model.density.constant(rows[:, model.shape_part]).value
        check_variances(model, rows, np.isfinite(constant) | missing)
        start = resting_variance(model, rows)
        start = np.where(np.isfinite(start), start, presample)
        if not (np.isfinite(start) | missing).all():
            raise ValueError(
                "initial_variance must be a number to begin at: with a persistence of one or "
                f"more, the recursion rests nowhere; got {before!r}"
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
            :math:`\alpha_i + \gamma_i / 2 + \beta_i`, by which forecasts of the variance move
            ("tgarch": with shocks times :math:`E |z|`, those of its root; "egarch": of
            :math:`\beta_i`, those of its logarithm); for orders (1, 1) it is the persistence.
            "beta": that of :math:`\beta_i`, the network's own recurrence, by which
            shocks are forgotten. No such entry where q is 0, and for "egarch".
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
        values = np.full(len(estimates.params), np.nan)
        values[estimates.fitted] = function(
            self._current_family.model, estimates.params[estimates.fitted]
        )
        return self._series(values, name)

    @property
    def _current_family(self) -> GARCHFamily:
        """Family of the fit; before one, that of the arguments."""
        fitted = vars(self).get("fitted_")
        return garch_family(self.arguments_) if fitted is None else cast(GARCHFamily, fitted.family)
