"""Impulse responses by local projections, debiased by cross-fitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import flag
from tsrnn.data import quote
from tsrnn.inference._covariance import DESCRIPTIONS, Covariance, score_covariance
from tsrnn.inference._history import History, check_length, whole_number
from tsrnn.inference._nuisance import cross_fit
from tsrnn.inference._partially_linear import (
    InferenceSummary,
    check_variation,
    checked_alpha,
    checked_settings,
    model_name,
    read_variables,
    regress_residuals,
)

DRAWS = 10_000  # of sup-t, for a 95 percent quantile accurate to about 0.01


class LocalProjections(BaseEstimator):
    r"""Impulse responses of one or several series to a shock or treatment.

    .. math:: y_{t+h} = \theta_h x_t + f_h(H_t) + u_{t+h}, \qquad h = 0, \dots, H,

    where the history :math:`H_t` has `n_lags` lags of the responses, x and the controls. With
    ``model="ols"`` :math:`f_h` is linear (Jordà 2005). Otherwise it is unknown, and
    :math:`\theta_h` is estimated as in `PartiallyLinear`, horizon by horizon, with h more rows left
    out on either side of each block, as the response is h rows ahead.

    Parameters
    ----------
    model : "ols", regressor, list of regressors or None
        As in `PartiallyLinear`; "ols" is ordinary least squares on x and the history.
    horizons : int, default 12
        H, at least 0.
    n_lags : int, default 4
        p. With one lag more than the dynamics have, "HC" suffices at all horizons (lag
        augmentation, Montiel Olea and Plagborg-Møller 2021).
    n_folds, contemporaneous, bandwidth, random_state, n_jobs
        As in `PartiallyLinear`.
    gap : int, optional
        By default `n_lags` + h at horizon h.
    cov_type : {"HC", "EWC", "HAC", "fixed-b"}, default "HC"
        As in `PartiallyLinear`. Residuals of x on the history are not predictable, so that scores
        are serially uncorrelated, although errors are not.
    alpha : float, default 0.05
        Bands have level 1 - alpha.
    bias_correction : bool, default False
        With ``model="ols"``, correct the bias of order 1 / T by the recursion of Herbst and
        Johannsen (2024), for an x that the history does not predict.

    Attributes
    ----------
    irf_ : DataFrame
        A row for each response and horizon: ``horizon, response, estimate, se``; ``lower, upper``,
        the pointwise band; ``lower_simultaneous, upper_simultaneous``, the sup-t band over the
        horizons of a response (Montiel Olea and Plagborg-Møller 2019).
    nobs_ : Series
        Rows by horizon.
    sup_t_ : Series
        Critical value of the simultaneous band by response.

    Raises
    ------
    TypeError, ValueError
        In `fit`, as in `PartiallyLinear`; x must be one column.

    Notes
    -----
    :math:`\theta_h` is the causal response if x is as good as random given the history. This
    assumption identifies a shock and cannot be tested. If responses depend on the size, sign or
    history of the shock, :math:`\theta_h` is a weighted mean of them. The assumptions of
    `PartiallyLinear` apply to x and each :math:`y_{t+h}`. Intervals cover too seldom unless H is
    small relative to T.

    References
    ----------
    Herbst, E. P. and Johannsen, B. K. (2024). Bias in local projections. Journal of Econometrics
    240(1), 105655.

    Jordà, Ò. (2005). Estimation and inference of impulse responses by local projections. American
    Economic Review 95(1), 161-182.

    Montiel Olea, J. L. and Plagborg-Møller, M. (2019). Simultaneous confidence bands: theory,
    implementation, and an application to SVARs. Journal of Applied Econometrics 34(1), 1-17.

    Montiel Olea, J. L. and Plagborg-Møller, M. (2021). Local projection inference is simpler and
    more robust than you think. Econometrica 89(4), 1789-1823.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.inference import LocalProjections
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=400), np.zeros(400)
    >>> for t in range(1, 400):
    ...     y[t] = x[t] + 0.5 * y[t - 1] + rng.normal()
    >>> model = LocalProjections("ols", horizons=2, n_lags=2).fit(y, x)
    >>> model.irf_["estimate"].round(2).tolist()
    [0.97, 0.56, 0.32]
    """

    def __init__(
        self,
        model: Any = None,
        *,
        horizons: int = 12,
        n_lags: int = 4,
        n_folds: int = 5,
        gap: int | None = None,
        contemporaneous: bool = False,
        cov_type: str = "HC",
        bandwidth: int | None = None,
        alpha: float = 0.05,
        bias_correction: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.horizons = horizons
        self.n_lags = n_lags
        self.n_folds = n_folds
        self.gap = gap
        self.contemporaneous = contemporaneous
        self.cov_type = cov_type
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.bias_correction = bias_correction
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, y: Any, x: Any, controls: Any = None) -> Self:
        """Estimate the responses.

        Parameters
        ----------
        y : Series, DataFrame or array of shape (T,) or (T, k)
            Responses in time order, a row for each period.
        x : Series or array of shape (T,)
            Shock or treatment.
        controls : Series, DataFrame or array, optional
            Further variables of the history.

        Returns
        -------
        self
        """
        horizons = whole_number("horizons", self.horizons, 0)
        alpha = checked_alpha(self.alpha)
        if isinstance(self.model, str) and self.model != "ols":
            raise ValueError(f"model must be 'ols', a regressor or None; got {self.model!r}")
        ols = isinstance(self.model, str)
        if flag("bias_correction", self.bias_correction) and not ols:
            raise ValueError("bias_correction=True is for model='ols'; set it to False")
        # "ols" has no nuisances: the last regression contains the lags.
        plain = {"model": LinearRegression(), "n_folds": 1} if ols else {}
        settings = checked_settings(
            type(self)(**{**self.get_params(deep=False), **plain}), ahead=horizons
        )
        responses, shock, frame, current = read_variables(y, x, controls, settings, single=False)
        if shock.shape[1] != 1:
            raise ValueError(
                f"x must be one column, the shock; got {quote(list(shock.columns))}. Give the "
                "others as controls"
            )
        n_lags, n_folds = settings["n_lags"], settings["n_folds"]
        k = 2 + (n_lags * frame.shape[1] if n_folds == 1 else 0)
        check_length(len(frame), n_lags, horizons, n_folds, settings["gap"], k)

        values, impulse = responses.to_numpy(), shock.to_numpy()[:, 0]
        estimates = np.empty((values.shape[1], horizons + 1))
        errors, pointwise = np.empty_like(estimates), np.empty_like(estimates)
        # Scores of all horizons side by side, zero in last rows without that horizon.
        scores = np.zeros((values.shape[1], len(frame) - n_lags, horizons + 1))
        for h in range(horizons + 1):
            history = History.of(frame, n_lags, h, current)
            gap = n_lags + h if self.gap is None else settings["gap"]
            targets = np.column_stack([impulse[history.rows], values[history.rows + h]])
            inflation = np.ones(targets.shape[1])
            if not ols:
                crossed = cross_fit(
                    settings["model"], history.windows, targets, n_folds=n_folds, gap=gap,
                    random_state=settings["seed"], n_jobs=self.n_jobs,
                )  # fmt: skip
                targets, inflation = crossed.residuals, crossed.inflation
            table = history.table if n_folds == 1 else None
            for i in range(values.shape[1]):
                fit = regress_residuals(targets[:, i + 1], targets[:, :1], table)
                widened = fit.scores * (inflation[0] * inflation[i + 1]) ** 0.25
                if not i:
                    check_variation(fit.regressors, shock)
                covariance = score_covariance(widened, k, settings["cov_type"], self.bandwidth)
                estimates[i, h], errors[i, h] = fit.params[0], covariance.bse[0]
                pointwise[i, h] = covariance.critical_value(alpha)
                scores[i, : len(history), h] = widened[:, 0]
            if self.bias_correction and h:
                estimates[:, h] += herbst_johannsen(history.table, estimates[:, :h])

        joint = [
            score_covariance(of_series, k, settings["cov_type"], self.bandwidth)
            for of_series in scores
        ]
        # Simulation error must not put the simultaneous value below the pointwise one.
        sup_t = np.maximum(sup_t_values(joint, alpha), pointwise.max(axis=1))
        steps = np.arange(horizons + 1)
        self.irf_ = _response_table(responses.columns, estimates, errors, pointwise, sup_t)
        self.nobs_ = pd.Series(
            len(frame) - n_lags - steps, pd.Index(steps, name="horizon"), name="nobs"
        )
        self.sup_t_ = pd.Series(sup_t, pd.Index(responses.columns), name="sup_t")
        self._describe(shock.columns[0], responses.shape[1], settings, alpha, covariance.bandwidth)
        return self

    def _describe(
        self, shock: Any, n_responses: int, settings: dict[str, Any], alpha: float, bandwidth: float
    ) -> None:
        """Store the facts and notes of the summary."""
        n_lags, n_folds = settings["n_lags"], settings["n_folds"]
        self._page = {
            "Shock": shock,
            "Responses": n_responses,
            "Nuisance": "linear" if isinstance(self.model, str) else model_name(self.model),
            "Lags": n_lags,
            "Blocks, gap": f"{n_folds}, {n_lags if self.gap is None else self.gap}"
            + (" + horizon" if self.gap is None else "") if n_folds > 1 else "none",
            "No. Observations": f"{self.nobs_.iloc[-1]} to {self.nobs_.iloc[0]}",
            "Covariance Type": settings["cov_type"],
            "Level": f"{100 * (1 - alpha):g}%",
        }  # fmt: skip
        self._notes = [
            f"Covariance: {DESCRIPTIONS[settings['cov_type']].format(bandwidth)}.",
            "lower and upper are pointwise; sup-t bands contain the responses at all horizons "
            "together.",
        ]

    def summary(self) -> InferenceSummary:
        """Page with the responses; print it.

        Returns
        -------
        InferenceSummary
        """
        check_is_fitted(self, "irf_")
        names = {
            "estimate": "coef", "se": "std err", "lower_simultaneous": "sup-t lo",
            "upper_simultaneous": "sup-t hi",
        }  # fmt: skip
        table = self.irf_.set_index("response").rename(columns=names)
        return InferenceSummary("Local Projections", self._page, table, self._notes)

    def plot(self, response: Any = None, *, simultaneous: bool = False, ax: Any = None) -> Any:
        """Draw the responses of one series with their band: `tsrnn.plotting.plot_functional`.

        Parameters
        ----------
        response : str, optional
            Column of y, by default the first one.
        simultaneous : bool, default False
            Draw the sup-t band, else the pointwise one.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from tsrnn.plotting import plot_functional

        check_is_fitted(self, "irf_")
        name = self.sup_t_.index[0] if response is None else response
        if name not in self.sup_t_.index:
            raise ValueError(
                f"response must be one of {list(self.sup_t_.index)}; got {quote(name)}"
            )
        rows = self.irf_[self.irf_["response"] == name]
        kind = "_simultaneous" if simultaneous else ""
        frame = rows[["estimate"]].assign(
            lag=rows["horizon"], lower=rows[f"lower{kind}"], upper=rows[f"upper{kind}"]
        )
        words = "simultaneous" if simultaneous else "pointwise"
        frame.attrs.update(
            functional="impulse response", xlabel="Horizon (periods)",
            ylabel=f"Response of {name} to {self._page['Shock']}",
            band=f"{self._page['Level']} band",
            guarantee=f"{self._page['Level']} band, {words} and asymptotic",
        )  # fmt: skip
        return plot_functional(frame, ax)


def sup_t_values(joint: Sequence[Covariance], alpha: float) -> np.ndarray:
    """Quantile, by response, of the largest absolute t-statistic over the horizons."""
    generator = np.random.default_rng(0)  # fixed, so that bands do not depend on random_state
    largest = [np.abs(covariance.draws(DRAWS, generator)).max(axis=1) for covariance in joint]
    return np.quantile(largest, 1 - alpha, axis=1)


def herbst_johannsen(controls: np.ndarray, before: np.ndarray) -> np.ndarray:
    r"""Correction of the response at horizon h for its bias of order 1 / T.

    .. math:: \frac{1}{n} \sum_{j=1}^h \big(1 + \mathrm{tr}(\Sigma_0^{-1} \Sigma_j)\big)
        \tilde\theta_{h-j},

    with the autocovariances :math:`\Sigma_j` of the `controls` (n, k), and the corrected
    responses `before` (series, h) at horizons 0 to h - 1.
    """
    n, h = len(controls), before.shape[1]
    centred = controls - controls.mean(axis=0)
    inverse = np.linalg.pinv(centred.T @ centred / n)
    weights = [1 + np.trace(inverse @ (centred[j:].T @ centred[:-j]) / n) for j in range(1, h + 1)]
    return np.asarray(before[:, ::-1] @ np.array(weights) / n)


def _response_table(
    names: pd.Index,
    estimates: np.ndarray,
    errors: np.ndarray,
    pointwise: np.ndarray,
    sup_t: np.ndarray,
) -> pd.DataFrame:
    """Table of responses (series, horizons) with pointwise and simultaneous bands."""
    wide = sup_t[:, None]
    columns = {
        "estimate": estimates, "se": errors,
        "lower": estimates - pointwise * errors, "upper": estimates + pointwise * errors,
        "lower_simultaneous": estimates - wide * errors,
        "upper_simultaneous": estimates + wide * errors,
    }  # fmt: skip
    count = estimates.shape[1]
    return pd.DataFrame(
        {
            "horizon": np.tile(np.arange(count), len(estimates)),
            "response": np.repeat(np.asarray(names), count),
            **{name: table_of.ravel() for name, table_of in columns.items()},
        }
    )
