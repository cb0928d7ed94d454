"""Constant and dynamic conditional correlation."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
from scipy.stats import chi2

from tsrnn.contract import Arguments, FittedData, flag, positive_integer, with_shared_arguments
from tsrnn.linear._arguments import order_of
from tsrnn.linear._family import Family
from tsrnn.linear._matrices import MatrixForecaster
from tsrnn.linear.dcc._family import CCCFamily, CorrelationFamily, DCCFamily
from tsrnn.linear.dcc._specification import Order, correlation_specification
from tsrnn.linear.garch._inference import transition
from tsrnn.linear.garch._specification import SKIPPING_MEANS


@with_shared_arguments
class ConditionalCorrelation(MatrixForecaster):
    """Base of `CCC` and `DCC`, whose arguments are documented there.

    `order` is that of the variances in a CCC, of the correlations in a DCC.
    """

    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

    def __init__(
        self,
        order: tuple[int, int] = (1, 1),
        vol: str = "garch",
        mean: str = "constant",
        mean_order: int = 1,
        coint_rank: int = 1,
        initial_variance: str | float = "backcast",
        stationary: bool = True,
        *,
        cov_type: str = "robust",
        **shared: Any,
    ) -> None:
        super().__init__(cov_type=cov_type, **shared)
        self.order = order
        self.vol = vol
        self.mean = mean
        self.mean_order = mean_order
        self.coint_rank = coint_rank
        self.initial_variance = initial_variance
        self.stationary = stationary

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of variances and correlations, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "variance", shape (S n, r, r): companion matrices of variance forecasts, as in `GARCH`,
            series by series and target by target. With dynamic correlations also "correlation",
            shape (S, r, r): companion matrices of :math:`a_i + b_i`, by which forecasts of Q
            return to its mean.
        """
        estimates = self.estimates_
        spec = cast(CorrelationFamily, self.fitted_.family).spec
        parts = spec.parts(estimates.params[estimates.fitted])
        blocks = {"variance": transition(spec.step.model(), parts.variance_rows)[0]}
        p, q = parts.a.shape[1], parts.b.shape[1]
        if p:
            matrices = np.tile(np.eye(max(p, q), k=1), (len(parts.a), 1, 1))
            matrices[:, :p, 0] += parts.a
            matrices[:, :q, 0] += parts.b
            blocks["correlation"] = matrices
        return [blocks]

    def constant_correlation_test(self, lags: int = 5) -> pd.DataFrame:
        r"""Test of constant against dynamic correlation (Engle and Sheppard, 2001).

        Standardised and decorrelated residuals :math:`\epsilon` have products
        :math:`\epsilon_i \epsilon_j`, which are regressed on a constant and their own lags, all
        pairs together. Under constant correlations all coefficients are zero.

        Parameters
        ----------
        lags : int, default 5

        Returns
        -------
        DataFrame
            Columns ``statistic``, ``df`` = lags, ``p_value``; a row for each series.

        Notes
        -----
        Engle and Sheppard compare the statistic with a chi-square of lags + 1 degrees of freedom.
        Residuals are decorrelated by their own sample correlations, so that the products sum to
        zero and the constant takes no degree of freedom: `lags` degrees are left. With lags + 1
        the test rejects too rarely: at a level of 5 percent in 2.5 percent of samples with five
        lags, in 1.3 percent with one lag.
        """
        lags = positive_integer("lags", lags)
        panel = self._data(None)
        paths = self._family_of_matrices.paths(panel, self.fitted_.units_of(panel.ids))
        statistics = np.full(panel.n_series, np.nan)
        for i, path in paths.items():
            scale = np.sqrt(np.diagonal(path.covariances, axis1=1, axis2=2))
            z = path.errors / scale
            z = z[~np.isnan(z).any(1)]  # complete rows, treated as consecutive
            if len(z) > 2 * lags:
                statistics[i] = constancy_statistic(z, lags)
        columns = {"statistic": statistics, "df": lags, "p_value": chi2.sf(statistics, lags)}
        return pd.DataFrame(columns, index=self.units_)

    def _skips_missing(self, arguments: Arguments) -> bool:
        return arguments.mean in SKIPPING_MEANS


@with_shared_arguments
class DCC(ConditionalCorrelation):
    r"""GARCH variances with dynamic conditional correlations, of one multivariate series or many.

    .. math::

        y_t = \mu_t + D_t z_t, \qquad \operatorname{Var}(z_t \mid \text{past}) = R_t =
        \operatorname{diag}(Q_t)^{-1/2} Q_t \operatorname{diag}(Q_t)^{-1/2},

        Q_t = \Bigl(1 - \sum_i a_i - \sum_j b_j\Bigr) S + \sum_{i=1}^p a_i u_{t-i} u_{t-i}'
        + \sum_{j=1}^q b_j Q_{t-j}

    with univariate GARCH or GJR variances in :math:`D_t^2` and u = z (Engle, 2002), or, if
    corrected, :math:`u_t = \operatorname{diag}(Q_t)^{1/2} z_t` (Aielli, 2013). Q is a linear
    recurrent network with input vech(u u') and the same decay for every element. Before the
    first observation, u u' and Q are S.

    Estimation has three steps. Variances: equation by equation by quasi maximum likelihood, all
    equations of all series in one batch. S: the mean of u u' rescaled to a unit diagonal, with
    elements :math:`\rho_{ij}`. a and b: maximum likelihood by Newton's method with exact
    derivatives; in the corrected model S changes with them.

    Parameters
    ----------
    order : tuple of int, default (1, 1)
        p lags of u u' (a) and q lags of Q (b).
    garch_order : tuple of int, default (1, 1)
        p lags of squared residuals (alpha, and gamma) and q lags of the variance (beta).
    corrected : bool, default False
        Aielli's model, in which the estimator of S is consistent; in Engle's it is not quite.
    vol, mean, mean_order, coint_rank, initial_variance, stationary, cov_type
        As in `CCC`.
    intervals : {"model", "conformal"}
        Intervals of the model, or conformal ones from rolling forecasts of the last rows.
    missing : {"auto", "error", "interpolate", "keep"}
        "keep", and "auto" with a constant or zero mean: variances skip missing values as in
        `GARCH`, the likelihood of a row is that of its observed values, and a row with a missing
        value replaces :math:`u u'` by Q.
    horizon, target, known_ahead, static, calendar, holidays, id_col, time_col, freq
        As in all linear models. DCC takes no exogenous columns.
    strict, support, random_state, verbose
        As in all linear models.

    Notes
    -----
    Bounds are a, b >= 0 and a sum of at most one. A parameter on a bound has no standard error.
    With a = 0, b is not identified; `lr_test` against a CCC has therefore no chi-square limit,
    `constant_correlation_test` has one.

    The log-likelihood is the joint one of all variables. Intervals of forecasts are normal with the
    variance of the forecast error: exact for the first step if the model is right, later with
    tails that are too thin. They take the parameters as known.

    References
    ----------
    Aielli, G. P. (2013). Dynamic conditional correlation: on properties and estimation.
    Engle, R. (2002). Dynamic conditional correlation: a simple class of multivariate
    generalized autoregressive conditional heteroskedasticity models.
    Engle, R., Sheppard, K. (2001). Theoretical and empirical properties of dynamic conditional
    correlation multivariate GARCH.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.linear import DCC
    >>> returns = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 2)), columns=["a", "b"])
    >>> DCC(garch_order=(1, 0)).fit(returns).params_.columns.tolist()[-3:]
    ['rho.a.b', 'a[1]', 'b[1]']
    """

    column_name: ClassVar[str] = "DCC"
    family_class: ClassVar[type[Family]] = DCCFamily

    def __init__(
        self,
        order: tuple[int, int] = (1, 1),
        garch_order: tuple[int, int] = (1, 1),
        corrected: bool = False,
        **shared: Any,
    ) -> None:
        super().__init__(order, **shared)
        self.garch_order = garch_order
        self.corrected = corrected

    def _family(self, arguments: Arguments, data: FittedData) -> DCCFamily:
        p, q = order_of("order", arguments.order, "p lags of outer products and q of Q")
        order = Order(p, q, flag("corrected", arguments.corrected))
        return DCCFamily(correlation_specification(arguments, data, "garch_order", order))


class CCC(ConditionalCorrelation):
    r"""GARCH variances with constant conditional correlations, of one multivariate series or many.

    .. math::

        y_t = \mu_t + e_t, \qquad e_t = D_t z_t, \qquad
        \operatorname{Var}(z_t \mid \text{past}) = R, \qquad
        D_t^2 = \operatorname{diag}(h_{1t}, \dots, h_{nt})

    with univariate GARCH(p, q) or GJR variances :math:`h_{it}` (Bollerslev, 1990). The variances
    are estimated equation by equation by quasi maximum likelihood, all equations of all series
    in one batch, and R by the correlations :math:`\rho_{ij}` of the standardised residuals z.

    Parameters
    ----------
    order : tuple of int, default (1, 1)
        p lags of squared residuals (alpha, and gamma) and q lags of the variance (beta).
    vol : {"garch", "gjr"}
    mean : {"constant", "zero", "var", "vecm"}
        Mean of all targets. A constant is estimated with the variance of its equation, "var" and
        "vecm" by least squares before the variances. "vecm" is an error-correction mean; its
        cointegrating vectors by Johansen are the parameters ``beta.ec1.b``, without standard
        errors.
    mean_order : int, default 1
        Lags of "var", lagged differences of "vecm".
    coint_rank : int, default 1
        Cointegrating relations of "vecm".
    initial_variance : {"backcast", "sample"} or float
        Variance before the first observation, as in `GARCH`.
    stationary : bool, default True
        Hold the persistence of a variance at one if the likelihood rises beyond it.
    cov_type : {"robust", "hessian"}
        Standard errors that account for all steps of the estimation and for distributions other
        than the normal (Engle and Sheppard, 2001), or of each step by itself.
    intervals : {"model", "conformal"}
        Intervals of the model, or conformal ones from rolling forecasts of the last rows.
    missing : {"auto", "error", "interpolate", "keep"}
        As in `DCC`: variances skip missing values, and the likelihood of a row is that of its
        observed values.
    horizon, target, known_ahead, static, calendar, holidays, id_col, time_col, freq
        As in all linear models. CCC takes no exogenous columns.
    strict, support, random_state, verbose
        As in all linear models.

    Notes
    -----
    The log-likelihood is the joint one of all variables. Intervals of forecasts are normal with the
    variance of the forecast error: exact for the first step if the model is right, later with
    tails that are too thin. They take the parameters as known.

    References
    ----------
    Bollerslev, T. (1990). Modelling the coherence in short-run nominal exchange rates: a
    multivariate generalized ARCH model.
    Engle, R., Sheppard, K. (2001). Theoretical and empirical properties of dynamic conditional
    correlation multivariate GARCH.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.linear import CCC
    >>> returns = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 2)), columns=["a", "b"])
    >>> CCC(order=(1, 0)).fit(returns).params_.columns.tolist()[-3:]
    ['omega.b', 'alpha[1].b', 'rho.a.b']
    """

    column_name: ClassVar[str] = "CCC"
    family_class: ClassVar[type[Family]] = CCCFamily

    def _family(self, arguments: Arguments, data: FittedData) -> CCCFamily:
        spec = correlation_specification(arguments, data, "order", Order(0, 0, False))
        return CCCFamily(spec)


def constancy_statistic(z: np.ndarray, lags: int) -> float:
    r"""Statistic of standardised residuals (T, n), chi-square with `lags` degrees of freedom.

    With :math:`\epsilon_t = R^{-1/2} z_t` and Y the products :math:`\epsilon_i \epsilon_j` of
    all pairs, stacked, the regression :math:`Y_t = \delta_0 + \sum_l \delta_l Y_{t-l}` has
    :math:`\delta = 0` under constant correlations; the statistic is
    :math:`\hat\delta' X' X \hat\delta / \hat\sigma^2`. R is the sample correlation of z, so that Y
    sums to zero: the constant adds nothing to the statistic, and no degree of freedom.
    """
    root = np.sqrt((z**2).mean(0))
    standard = z / root
    values, vectors = np.linalg.eigh(standard.T @ standard / len(z))
    whitened = standard @ (vectors / np.sqrt(values)) @ vectors.T
    rows, columns = np.triu_indices(z.shape[1], 1)
    products = whitened[:, rows] * whitened[:, columns]
    steps = len(products)
    y = products[lags:].ravel()
    regressors = [np.ones_like(y)]
    regressors += [products[lags - i : steps - i].ravel() for i in range(1, lags + 1)]
    x = np.stack(regressors, 1)
    delta = np.linalg.lstsq(x, y, rcond=None)[0]
    fitted = x @ delta
    variance = ((y - fitted) ** 2).sum() / (len(y) - len(delta))
    return float(fitted @ fitted / variance)
