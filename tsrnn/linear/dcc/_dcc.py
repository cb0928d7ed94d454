"""Constant and dynamic conditional correlation."""

from __future__ import annotations

from typing import Any, ClassVar

from tsrnn.contract import Arguments, FittedData, flag, with_shared_arguments
from tsrnn.linear._arguments import order_of
from tsrnn.linear._family import Family
from tsrnn.linear.dcc._conditional import ConditionalCorrelation
from tsrnn.linear.dcc._family import CCCFamily, DCCFamily
from tsrnn.linear.dcc._specification import Order, correlation_specification


@with_shared_arguments
class DCC(ConditionalCorrelation):
    r"""GARCH variances with dynamic conditional correlations, one panel of series or many.

    .. math::

        y_t = \mu_t + D_t z_t, \qquad \operatorname{Var}(z_t \mid \text{past}) = R_t =
        \operatorname{diag}(Q_t)^{-1/2} Q_t \operatorname{diag}(Q_t)^{-1/2},

        Q_t = \Bigl(1 - \sum_i a_i - \sum_j b_j\Bigr) S + \sum_{i=1}^p a_i u_{t-i} u_{t-i}'
        + \sum_{j=1}^q b_j Q_{t-j}

    with univariate GARCH or GJR variances in :math:`D_t^2` and u = z (Engle, 2002), or, if
    corrected, :math:`u_t = \operatorname{diag}(Q_t)^{1/2} z_t` (Aielli, 2013). Q is a linear
    recurrent network with the input vech(u u'), one decay for all its units. Before the first
    observation u u' and Q are S.

    Estimated in steps: the variances equation by equation by quasi maximum likelihood, all
    equations of all series in one batch; S as the mean of u u' rescaled to a unit diagonal, its
    elements :math:`\rho_{ij}`; a and b by maximum likelihood, Newton's method with exact
    derivatives, S moving with them if corrected.

    Parameters
    ----------
    order : tuple of int, default (1, 1)
        p lags of u u' (a) and q lags of Q (b).
    garch_order : tuple of int, default (1, 1)
        p lags of squared residuals (alpha, and gamma) and q lags of the variance (beta).
    corrected : bool, default False
        Aielli's model, in which S is what its estimator estimates; in Engle's it is not quite.
    vol, mean, mean_order, coint_rank, initial_variance, stationary, cov_type
        As in `CCC`.
    random_state, verbose
        As in all forecasters.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As in all linear models. DCC takes no exogenous columns.

    Notes
    -----
    The bounds are a, b >= 0 and their sum at most one. On a bound there is no standard error,
    and where a is zero b is not identified; `lr_test` against a CCC has no chi-square limit for
    that reason, `constant_correlation_test` has one.

    The log-likelihood is that of all variables together. Intervals of forecasts are normal
    with the variance of the forecast error: right for the first step if the model is, too thin
    in the tails after it. They take the parameters as known.

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
    r"""GARCH variances with constant conditional correlations, one panel of series or many.

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
        Mean of all targets. A constant is estimated with the variance of its equation; the
        other two by least squares before the variances. "vecm" is an error-correction mean,
        whose cointegrating vectors, Johansen's, are the parameters ``beta.ec1.b`` without standard
        errors.
    mean_order : int, default 1
        Lags of "var", lagged differences of "vecm".
    coint_rank : int, default 1
        Cointegrating relations of "vecm".
    initial_variance : {"backcast", "sample"} or float
        Variance before the first observation, as in `GARCH`.
    stationary : bool, default True
        Hold the persistence of a variance at one where the likelihood rises beyond it.
    cov_type : {"robust", "hessian"}
        Standard errors that allow for all steps of the estimation and for other distributions
        than the normal (Engle and Sheppard, 2001), or those of each step by itself.
    random_state, verbose
        As in all forecasters.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As in all linear models. CCC takes no exogenous columns.

    Notes
    -----
    The log-likelihood is that of all variables together. Intervals of forecasts are normal
    with the variance of the forecast error: right for the first step if the model is, too thin
    in the tails after it. They take the parameters as known.

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
