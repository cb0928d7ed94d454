"""Vech model and its restrictions: family and estimator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd

from tsrnn.contract import (
    Arguments,
    FittedData,
    check_is_fitted,
    choice,
    flag,
    positive_integer,
    with_shared_arguments,
)
from tsrnn.data import Panel, quote
from tsrnn.linear._arguments import order_of
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear._covariance import SerialFamily
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import Arrays, Family, Units
from tsrnn.linear._hypotheses import COMMON_FACTORS, Restriction
from tsrnn.linear._matrices import Forecast, MatrixForecaster, SpecifiedFamily
from tsrnn.linear._mean import Mean
from tsrnn.linear._multivariate import companion
from tsrnn.linear.vech._filter import (
    CovarianceState,
    advance_vech,
    begin_vech,
    draw_vech,
    forecast_vech,
    impulse_vech,
)
from tsrnn.linear.vech._fit import PreparedSeries, Search, estimates_of, highest_maximum, samples
from tsrnn.linear.vech._inference import face_covariance, on_face
from tsrnn.linear.vech._likelihood import forecast_companion, persistence
from tsrnn.linear.vech._specification import Model, Specification, is_nested_kind
from tsrnn.linear.vech._structure import STRUCTURES, Linear, n_variables, natural


@dataclass(frozen=True)
class VECHFamily(SpecifiedFamily, SerialFamily):
    """Vech model of one structure at given orders."""

    spec: Specification

    @property
    def title(self) -> str:
        spec = self.spec
        name = "BEKK" if spec.kind == "bekk" else f"{spec.kind} vech"
        return f"{name}({spec.p}, {spec.q}), {spec.mean.kind} mean"

    @property
    def n_lags(self) -> int:
        return self.spec.mean.n_lags

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        n, pairs = self.n, self.n * (self.n + 1) // 2
        return {
            "history": (self.n_lags, n),
            "squares": (self.spec.p, pairs),
            "states": (self.spec.q, pairs),
        }

    @property
    def constant_shapes(self) -> dict[str, tuple[int, ...]]:
        pairs = self.n * (self.n + 1) // 2
        return {
            "presample": (pairs,),
            "factors": (len(self.spec.mean_names) + self.spec.factors.size,),
        }

    @property
    def conventions(self) -> dict[str, str]:
        return {
            "Distribution": "normal",
            "Constant": "targeted" if self.spec.targeting else "estimated",
            "Presample": "mean square",
        }

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[PreparedSeries | None, dict[int, str]]]:
        return samples(self.spec, panel, given)

    def search(self, sample: PreparedSeries, verbose: int) -> Search:
        return highest_maximum(self.spec, sample.prepared, {}, verbose)

    def given(self, sample: PreparedSeries, params: np.ndarray) -> np.ndarray:
        estimated, _ = self.spec.apart(params[0])
        return estimated / sample.prepared.units(self.spec.natural)

    def infer(
        self, sample: PreparedSeries, optimum: Search | np.ndarray
    ) -> tuple[Estimates, Arrays]:
        return estimates_of(self.spec, sample, optimum)

    def begin(self, history: np.ndarray, params: np.ndarray, constants: Arrays) -> Arrays:
        return begin_vech(self.spec, history, constants["presample"])._asdict()

    def run(
        self, values: np.ndarray, params: np.ndarray, constants: Arrays, state: Arrays
    ) -> tuple[np.ndarray, np.ndarray, Arrays]:
        path, end = advance_vech(self.model(params, constants), CovarianceState(**state), values)
        return path.errors, path.covariances, end._asdict()

    def draw_paths(
        self, z: np.ndarray, params: np.ndarray, constants: Arrays, state: Arrays
    ) -> np.ndarray:
        model, last = self.model(params, constants), CovarianceState(**state)
        return np.stack([draw_vech(model, last, innovations) for innovations in z])

    def forecasts(self, state: Arrays, units: Units, h: int) -> Forecast:
        models = [self.model(*units.unit(i)) for i in range(len(units.params))]
        model = Model(*(np.array(part) for part in zip(*models, strict=True)))
        return forecast_vech(model, CovarianceState(**state), h)

    def model(self, params: np.ndarray, constants: Arrays) -> Model:
        """Coefficients of a unit at parameters (k,)."""
        return self.spec.model(params, constants["presample"])

    def covariance(self, estimates: Estimates, constants: Arrays, kind: str) -> np.ndarray:
        result, k = super().covariance(estimates, constants, kind), len(self.spec.own_names)
        for i, factors in enumerate(constants["factors"]):
            if np.isfinite(factors).all() and on_face(self.spec, factors):
                unit = estimates.select(np.array([i])).first(k)
                result[i, :k, :k] = face_covariance(self.spec, unit, factors, kind)
        return result

    def facts(self, params: np.ndarray, constants: Arrays) -> dict[str, object]:
        if not np.isfinite(params).all():
            return {}
        return {"Spectral radius": f"{persistence(self.model(params, constants)):.4f}"}

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        if not isinstance(smaller, VECHFamily):
            return None
        spec, small = self.spec, smaller.spec
        lags = spec.p - small.p, spec.q - small.q
        nested = (
            min(lags) >= 0
            and is_nested_kind(small.kind, spec.kind)
            and set(small.mean_names) <= set(spec.mean_names)
            and not (spec.stationary and not small.stationary)
        )
        if not nested:
            return None
        reason = ""
        if small.relation_names != spec.relation_names:
            reason = "the number of cointegrating relations has Johansen's distribution"
        elif min(lags) > 0:
            reason = COMMON_FACTORS
        elif max(lags) > 0 and spec.kind != "scalar":
            reason = "coefficients of a lag more are positive semidefinite, and zero is their edge"
        elif spec.kind != small.kind and spec.kind != "bekk":
            reason = (
                f"coefficients of structure {small.kind!r} are on the edge of the positive "
                f"semidefinite ones of structure {spec.kind!r}"
            )
        return Restriction(boundary=sum(lags), reason=reason, known=spec.relation_names)

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        model, before = self.model(params, constants), constants["presample"]
        r = max(len(model.theta), len(model.phi))
        equation = DifferenceEquation(padded(model.phi, r), padded(model.theta, r), model.constant)
        return Recursion(equation, before, before)

    @classmethod
    def named(cls, equation: DifferenceEquation) -> dict[str, float]:
        r, size = equation.recurrent.shape[:2]
        full = natural("full", n_variables(size), r, r, targeting=False)
        values = (equation.intercept, *equation.inputs, *equation.recurrent)
        blocks = [block for block in full.blocks if isinstance(block, Linear)]  # all of them
        params = [block.params(value) for block, value in zip(blocks, values, strict=True)]
        return dict(zip(full.names, np.concatenate(params), strict=True))


@with_shared_arguments
class VECMGARCH(MatrixForecaster):
    r"""Multivariate GARCH in vech form: full, diagonal, scalar, or BEKK.

    .. math::

        y_t = \mu_t + e_t, \qquad \operatorname{Var}(e_t \mid \text{past}) = H_t, \qquad
        h_t = vech(H_t) = b + \sum_{i=1}^p \Theta_i\, vech(e_{t-i} e_{t-i}')
        + \sum_{j=1}^q \Phi_j\, h_{t-j}

    (Bollerslev, Engle and Wooldridge, 1988): a linear recurrent network with state h and input
    vech(e e') (Cai et al., 2026, section 2.1, call it VECM-GARCH; for GARCH(1, 1) also Zhao et
    al., 2024). "VECM" in the name is the vech model. The econometricians' VECM, the vector
    error-correction model, is a *mean*, given by ``mean="vecm"``.

    ============ ===============================================================================
    structure    H_t is positive semidefinite because
    ============ ===============================================================================
    "full"       b is a covariance matrix; Theta and Phi map X to :math:`\sum_k A_k' X A_k`
    "diagonal"   h_ij depends on lags of h_ij and e_i e_j only, with coefficients that form
                 positive semidefinite matrices
    "scalar"     Theta and Phi are nonnegative numbers
    "bekk"       :math:`H_t = C C' + \sum_i A_i' e e' A_i + \sum_j G_j' H_{t-j} G_j` (Engle and
                 Kroner, 1995), that is :math:`\Theta = D^+ (A' \otimes A') D`,
                 :math:`\Phi = D^+ (G' \otimes G') D`
    ============ ===============================================================================

    Fitted by Gaussian quasi maximum likelihood: Fisher scoring, then Newton's method with the exact
    Hessian. Starting values are the optima of simpler structures (scalar, diagonal BEKK, a lag
    less) and a fixed, widely spaced set. A fit is a function of the data alone. Mean and covariance
    are estimated jointly; cointegrating vectors of a "vecm" are estimated first, by Johansen, and
    held, as they converge faster. Before the first observation, vech(e e') and h are the mean of
    vech(e e') of least squares.

    Parameters
    ----------
    order : tuple of int, default (1, 1)
        p lags of e e' and q lags of H.
    structure : {"full", "diagonal", "scalar", "bekk"}, default "bekk"
    mean : {"zero", "constant", "var", "vecm"}, default "constant"
    mean_order : int, default 1
        Lags of "var", lagged differences of "vecm".
    coint_rank : int, default 1
        Cointegrating relations of "vecm".
    targeting : bool, default False
        Derive b from the other parameters, so that the stationary covariance is that of the
        least-squares residuals. Standard errors take this covariance as known, and b is not held
        positive semidefinite.
    stationary : bool, default False
        Keep the spectral radius of Theta + Phi below one.
    n_starts : int, default 48
        Number of starting values besides the optima of simpler structures: the most likely of a
        fixed set, which varies shocks, decays and the rank of the constant. `agreement_` counts how
        many of `starts_` reached the best optimum; starts that fall far behind are given up.
    cov_type : str, default "robust"
        Standard errors: the sandwich of quasi maximum likelihood, "hessian", "opg",
        "information" or "bollerslev-wooldridge".
    random_state : int, numpy random generator or None
        Seed of simulated paths. Fits do not depend on it.
    intervals : {"model", "conformal"}
        Intervals of the model, or conformal ones from rolling forecasts of the last rows.
    horizon, target, known_ahead, static, calendar, holidays, id_col, time_col, freq, missing
        As in all linear models.
    strict, support, verbose
        As in all linear models.

    Attributes
    ----------
    params_, bse_, tvalues_, pvalues_ : DataFrame
        A row for each series: coefficients of the mean as in statsmodels' VARMAX; then ``C[i,j]``,
        ``A1[i,j]``, ``G1[i,j]`` of a BEKK, or ``b[i,j]`` with ``theta1``, ``phi1`` (scalar),
        ``theta1[i,j]`` (diagonal), ``theta1[ij,kl]``, the effect of e_k e_l on h_ij (full); then
        ``beta.ec1.b`` of a "vecm", the coefficient of b in the first cointegrating relation, where
        the first target has coefficient one.
    starts_, agreement_ : Series
        Number of starts, and how many came within 0.01 of the best log-likelihood.

    Notes
    -----
    The likelihood of a BEKK usually has several maxima, and :math:`C C'` is often singular at the
    highest. No search can prove that there is no higher maximum.

    Signs: the first diagonal elements of A and G, and the diagonal of C, are positive.

    Coefficients of "full" and "diagonal" usually lie on the boundary of the positive semidefinite
    matrices, and the constant may in any structure. Standard errors then hold for models of the
    same rank (by the delta method from the factors), and `messages` in the summary say so. A
    parameter that is zero on the boundary, such as ``C[3,3]`` of a singular :math:`C C'`, has no
    standard error, and the others' take it as held. With ``stationary=True`` the same applies to
    Theta and Phi if the search ends at the limit.

    The first H follows by the recursion from presample values at s, the sample covariance of the
    least-squares residuals. Programs that set the first H to s, or to the stationary covariance of
    the recursion, give other digits, and there is no option for these; with ``targeting=True`` all
    three agree.

    Intervals of forecasts are Gaussian with the exact covariance of every step and take the
    parameters as known. From the second step on y is not Gaussian, so that they are approximations.

    References
    ----------
    Bollerslev, Engle and Wooldridge (1988), Journal of Political Economy 96.
    Engle and Kroner (1995), Econometric Theory 11.
    Hafner and Herwartz (2006), Journal of International Money and Finance 25.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.linear import VECMGARCH
    >>> returns = pd.DataFrame(np.random.default_rng(0).standard_normal((300, 2)),
    ...                        columns=["a", "b"], index=pd.RangeIndex(300))
    >>> model = VECMGARCH(structure="scalar", targeting=True).fit(returns)
    >>> model.predict_covariances(h=1)[["first", "second"]].values.tolist()
    [['a', 'a'], ['a', 'b'], ['b', 'b']]
    """

    column_name: ClassVar[str] = "VECMGARCH"
    family_class: ClassVar[type[Family]] = VECHFamily

    def __init__(
        self,
        order: tuple[int, int] = (1, 1),
        *,
        structure: str = "bekk",
        mean: str = "constant",
        mean_order: int = 1,
        coint_rank: int = 1,
        targeting: bool = False,
        stationary: bool = False,
        n_starts: int = 48,
        cov_type: str = "robust",
        **shared: Any,
    ) -> None:
        super().__init__(cov_type=cov_type, **shared)
        self.order = order
        self.structure = structure
        self.mean = mean
        self.mean_order = mean_order
        self.coint_rank = coint_rank
        self.targeting = targeting
        self.stationary = stationary
        self.n_starts = n_starts

    def volatility_response(self, shock: Any, h: int = 20, unit: Any = None) -> pd.DataFrame:
        r"""Volatility impulse response (Hafner and Herwartz, 2006).

        .. math:: V_k = E[h_{T+1+k} | e_{T+1} = shock] - E[h_{T+1+k}]

        Change in forecasts of the covariance k = 1, ..., h steps after a shock in the first row
        after the data. A shock with e e' equal to the next covariance has no effect.

        Parameters
        ----------
        shock : array_like of shape (n,)
            Residual e on the scale of the data.
        h : int, default 20
        unit : label, optional
            One of `units_`; not needed if there is only one.

        Returns
        -------
        DataFrame
            A row for each ``step`` and pair of targets: ``first``, ``second``, ``response``.

        Raises
        ------
        ValueError
            If the shock has another shape, or a unit must be named or has no parameters.
        """
        check_is_fitted(self)
        i, family, h = self._usable(unit), self._vech, positive_integer("h", h)
        e, state = _shock_of(shock, family.n), self.state_.select(np.array([i]))
        now = family.forecasts(state.arrays, self.fitted_.units_of(state.ids), 1).covariance[0, 0]
        matrices = impulse_vech(family.model(*self.fitted_.unit(i)), now, e, h)
        rows, columns = np.triu_indices(family.n)
        targets = np.array(family.spec.targets, dtype=object)
        return pd.DataFrame(
            {
                "step": np.repeat(np.arange(1, h + 1), len(rows)),
                "first": np.tile(targets[rows], h),
                "second": np.tile(targets[columns], h),
                "response": matrices[:, rows, columns].ravel(),
            }
        )

    def coefficients(self, unit: Any = None) -> dict[str, np.ndarray]:
        """Vech form of any structure, on the scale of the data.

        Parameters
        ----------
        unit : label, optional
            One of `units_`; not needed if there is only one.

        Returns
        -------
        dict
            ``b`` of shape (N,), ``theta`` of shape (p, N, N), ``phi`` of shape (q, N, N) and
            ``persistence``, the spectral radius, below one for a stationary covariance.

        Raises
        ------
        ValueError
            If a unit must be named or has no parameters.
        """
        check_is_fitted(self)
        model = self._vech.model(*self.fitted_.unit(self._usable(unit)))
        return {
            "b": model.constant, "theta": model.theta, "phi": model.phi,
            "persistence": np.array(persistence(model)),
        }  # fmt: skip

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of vech H, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "covariance": companion matrices of :math:`\Theta_i + \Phi_i`, the transition of
            covariance forecasts, a matrix for each fitted unit; "Phi": companion matrices of
            :math:`\Phi_i`, the recurrence by which the network forgets products of residuals;
            absent if q is 0.
        """
        check_is_fitted(self)
        fitted = np.flatnonzero(self.estimates_.fitted).tolist()
        models = [self._vech.model(*self.fitted_.unit(i)) for i in fitted]
        blocks = {
            "covariance": np.stack([forecast_companion(model.theta, model.phi) for model in models])
        }
        if len(models[0].phi):
            blocks["Phi"] = companion(np.stack([model.phi for model in models]))
        return [blocks]

    def _usable(self, unit: Any) -> int:
        """Number of a unit, which must have parameters."""
        i = self._unit_number(unit)
        if not self.estimates_.fitted[i]:
            raise ValueError(
                f"unit {quote(self.units_[i])} could not be fitted and has no parameters; "
                "messages_ says why"
            )
        return i

    @property
    def _vech(self) -> VECHFamily:
        return cast(VECHFamily, self.fitted_.family)

    def _fits_together(self) -> int:
        return 1  # a search takes one series at a time

    def _family(self, arguments: Arguments, data: FittedData) -> VECHFamily:
        p, q = order_of("order", arguments.order, "p lags of e e' and q lags of H")
        spec = Specification(
            kind=choice("structure", arguments.structure, STRUCTURES),
            p=p,
            q=q,
            targeting=flag("targeting", arguments.targeting),
            mean=Mean(arguments.mean, arguments.mean_order, arguments.coint_rank),
            targets=tuple(data.layout.target_names),
            stationary=flag("stationary", arguments.stationary),
            n_starts=positive_integer("n_starts", arguments.n_starts),
        )
        return VECHFamily(spec)


def _shock_of(shock: Any, n: int) -> np.ndarray:
    message = f"shock must be {n} finite numbers, one a target; got {quote(shock)}"
    try:
        e = np.asarray(shock, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(message) from None
    if e.shape != (n,) or not np.isfinite(e).all():
        raise ValueError(message)
    return e
