"""Several tests of linearity of one series, with Holm's adjustment and a conclusion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import flag, number, positive_integer, seed_of
from tsrnn.linear import ARMA
from tsrnn.linearity._bds import MOST_PAIRED, bds_test
from tsrnn.linearity._block import block_test
from tsrnn.linearity._nested import nested_test
from tsrnn.linearity._null import choose_lags, linear_model, read_series
from tsrnn.linearity._regression import terasvirta_test, white_test
from tsrnn.linearity._result import LinearityTest, LinearityTests, holm

TESTS = ("terasvirta", "white", "block", "bds", "nested")
NAMES = {
    "terasvirta": "Teräsvirta's",
    "white": "White's",
    "block": "the block's",
    "bds": "the BDS",
    "nested": "the likelihood-ratio",
}


def linearity_tests(
    y: Any,
    lags: int | None = None,
    *,
    order: tuple[int, int] | None = None,
    nonlinear_lags: int | None = None,
    tests: Sequence[str] = TESTS[:-1],
    robust: bool = True,
    n_bootstrap: int = 499,
    alpha: float = 0.05,
    random_state: Any = None,
) -> LinearityTests:
    """Tests of a linear model against nonlinearity, on one page.

    Parameters
    ----------
    y : array_like, Series, frame of one series or fitted ARMA
        Without missing values. An ARMA without regressors, fitted to one series.
    lags : int, optional
        Order of an AR with constant by least squares; by default chosen by AIC, up to 12.
    order : tuple of int, optional
        (p, q) of an ARMA with constant, in place of `lags`.
    nonlinear_lags : int, optional
        Lags in nonlinear terms; see `terasvirta_test`.
    tests : sequence of {"terasvirta", "white", "block", "bds", "nested"}
        By default all except "nested", which takes seconds to a minute.
    robust : bool, default True
        Robustness of Teräsvirta's and White's tests to heteroskedasticity.
    n_bootstrap : int, default 499
        Number of bootstrap draws; at most 99 for "nested".
    alpha : float, default 0.05
        Level of the conclusion.
    random_state : int, numpy random generator or None

    Returns
    -------
    LinearityTests
        Print it; `table` has a row for each test.

    Raises
    ------
    TypeError, ValueError
        If the series or an argument is not legal.

    Notes
    -----
    Holm's adjustment bounds the probability of any false rejection by alpha under any dependence of
    the tests, if each has its size. It counts the requested tests; the conclusion uses adjusted
    p-values. The null of BDS is independence of innovations, the null of the others a linear mean:
    a changing variance can explain a rejection by BDS alone.

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal
    of Statistics.

    Examples
    --------
    >>> from tsrnn.datasets import threshold_autoregression
    >>> from tsrnn.linearity import linearity_tests
    >>> y, _ = threshold_autoregression(200, random_state=0)
    >>> page = linearity_tests(y, lags=1, random_state=0)
    >>> page.table["p_holm"].round(3).tolist()
    [0.008, 0.008, 0.008, 0.05]
    """
    asked = [tests] if isinstance(tests, str) else list(tests)
    if not asked or len(set(asked)) < len(asked) or not set(asked) <= set(TESTS):
        raise ValueError(f"tests must be some of {TESTS}, each once; got {tests!r}")
    flag("robust", robust)
    alpha = number("alpha", alpha, lowest=0.0, open_=True, highest=0.5)
    draws, seed = positive_integer("n_bootstrap", n_bootstrap), seed_of(random_state)
    if lags is None and order is None and not isinstance(y, ARMA):
        lags = choose_lags(read_series(y))  # once, so that all tests share the model
    model = linear_model(y, lags, order, nonlinear_lags)
    notes = [
        "p_holm: Holm's adjustment for all tests of the table.",
        f"Nonlinear terms are of {model.lags} lag{'s' * (model.lags > 1)}.",
    ]
    if "bds" in asked and len(asked) > 1 and len(model.residuals) > MOST_PAIRED:
        asked.remove("bds")
        notes.append(f"The BDS test is left out: it takes at most {MOST_PAIRED:,} residuals.")
    shared: dict[str, Any] = {"order": order, "random_state": seed, "n_bootstrap": draws}
    terms = {**shared, "nonlinear_lags": nonlinear_lags}
    calls: dict[str, tuple[Callable[..., LinearityTest], dict[str, Any]]] = {
        "terasvirta": (terasvirta_test, {**terms, "robust": robust}),
        "white": (white_test, {**terms, "robust": robust}),
        "block": (block_test, terms),
        "bds": (bds_test, shared),
        "nested": (nested_test, {**terms, "n_bootstrap": min(draws, 99)}),
    }
    results = {name: calls[name][0](y, lags, **calls[name][1]) for name in asked}
    p_values = np.array([result.p_value for result in results.values()])
    adjusted = holm(p_values)
    table = pd.DataFrame(
        {
            "statistic": [result.statistic for result in results.values()],
            "df": [", ".join(map(str, result.df)) or "-" for result in results.values()],
            "p_value": p_values,
            "p_holm": adjusted,
            "note": [_note(result) for result in results.values()],
        },
        pd.Index(asked, name="test"),
    )
    least = 1 / (draws + 1) * len(asked)
    if least > alpha:
        notes.append(
            f"With {draws} draws an adjusted p-value cannot be below {least:.3f}: take more."
        )
    return LinearityTests(
        model=model.name,
        n_obs=len(model.residuals),
        alpha=alpha,
        table=table,
        conclusion=_conclusion(results, adjusted, alpha, model.name),
        results=results,
        notes=notes,
    )


def _note(result: LinearityTest) -> str:
    """Distribution of a p-value, with a remark if the test rejects ARCH, too."""
    kind = result.distribution.split(",")[0] if not result.df else "F distribution"
    return kind if result.mean_only else f"{kind}; ARCH rejects, too"


def _conclusion(
    results: dict[str, LinearityTest], adjusted: np.ndarray, alpha: float, model: str
) -> str:
    """Sentence on the rejections at a level and their possible causes."""
    rejected = [name for name, p in zip(results, adjusted, strict=True) if p <= alpha]
    level = f"at {100 * alpha:g} percent"
    of_mean = [name for name in rejected if results[name].mean_only]
    if of_mean:
        return (
            f"The mean is not linear in the past: {_listed(of_mean)} "
            f"reject{'s' * (len(of_mean) == 1)} the {model} {level}."
        )
    if rejected:
        return (
            f"Something is left after the {model} {level}, by {_listed(rejected)}, but ARCH is "
            "enough to explain it: no robust test of the mean rejects."
        )
    return f"No test rejects the {model} {level}: no nonlinearity is seen."


def _listed(names: list[str]) -> str:
    texts = [NAMES[name] for name in names]
    joined = " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
    return f"{joined} test{'s' * (len(texts) > 1)}"
