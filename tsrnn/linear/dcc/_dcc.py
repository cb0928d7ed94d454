"""Constant and dynamic conditional correlation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tsrnn.contract import flag, with_shared_arguments
from tsrnn.layers import ParaRNN
from tsrnn.linear._arguments import order_of
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear.dcc._conditional import ConditionalCorrelation
from tsrnn.linear.dcc._specification import Order

_ROUNDING = 1e-8  # of coefficients read from a layer that should be zero


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
    corrected : bool, default False
        Aielli's model, in which S is what its estimator estimates; in Engle's it is not quite.
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

    def __init__(
        self,
        order: tuple[int, int] = (1, 1),
        garch_order: tuple[int, int] = (1, 1),
        vol: str = "garch",
        mean: str = "constant",
        mean_order: int = 1,
        coint_rank: int = 1,
        corrected: bool = False,
        initial_variance: str | float = "backcast",
        stationary: bool = True,
        *,
        cov_type: str = "robust",
        **shared: Any,
    ) -> None:
        super().__init__(cov_type=cov_type, **shared)
        self.order = order
        self.garch_order = garch_order
        self.vol = vol
        self.mean = mean
        self.mean_order = mean_order
        self.coint_rank = coint_rank
        self.corrected = corrected
        self.initial_variance = initial_variance
        self.stationary = stationary

    def _order(self) -> Order:
        p, q = order_of("order", self.arguments_.order, "p lags of outer products and q of Q")
        return Order(p, q, flag("corrected", self.arguments_.corrected))

    def _variance_order(self) -> tuple[int, int]:
        what = "p lags of squared residuals and q of the variance"
        return order_of("garch_order", self.arguments_.garch_order, what)

    def _own_name(self) -> str:
        order = self._order()
        return f"{'cDCC' if order.corrected else 'DCC'}({order.p}, {order.q})"

    def _facts(self, unit: int) -> dict[str, object]:
        parts = self._specification().parts(self.estimates_.params[[unit]])
        total, facts = parts.a.sum() + parts.b.sum(), super()._facts(unit)
        return facts | ({"Sum of a and b": f"{total:.4f}"} if np.isfinite(total) else {})

    def _recursion(self, unit: int) -> Recursion:
        """vech(Q), the lower triangle by columns, in vech(z z')."""
        spec = self._specification()
        if spec.order.corrected:
            raise ValueError(
                "a corrected DCC is no linear network: its input depends on Q. The DCC of Engle is"
            )
        parts = spec.parts(self.estimates_.params[[unit]])
        rows, columns = np.triu_indices(spec.n)
        target = parts.target[0][rows, columns]
        a, b, same = parts.a[0], parts.b[0], np.eye(len(target))
        r = max(len(a), len(b))
        equation = DifferenceEquation(
            padded(b, r)[:, None, None] * same,
            padded(a, r)[:, None, None] * same,
            (1 - a.sum() - b.sum()) * target,
        )
        return Recursion(equation, target, target)

    @classmethod
    def _outputs_of(cls, layer: ParaRNN) -> int:
        return layer.input_size

    @classmethod
    def _named(cls, equation: DifferenceEquation) -> dict[str, float]:
        lags = range(1, len(equation.recurrent) + 1)
        groups = (("a", equation.inputs), ("b", equation.recurrent))
        return {f"{name}[{i}]": values[i - 1, 0, 0] for name, values in groups for i in lags}


@with_shared_arguments
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

    def _order(self) -> Order:
        return Order(0, 0, False)

    def _variance_order(self) -> tuple[int, int]:
        return order_of(
            "order", self.arguments_.order, "p lags of squared residuals and q of the variance"
        )

    def _own_name(self) -> str:
        return "CCC"

    def _recursion(self, unit: int) -> Recursion:
        """Variances side by side, driven by squared residuals (and those below zero, if gjr)."""
        spec = self._specification()
        model = spec.step.model()
        rows = spec.parts(self.estimates_.params[[unit]]).variance[0]
        r, n, expected = model.n_vol, len(rows), model.vol.expected
        inputs = [
            [np.diag(lag) for lag in padded(rows[:, model.shock_coefficients(s)].T, r)]
            for s in range(len(expected))
        ]
        before = self.state_.arrays["presample"][unit]
        equation = DifferenceEquation(
            np.array([np.diag(lag) for lag in padded(rows[:, model.beta].T, r)]),
            np.concatenate(inputs, 2).reshape(r, n, -1),
            rows[:, model.omega],
        )
        past = [before * share for share in expected]
        return Recursion(equation, before, np.concatenate(past))

    @classmethod
    def _outputs_of(cls, layer: ParaRNN) -> int:
        """Number of inputs, or half of it if there is a second set for gamma."""
        count: int = layer.input_size
        return count if layer.hidden_size % count == 0 else count // 2

    @classmethod
    def _named(cls, equation: DifferenceEquation) -> dict[str, float]:
        recurrent, inputs, intercept = equation
        n, lags = len(intercept), range(1, len(recurrent) + 1)
        shocks = inputs.reshape(len(lags), n, -1, n).swapaxes(1, 2)
        diagonals = {"beta": recurrent} | {
            name: shocks[:, s] for s, name in enumerate(("alpha", "gamma")[: shocks.shape[1]])
        }
        for lag in np.concatenate(list(diagonals.values())):
            if np.abs(lag - np.diag(np.diag(lag))).max() > _ROUNDING:
                raise ValueError(
                    "a variance of this layer depends on another; VECMGARCH.from_rnn reads such. "
                    "A GJR model of two lags and more needs its readout, of shape (n, states)"
                )
        named = {}
        for k in range(n):
            named[f"omega.y{k + 1}"] = intercept[k]
            for name in (name for name in ("alpha", "gamma", "beta") if name in diagonals):
                named |= {f"{name}[{i}].y{k + 1}": diagonals[name][i - 1, k, k] for i in lags}
        return named
