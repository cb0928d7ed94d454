"""Partially linear regression of time series, by cross-fitting."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import Summary, choice, flag, number, positive_integer, seed_of
from tsrnn.data import quote
from tsrnn.inference._covariance import COV_TYPES, DESCRIPTIONS, Covariance, score_covariance
from tsrnn.inference._history import History, check_length, check_rank, read_columns, whole_number
from tsrnn.inference._nuisance import checked_model, cross_fit

WIDTH = 78
LEAST_VARIATION = 1e-6  # least deviation of a regressor's residuals, relative to the regressor's


class PartiallyLinear(BaseEstimator):
    r"""Coefficients of a partially linear regression of time series.

    .. math:: y_t = x_t' \beta + f(H_t) + e_t, \qquad x_t = m(H_t) + v_t, \qquad
        E[e_t \mid x_t, H_t] = 0, \quad E[v_t \mid H_t] = 0,

    with the history :math:`H_t` of `n_lags` lags of y, X and controls, and unknown functions f and
    m. For each of several contiguous blocks of rows, y and each column of X are regressed on the
    history in the rows outside the block and `gap` rows on either side. Then the residuals of y in
    the blocks are regressed on those of X (Robinson 1988, Chernozhukov et al. 2018),

    .. math:: \hat\beta = \Big(\sum_t \hat v_t \hat v_t'\Big)^{-1} \sum_t \hat v_t
        \big(y_t - \hat\ell(H_t)\big), \qquad \hat v_t = x_t - \hat m(H_t).

    Parameters
    ----------
    model : regressor, list of regressors or None
        Nuisance regression of scikit-learn, or a `tsrnn.erm.ParaRNNRegressor`, which takes the
        history as a sequence. Several are stacked, see `left_out_residuals`. None takes ridge
        regression and gradient boosted trees.
    n_lags : int, default 4
        p, at least 1.
    n_folds : int, default 5
        Number of blocks. 1 takes in-sample residuals and adds the lags to the last regression,
        which is right only for models of a fixed dimension: with ``LinearRegression()`` it is
        ordinary least squares.
    gap : int, optional
        Rows left out on either side of a block; by default `n_lags`, so that the history of no
        training row contains a row of the block.
    contemporaneous : bool, default False
        Take lags 0 to p - 1 of the controls in place of 1 to p: for controls to which x may react
        within a period and that do not react to x.
    cov_type : {"EWC", "HAC", "fixed-b", "HC"}, default "EWC"
        Equally weighted cosines with Student's t (Lazarus et al. 2018); Newey and West's estimate
        with normal, or with fixed-b critical values (Kiefer and Vogelsang 2005); or White's, for
        serially uncorrelated scores.
    bandwidth : int, optional
        Lags of "HAC" and "fixed-b" (statsmodels' ``maxlags``), or number of cosines; by default
        Newey and West's (1994), :math:`1.3 \sqrt T` and :math:`0.41\, T^{2/3}`.
    random_state : int, numpy random generator or None
        Seed of models whose own `random_state` is None.
    n_jobs : int, optional
        Processes for the blocks.

    Attributes
    ----------
    params_, bse_, tvalues_, pvalues_ : Series
        Estimates, standard errors, t-statistics and two-sided p-values by column of X.
    nobs_ : int
        Rows of the last regression, T - `n_lags`.
    resid_ : Series
        Residuals of the last regression.
    residuals_ : DataFrame
        Residuals of y and of the columns of X on the history.
    r2_ : Series
        Share of the variance of y and the columns of X that the nuisance explains out of block, or
        in sample without blocks; negative if it is worse than the mean.
    inflation_ : Series
        Factor of the standard errors for the effective degrees of freedom of the nuisances.
    cov_type_, bandwidth_ : str, int
    history_names_ : list of str

    Raises
    ------
    TypeError, ValueError
        In `fit`, if an argument is not legal; if data are missing, constant or collinear; if the
        history predicts a column of X; or if there are too few rows, with the number needed.

    Notes
    -----
    The interval is asymptotic. It assumes stationary, weakly dependent series; an e that x and the
    history do not predict, so that the history must be long enough; an x that the history does not
    predict without error; and well-estimated nuisances, with a product of their errors that is
    small relative to :math:`T^{-1/2}`. The last cannot be checked, and fails in short series or
    with poor nuisances: compare `r2_` of several models. Measured coverage is in the guide.

    Standard errors of the last regression are multiplied by `inflation_`. Nuisance errors add as
    much variance as their degrees of freedom in regressors would add to least squares: a
    second-order term, but up to a third in a few hundred rows. Effective degrees of freedom follow
    from errors out of block and in sample (Efron 2004).

    The instrumental variable form of the score, with :math:`x_t` in place of the second
    :math:`\hat v_t` and f estimated as :math:`\hat\ell - \hat\beta' \hat m`, has the same solution.

    References
    ----------
    Chernozhukov, V., Chetverikov, D., Demirer, M., Duflo, E., Hansen, C., Newey, W. and Robins, J.
    (2018). Double/debiased machine learning for treatment and structural parameters. The
    Econometrics Journal 21(1), C1-C68.

    Efron, B. (2004). The estimation of prediction error: covariance penalties and
    cross-validation. Journal of the American Statistical Association 99(467), 619-632.

    Lazarus, E., Lewis, D. J., Stock, J. H. and Watson, M. W. (2018). HAR inference:
    recommendations for practice. Journal of Business & Economic Statistics 36(4), 541-559.

    Robinson, P. M. (1988). Root-N-consistent semiparametric regression. Econometrica 56(4),
    931-954.

    Semenova, V., Goldman, M., Chernozhukov, V. and Taddy, M. (2023). Inference on heterogeneous
    treatment effects in high-dimensional dynamic panels under weak dependence. Quantitative
    Economics 14(2), 471-510.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.inference import PartiallyLinear
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=200), np.zeros(200)
    >>> for t in range(1, 200):
    ...     y[t] = 0.5 * x[t] + 0.4 * y[t - 1] + rng.normal()
    >>> model = PartiallyLinear(LinearRegression(), n_lags=2).fit(y, x)
    >>> model.params_.round(2).to_dict()
    {'x': 0.46}
    >>> model.conf_int().round(2).to_numpy().tolist()
    [[0.27, 0.65]]
    """

    def __init__(
        self,
        model: Any = None,
        *,
        n_lags: int = 4,
        n_folds: int = 5,
        gap: int | None = None,
        contemporaneous: bool = False,
        cov_type: str = "EWC",
        bandwidth: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.n_lags = n_lags
        self.n_folds = n_folds
        self.gap = gap
        self.contemporaneous = contemporaneous
        self.cov_type = cov_type
        self.bandwidth = bandwidth
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, y: Any, X: Any, controls: Any = None) -> Self:
        """Estimate the coefficients.

        Parameters
        ----------
        y : Series or array of shape (T,)
            In time order, a row for each period.
        X : Series, DataFrame or array of shape (T,) or (T, k)
            Regressors whose coefficients are estimated.
        controls : Series, DataFrame or array, optional
            Further variables of the history.

        Returns
        -------
        self
        """
        settings = checked_settings(self)
        outcome, regressors, frame, current = read_variables(y, X, controls, settings)
        check_rank(regressors, "X")
        n_lags, n_folds, gap = settings["n_lags"], settings["n_folds"], settings["gap"]
        k = regressors.shape[1] + 1 + (n_lags * frame.shape[1] if n_folds == 1 else 0)
        check_length(len(frame), n_lags, 0, n_folds, gap, k)
        history = History.of(frame, n_lags, current=current)

        # Out-of-block residuals of y and of each regressor on the history.
        targets = pd.concat([outcome, regressors], axis=1).iloc[history.rows]
        crossed = cross_fit(
            settings["model"], history.windows, targets.to_numpy(), n_folds=n_folds, gap=gap,
            random_state=settings["seed"], n_jobs=self.n_jobs,
        )  # fmt: skip
        residuals = pd.DataFrame(crossed.residuals, targets.index, targets.columns)
        fit = regress_residuals(
            crossed.residuals[:, 0], crossed.residuals[:, 1:],
            history.table if n_folds == 1 else None,
        )  # fmt: skip
        check_variation(fit.regressors, regressors)
        # Errors of the two nuisances enter as a product: take the geometric mean of the factors of
        # y and the regressor, and the root for standard errors.
        widths = (crossed.inflation[1:] * crossed.inflation[0]) ** 0.25
        self._scores = fit.scores * widths, k
        covariance = score_covariance(*self._scores, settings["cov_type"], self.bandwidth)

        names = pd.Index(regressors.columns)
        self.params_ = pd.Series(fit.params, names, name="params")
        self.bse_ = pd.Series(covariance.bse, names, name="bse")
        self.tvalues_ = (self.params_ / self.bse_).rename("tvalues")
        self.pvalues_ = pd.Series(covariance.pvalues(self.tvalues_.to_numpy()), names,
                                  name="pvalues")  # fmt: skip
        self.inflation_ = pd.Series(widths, names, name="inflation")
        self.nobs_ = len(history)
        self.residuals_ = residuals
        self.resid_ = pd.Series(fit.resid, residuals.index, name="resid")
        self.r2_ = (1 - (residuals**2).mean() / targets.var(ddof=0)).rename("r2")
        self.cov_type_, self.bandwidth_ = covariance.cov_type, covariance.bandwidth
        self.history_names_ = list(history.names)
        part = "left out" if n_folds > 1 else "within"
        self._page = {
            "Dep. Variable": outcome.columns[0],
            "Nuisance": model_name(self.model),
            "Lags": n_lags,
            "Blocks, gap": f"{n_folds}, {gap}" if n_folds > 1 else "none",
            "No. Observations": len(history),
            "Covariance Type": covariance.cov_type,
            f"R2 {part}, y": f"{self.r2_.iloc[0]:.3f}",
            f"R2 {part}, x": f"{self.r2_.iloc[1:].mean():.3f}",
        }
        return self

    def _covariance(self, cov_type: str | None) -> Covariance:
        check_is_fitted(self, "params_")
        if cov_type is None or cov_type == self.cov_type_:
            return score_covariance(*self._scores, self.cov_type_, self.bandwidth_ or None)
        return score_covariance(*self._scores, choice("cov_type", cov_type, COV_TYPES), None)

    def cov_params(self, cov_type: str | None = None) -> pd.DataFrame:
        """Covariance matrix of the estimates.

        Parameters
        ----------
        cov_type : str, optional
            Another kind than in the fit, with its default bandwidth.

        Returns
        -------
        DataFrame
        """
        matrix = self._covariance(cov_type).matrix
        return pd.DataFrame(matrix, self.params_.index, self.params_.index)

    def conf_int(self, alpha: float = 0.05, cov_type: str | None = None) -> pd.DataFrame:
        """Confidence intervals of level 1 - alpha.

        Parameters
        ----------
        alpha : float, default 0.05
        cov_type : str, optional
            As in `cov_params`.

        Returns
        -------
        DataFrame
            Columns ``lower`` and ``upper``.
        """
        covariance = self._covariance(cov_type)
        width = covariance.critical_value(checked_alpha(alpha)) * covariance.bse
        return pd.DataFrame({"lower": self.params_ - width, "upper": self.params_ + width})

    def summary(self, alpha: float = 0.05) -> InferenceSummary:
        """Page with the estimates; print it.

        Parameters
        ----------
        alpha : float, default 0.05
            Intervals have level 1 - alpha.

        Returns
        -------
        InferenceSummary
        """
        intervals = self.conf_int(alpha)
        table = pd.DataFrame(
            {
                "coef": self.params_,
                "std err": self.bse_,
                "t": self.tvalues_,
                "P>|t|": self.pvalues_,
                f"[{alpha / 2:.3g}": intervals["lower"],
                f"{1 - alpha / 2:.3g}]": intervals["upper"],
            }
        )
        notes = [
            f"Covariance: {DESCRIPTIONS[self.cov_type_].format(self.bandwidth_)}.",
            "Intervals are asymptotic: they assume that the history is long enough and that the "
            "nuisance functions are estimated well.",
        ]
        return InferenceSummary("Partially Linear Regression Results", self._page, table, notes)


@dataclass(frozen=True, eq=False)
class ResidualFit:
    """Regression of residuals on residuals: estimates and their influence by row."""

    params: np.ndarray
    resid: np.ndarray
    regressors: np.ndarray
    scores: np.ndarray


def regress_residuals(
    outcome: np.ndarray, regressors: np.ndarray, table: np.ndarray | None
) -> ResidualFit:
    r"""Least squares of residuals, given a constant and the lags of `table`, if any.

    The sum of the scores :math:`\psi_t = (\hat V' \hat V)^{-1} \hat v_t \hat u_t` is the error of
    the estimates.
    """
    constant = np.ones((len(outcome), 1))
    exog = constant if table is None else np.column_stack([constant, table])
    both = np.column_stack([outcome, regressors])
    # By Frisch and Waugh; lstsq allows collinear lags.
    scale = np.sqrt((exog**2).mean(axis=0))
    scale[scale == 0] = 1
    both = both - exog / scale @ np.linalg.lstsq(exog / scale, both, rcond=None)[0]
    y, v = both[:, 0], both[:, 1:]
    params = np.linalg.lstsq(v, y, rcond=None)[0]
    resid = y - v @ params
    scores = (v * resid[:, None]) @ np.linalg.pinv(v.T @ v)
    return ResidualFit(params, resid, v, scores)


def check_variation(residuals: np.ndarray, regressors: pd.DataFrame) -> None:
    """Raise a ValueError for regressors that the history predicts, alone or with the others."""
    spread = residuals.std(axis=0) / regressors.std(ddof=0).to_numpy()
    predicted = list(regressors.columns[spread < LEAST_VARIATION])
    if predicted:
        raise ValueError(
            f"the history predicts {predicted} without error, so that nothing of them is left to "
            "estimate a coefficient from. Leave them out, or leave what they are made of out of "
            "controls"
        )
    check_rank(pd.DataFrame(residuals, columns=regressors.columns), "what the history leaves of X")


def checked_settings(estimator: Any, ahead: int = 0) -> dict[str, Any]:
    """Check the arguments that the estimators share."""
    n_lags = positive_integer("n_lags", estimator.n_lags)
    n_folds = positive_integer("n_folds", estimator.n_folds)
    if estimator.bandwidth is not None:
        whole_number("bandwidth", estimator.bandwidth, 1)
    if estimator.model is None and n_folds == 1:
        raise ValueError(
            "n_folds=1, residuals within the sample, needs a model of a fixed dimension such as "
            "LinearRegression(); got model=None, which has boosted trees"
        )
    gap = n_lags + ahead if estimator.gap is None else whole_number("gap", estimator.gap, 0)
    return {
        "model": checked_model(estimator.model),
        "n_lags": n_lags,
        "n_folds": n_folds,
        "gap": gap if n_folds > 1 else 0,
        "contemporaneous": flag("contemporaneous", estimator.contemporaneous),
        "cov_type": choice("cov_type", estimator.cov_type, COV_TYPES),
        "seed": seed_of(estimator.random_state) % 2**31,  # scikit-learn's upper limit
    }


def read_variables(
    y: Any, X: Any, controls: Any, settings: dict[str, Any], single: bool = True
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """Outcomes, regressors, all variables, and names of contemporaneous controls."""
    outcome = read_columns("y", y, "y")
    if single and outcome.shape[1] != 1:
        raise ValueError(f"y must have one column; got {quote(list(outcome.columns))}")
    regressors = read_columns("X", X, "x", outcome.index)
    frames = [outcome, regressors]
    current: tuple[str, ...] = ()
    if controls is not None:
        frames.append(read_columns("controls", controls, "control", outcome.index))
        if settings["contemporaneous"]:
            current = tuple(frames[-1].columns)
    elif settings["contemporaneous"]:
        raise ValueError("contemporaneous=True is of controls; got controls=None")
    frame = pd.concat(frames, axis=1)
    if frame.columns.has_duplicates:
        repeated = list(frame.columns[frame.columns.duplicated()])
        raise ValueError(
            f"columns of y, X and controls must have distinct names; got {repeated} twice. Rename "
            "them, or leave what is in y or X out of controls"
        )
    return outcome, regressors, frame, current


def checked_alpha(alpha: Any) -> float:
    """Check a level of significance between 0 and 1."""
    return number("alpha", alpha, lowest=0.0, open_=True, highest=0.999)


def model_name(model: Any) -> str:
    """Class name of a nuisance model, or of several."""
    if model is None:
        return "ridge, boosted trees"
    models = model if isinstance(model, list | tuple) else [model]
    names = [
        type(candidate[-1] if isinstance(candidate, Pipeline) else candidate).__name__
        for candidate in models
    ]
    return textwrap.shorten(", ".join(names), 24, placeholder="...")


@dataclass(frozen=True, eq=False, repr=False)
class InferenceSummary(Summary):
    """Text and table of estimates with standard errors; print it.

    Attributes
    ----------
    title : str
    model : dict
        Facts by name.
    params : DataFrame
        A row for each estimate.
    notes : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.inference import PartiallyLinear
    >>> y, x = np.random.default_rng(0).normal(size=(2, 100))
    >>> page = PartiallyLinear(LinearRegression(), n_lags=1).fit(y, x).summary()
    >>> list(page.params.columns)
    ['coef', 'std err', 't', 'P>|t|', '[0.025', '0.975]']
    """

    title: str
    model: dict[str, object]
    params: pd.DataFrame
    notes: list[str]

    def as_text(self) -> str:
        """Page as it is printed."""
        names = [" ".join(map(str, np.atleast_1d(label))) for label in self.params.index]
        stub = max(14, *(len(name) + 2 for name in names))
        columns = [f"{column:>10}" for column in self.params]
        lines = [f"{'':<{stub}}" + "".join(columns)]
        lines.append("-" * len(lines[0]))
        for name, (_, row) in zip(names, self.params.iterrows(), strict=True):
            cells = [
                f"{value:.0f}" if column == "horizon" else f"{value:.4f}" if column == "coef"
                else f"{value:.3f}" for column, value in row.items()
            ]  # fmt: skip
            lines.append(f"{name:<{stub}}" + "".join(f"{cell:>10}" for cell in cells))
        width = max(WIDTH, len(lines[0]))
        facts = [f"{key}:" for key in self.model], [str(value) for value in self.model.values()]
        cells = [f"{key:<17}{value:>20}" for key, value in zip(*facts, strict=True)]
        half = -(-len(cells) // 2)
        right = [*cells[half:], ""]
        head = [f"{a}    {b}".rstrip() for a, b in zip(cells[:half], right, strict=False)]
        rule = "=" * width
        page = [self.title.center(width).rstrip(), rule, *head, rule, *lines, rule, "Notes:"]
        for i, note in enumerate(self.notes, 1):
            page += textwrap.wrap(f"[{i}] {note}", width, subsequent_indent="    ")
        return "\n".join(page)
