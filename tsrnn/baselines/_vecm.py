"""Vector error correction, of statsmodels."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from statsmodels.tsa.vector_ar import var_model, vecm

from tsrnn.baselines._fitted import UnitForecaster, count
from tsrnn.baselines._unit import Rows, Unit, UnitEstimates
from tsrnn.baselines._var import CRITERIA, VectorModel
from tsrnn.contract import (
    Arguments,
    FittedData,
    Kind,
    by_name,
    choice,
    integer,
    listed,
    one_of,
    positive_integer,
    record,
    refuse,
    with_shared_arguments,
)
from tsrnn.data import quote

SIGNIFICANCES = (0.01, 0.05, 0.1)  # statsmodels has critical values for these
DETERMINISTIC = ("n", "co", "ci", "lo", "li", "colo", "coli", "cilo", "cili")


@dataclass(frozen=True)
class ErrorCorrection(VectorModel):
    """Vector error correction model of given or chosen order and rank."""

    lags: int | None
    rank: int | None
    deterministic: str
    criterion: str
    max_lags: int
    significance: float

    def spec_kind(self, rows: Rows) -> Kind:
        k = rows.y.shape[1]
        lags = integer(0, len(rows.y)) if self.lags is None else one_of(self.lags)
        rank = integer(0, k) if self.rank is None else one_of(self.rank)
        kind = record({"lags": lags, "rank": rank, "shapes": by_name(listed(integer(0), 2))})

        def check(value: Any, place: str) -> None:
            kind(value, place)
            shapes = self.shapes(k, value["lags"], value["rank"])
            if list(value["shapes"].items()) != list(shapes.items()):
                raise refuse(f"{place}.shapes", f"{shapes}, in this order", value["shapes"])

        return check

    def legal_names(self, spec: dict[str, Any], rows: Rows) -> list[tuple[str, ...]]:
        return [names_of(spec["shapes"])]

    def shapes(self, k: int, lags: int, rank: int) -> dict[str, list[int]]:
        """Shapes of the matrices of parameters."""
        inside, outside = (
            sum(term in self.deterministic for term in terms)
            for terms in (("ci", "li"), ("co", "lo"))
        )
        return {
            "alpha": [k, rank],
            "beta": [k, rank],
            "inside": [inside, rank],
            "gamma": [k, k * lags],
            "outside": [k, outside],
            "sigma": [k, k],
        }

    def fewest(self, rows: Rows) -> int:
        k, lags = rows.y.shape[1], 1 if self.lags is None else self.lags
        return (lags + 1) * (k + 1) + len(self.deterministic) // 2 + k + 4

    def estimate(self, rows: Rows) -> UnitEstimates:
        k = rows.y.shape[1]
        if self.rank is not None and self.rank > k:
            raise ValueError(f"rank must be at most the number of targets, {k}; got {self.rank}")
        lags = self.n_lags(rows)
        rank = self.rank
        if rank is None:
            # Deterministic polynomial of the trace test: none, a constant or a line.
            order = 1 if "l" in self.deterministic else 0 if "c" in self.deterministic else -1
            tested = vecm.select_coint_rank(rows.y, order, lags, signif=self.significance)
            rank = int(tested.rank)
        results = self.build(rows, {"lags": lags, "rank": rank}).fit()
        return fitted_of(results, {"lags": lags, "rank": rank})

    def n_lags(self, rows: Rows) -> int:
        """Lagged differences, chosen where they are not given."""
        if self.lags is not None:
            return self.lags
        n, k = rows.y.shape
        most = min(self.max_lags, (n - 2 * k - 4) // (k + 1) - 1)
        orders = vecm.select_order(rows.y, max(most, 1), deterministic=self.deterministic)
        return int(orders.selected_orders[self.criterion])

    def build(self, rows: Rows, spec: dict[str, Any]) -> Any:
        """Statsmodels' model of the rows."""
        return vecm.VECM(
            rows.y,
            k_ar_diff=spec["lags"],
            coint_rank=spec["rank"],
            deterministic=self.deterministic,
        )

    def moments(self, unit: Unit, h: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        fitted, rows, _ = unit
        lags, k = fitted.spec["lags"], rows.y.shape[1]
        if len(rows.y) <= lags:
            raise ValueError(f"forecasts need {lags + 1} rows; there are {len(rows.y)}")
        value = arrays(fitted)
        levels_form = in_levels(value, lags, k)
        terms = self.terms(value, rows, h)
        mean = var_model.forecast(rows.y[-lags - 1 :], levels_form, terms, h)
        return mean, var_model.ma_rep(levels_form, h), value["sigma"]

    def terms(self, value: dict[str, np.ndarray], rows: Rows, h: int) -> np.ndarray:
        """Deterministic terms (h, k) of the steps ahead."""
        step = rows.offset + len(rows.y) + np.arange(float(h))
        outside = [np.ones(h)] * ("co" in self.deterministic)
        outside += [step + 1] * ("lo" in self.deterministic)
        # Inside the relation the trend is t - 1, the row before.
        inside = [np.ones(h)] * ("ci" in self.deterministic)
        inside += [step] * ("li" in self.deterministic)
        empty = np.empty((h, 0))
        return np.column_stack([empty, *outside]) @ value["outside"].T + (
            np.column_stack([empty, *inside]) @ value["inside"] @ value["alpha"].T
        )

    def page(self, fitted: UnitEstimates, rows: Rows) -> str:
        return str(self.build(rows, fitted.spec).fit().summary())

    def orders(self, fitted: UnitEstimates) -> str:
        if fitted.reason:
            return ""
        return f"VECM({fitted.spec['lags']}), rank {fitted.spec['rank']}"


def fitted_of(results: Any, spec: dict[str, Any]) -> UnitEstimates:
    """Estimates from statsmodels' results: matrices by name, one after the other."""
    matrices = {
        "alpha": results.alpha,
        "beta": results.beta,
        "inside": results.det_coef_coint,
        "gamma": results.gamma,
        "outside": results.det_coef,
        "sigma": results.sigma_u,
    }
    values = {name: np.asarray(matrix, float) for name, matrix in matrices.items()}
    shapes = {name: list(value.shape) for name, value in values.items()}
    return UnitEstimates(
        names_of(shapes),
        np.concatenate([value.ravel() for value in values.values()]),
        spec | {"shapes": shapes},
        loglik=float(results.llf),
    )


def names_of(shapes: dict[str, list[int]]) -> tuple[str, ...]:
    """Names of the entries of matrices, one matrix after the other."""
    return tuple(
        f"{name}.{i + 1}.{j + 1}" for name, shape in shapes.items() for i, j in np.ndindex(*shape)
    )


def arrays(fitted: UnitEstimates) -> dict[str, np.ndarray]:
    """Matrices by name, whose entries `fitted_of` writes one after the other."""
    shapes = fitted.spec["shapes"]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes.values()])
    parts = np.split(fitted.params, ends[:-1])
    return {
        name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def in_levels(value: dict[str, np.ndarray], lags: int, k: int) -> np.ndarray:
    """Coefficients (lags + 1, k, k) of the autoregression in levels."""
    gamma = value["gamma"].reshape(k, lags, k).swapaxes(0, 1)
    coefficients = np.zeros((lags + 1, k, k))
    coefficients[0] = np.eye(k) + value["alpha"] @ value["beta"].T
    coefficients[:lags] += gamma
    coefficients[1:] -= gamma
    return coefficients


@with_shared_arguments
class VECM(UnitForecaster):
    r"""Vector error correction by reduced rank regression: statsmodels' VECM.

    .. math::

        \Delta y_t = \alpha (\beta' y_{t-1} + \rho_0 + \rho_1 (t-1)) +
        \Gamma_1 \Delta y_{t-1} + \dots + \Gamma_p \Delta y_{t-p} + c_0 + c_1 t + u_t,
        \qquad \operatorname{Cov}(u_t) = \Sigma

    for all targets of a series together, with matrices :math:`\alpha` and :math:`\beta` of as
    many columns as the cointegration rank.

    Parameters
    ----------
    lags : int, optional, default 1
        Number p of lagged differences; None chooses it by `criterion` up to `max_lags`.
    rank : int, optional
        Cointegration rank, from 0; by Johansen's trace test where it is None.
    deterministic : str, default "ci"
        Terms outside the relation, "co" and "lo", and inside, "ci" and "li": "n" for none, or
        "co", "ci", "lo", "li", "colo", "coli", "cilo", "cili".
    criterion : {"aic", "bic", "hqic", "fpe"}
        Criterion that chooses the lags.
    max_lags : int, default 8
    significance : {0.01, 0.05, 0.1}
        Level of the trace test, whose polynomial is a constant with any "c", a line with any "l".
    **shared
        As in all forecasters.

    Notes
    -----
    Rows are numbered on the calendar from the first one fitted to. Intervals are normal and take
    the parameters as known. Order and rank are in `spec_`. A series that cannot be fitted is
    named in a warning; its forecasts are NaN.

    References
    ----------
    Johansen, S. (1995). Likelihood-Based Inference in Cointegrated Vector Autoregressive Models.
    Lütkepohl, H. (2005). New Introduction to Multiple Time Series Analysis, chapters 6 to 8.

    Examples
    --------
    >>> from tsrnn.baselines import VECM
    >>> from tsrnn.datasets import load_interest_inflation
    >>> model = VECM(lags=3).fit(load_interest_inflation())
    >>> model.spec_.iloc[0]["rank"]
    1
    >>> model.predict(h=4).shape
    (4, 2)
    """

    column_name: ClassVar[str] = "VECM"

    def __init__(
        self,
        lags: int | None = 1,
        rank: int | None = None,
        deterministic: str = "ci",
        criterion: str = "aic",
        max_lags: int = 8,
        significance: float = 0.05,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.lags = lags
        self.rank = rank
        self.deterministic = deterministic
        self.criterion = criterion
        self.max_lags = max_lags
        self.significance = significance

    def _model(self, arguments: Arguments, data: FittedData) -> ErrorCorrection:
        lags, rank = (count(n, getattr(arguments, n), optional=True) for n in ("lags", "rank"))
        significance = arguments.significance
        if not isinstance(significance, Real) or significance not in SIGNIFICANCES:
            raise ValueError(f"significance must be 0.01, 0.05 or 0.1; got {quote(significance)}")
        return ErrorCorrection(
            lags,
            rank,
            choice("deterministic", arguments.deterministic, DETERMINISTIC),
            choice("criterion", arguments.criterion, CRITERIA),
            positive_integer("max_lags", arguments.max_lags),
            float(significance),
        )
