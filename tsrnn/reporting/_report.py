"""Report of a comparison as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from tsrnn.contract import file_place, positive_integer, put_file
from tsrnn.evaluation import Comparison, diagnose
from tsrnn.interpret import UninformativeNetworkError, forecast_features
from tsrnn.plotting import (
    figure_svg,
    plot_backtest,
    plot_comparison,
    plot_contributions,
    plot_diagnostics,
    plot_features,
)
from tsrnn.reporting._html import (
    bullets,
    heading,
    p_values,
    page,
    panels,
    paragraph,
    picture,
    table,
    text_block,
)

# Measures whose minimum is highlighted; coverage and width have no best value.
_LOWER_IS_BETTER = frozenset(
    [
        *("MAE", "MSE", "RMSE", "MASE", "RMSSE", "sMAPE", "OWA"),
        *("pinball", "CRPS", "QLIKE", "Winkler", "MSIS"),
    ]
)
_PAIRS = 8  # most models with tests of all pairs
_PAIRS_BY_STEP = 4  # the same by step, and for encompassing
_ASIDE = 20  # most series without forecasts in the table
_FEW = 8  # most series with single tests in the table
_TESTS = {
    "ljung_box_pvalue": "Ljung-Box",
    "arch_lm_pvalue": "ARCH-LM",
    "jarque_bera_pvalue": "Jarque-Bera",
    "pit_pvalue": "PIT",
}
_P_VALUE = "p-value"


def report(
    result: Comparison,
    path: str | os.PathLike[str],
    *,
    models: Mapping[str, Any] | None = None,
    title: str = "Comparison of forecasts",
    n_series: int = 2,
) -> Path:
    """Write a comparison as one self-contained HTML file.

    The page has the tests in words, accuracy overall and by step, tests of equal accuracy,
    forecasts with actual values, coverage by step, diagnostics of one-step errors, and notes.
    Fitted models have their summaries; networks also have recurrence features, components, effects
    of columns and contributions. The file has no scripts and loads nothing.

    Parameters
    ----------
    result : Comparison
        Result of `compare`.
    path : path
        File to write, such as "report.html"; an existing file is replaced.
    models : mapping of str to forecaster, optional
        Fitted forecasters to describe, by name.
    title : str
    n_series : int, default 2
        Number of first series whose forecasts are drawn.

    Returns
    -------
    pathlib.Path
        Path of the file.

    Raises
    ------
    TypeError
        If `result` is no comparison, a model is not fitted, a name or the title is no string, or
        `n_series` is no integer.
    ValueError
        If `n_series` is not positive.
    FileNotFoundError
        If the folder does not exist.

    Examples
    --------
    >>> import numpy as np, pandas as pd, tempfile
    >>> from tsrnn import ARMA, backtest, compare, report
    >>> y = pd.Series(np.random.default_rng(0).normal(size=120).cumsum())
    >>> models = {"walk": ARMA(order=(0, 1, 0)), "AR": ARMA(order=(1, 0))}
    >>> result = compare(backtest(models, y, h=2, n_windows=25, step_size=2, refit=False))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(result, f"{folder}/report.html").stat().st_size > 10_000
    True
    """
    if not isinstance(result, Comparison):
        raise TypeError(f"result must be what compare gave; got {type(result).__name__}")
    if not isinstance(title, str):
        raise TypeError(f"title must be text; got {title!r}")
    n_series = positive_integer("n_series", n_series)
    models = {} if models is None else models
    _check_models(models)
    path = file_place(path)
    body = [
        *_data(result),
        *_compositions(models),
        *_words(result),
        *_accuracy(result),
        *_tests(result),
        *_forecasts(result, n_series),
        *_diagnostics(result),
        *_models(models),
        *_set_aside(result),
        *_notes(result),
        paragraph(f"Made by tsrnn {version('tsrnn')}.", small=True),
    ]
    text = page(title, body).encode("utf-8", "backslashreplace")  # names may hold lone surrogates
    put_file(path, lambda place: place.write_bytes(text))
    return path


def _check_models(models: Any) -> None:
    if not isinstance(models, Mapping):
        raise TypeError(f"models must be forecasters by name; got {type(models).__name__}")
    for name, model in models.items():
        if not isinstance(name, str):
            raise TypeError(f"names of models must be text; got {name!r}")
        if not hasattr(model, "state_") or not hasattr(model, "summary"):
            raise TypeError(f"models must be fitted forecasters of tsrnn; {name!r} is {model!r}")


def _data(result: Comparison) -> Iterator[str]:
    """Sentence on the models, series and cutoffs."""
    series = "1 series" if result.n_series == 1 else f"{result.n_series} series"
    cutoffs = result.forecasts["cutoff"]
    first, last = pd.Index([cutoffs.min(), cutoffs.max()]).astype(str)
    yield paragraph(
        f"{', '.join(result.models)}: forecasts of {series}, {result.horizon} steps ahead, after "
        f"{cutoffs.nunique()} cutoffs from {first} to {last}."
    )


def _compositions(models: Mapping[str, Any]) -> Iterator[str]:
    """Composition of the forecasts of networks."""
    for name, model in models.items():
        composition = getattr(model.summary(), "composition", None)
        if composition is not None:
            yield paragraph(f"{name}: {composition}")


def _words(result: Comparison) -> Iterator[str]:
    """Results of the tests in sentences."""
    sentences = result.words()
    if sentences:
        yield heading("In words")
        yield bullets(sentences)


def _accuracy(result: Comparison) -> Iterator[str]:
    """Measures over all steps, and by step."""
    accuracy, by_step = result.accuracy, result.by_step
    lowest = accuracy.eq(accuracy.min())
    lowest &= [str(name).split("-")[0] in _LOWER_IS_BETTER for name in accuracy.columns]
    yield heading("Accuracy")
    yield table(accuracy, lowest)
    yield paragraph(
        "Means over series; the lowest of each measure of error stands out. Coverage should be "
        "that of the level.",
        small=True,
    )
    coverages = [str(name) for name in by_step.columns if str(name).startswith("coverage-")]
    pictures = {name: f"{name} by step" for name in (result.measure, *coverages)}
    if len(result.ranks):
        pictures["ranks"] = "mean ranks"
    yield panels(
        (figure_svg(plot_comparison(result, panels=[name])), alt) for name, alt in pictures.items()
    )
    if result.horizon > 1:
        measure = by_step[result.measure].unstack("model")[result.models]
        yield heading(f"{result.measure} by step", 3)
        yield table(measure, measure.eq(measure.min(axis=1), axis=0))


def _tests(result: Comparison) -> Iterator[str]:
    """Tests of equal accuracy."""
    if len(result.models) < 2 or result.diebold_mariano.empty:
        return
    yield heading("Tests of equal accuracy")
    yield from _diebold_mariano(result)
    yield from _diebold_mariano_by_step(result)
    yield from _confidence_set(result)
    yield from _encompassing(result)


def _diebold_mariano(result: Comparison) -> Iterator[str]:
    """Tests over all steps, for all pairs, or pairs with the benchmark or best model."""
    tests = result.pairwise_tests(most=_PAIRS)
    names = {"model_a": "model", "model_b": "against", "p_value": _P_VALUE,
             "mean_difference": "difference", "p_adjusted": "p-value, Holm"}  # fmt: skip
    shown = tests.rename(columns=names).set_index(["model", "against"])
    yield heading("Diebold and Mariano, all steps", 3)
    numbers = [_P_VALUE, "p-value, Holm"]
    yield table(shown[["n", "difference", "statistic"]].join(p_values(shown[numbers])))
    observations = "windows" if result.over == "time" else "series"
    yield paragraph(
        f"Of the mean {result.loss} loss over {observations}; a negative difference is that the "
        f"first model errs less. {_variances(tests)}{_left_out(result, _PAIRS)}",
        small=True,
    )


def _variances(tests: pd.DataFrame) -> str:
    """Sentence on the variance estimators of the tests."""
    names = {
        "rectangular": "Harvey, Leybourne and Newbold (1997)",
        "bartlett": "Newey and West (1987), corrected for small samples",
        "cosines": "Lazarus, Lewis, Stock and Watson (2018)",
    }
    used = [words for name, words in names.items() if (tests["variance"] == name).any()]
    return f"Variance: {'; where that is not positive, '.join(used)}."


def _diebold_mariano_by_step(result: Comparison) -> Iterator[str]:
    """p-values by step (rows) and pair (columns)."""
    steps = result.pairwise_tests(by_step=True, most=_PAIRS_BY_STEP)
    if steps["step"].nunique() < 2:
        return
    pairs = steps["model_a"] + " – " + steps["model_b"]
    by_step = steps.assign(pair=pairs).pivot(index="step", columns="pair", values="p_value")
    by_step = by_step[pairs.unique()]
    yield heading("p-values by step", 3)
    yield table(p_values(by_step), by_step < result.alpha)
    left_out = _left_out(result, _PAIRS_BY_STEP)
    yield paragraph(
        f"Diebold and Mariano, not adjusted for the number of tests.{left_out}", small=True
    )


def _left_out(result: Comparison, most: int) -> str:
    """Sentence on the pairs that `pairwise_tests` leaves out with more than `most` models."""
    if len(result.models) <= most:
        return ""
    first = result.benchmark or result.models[0]
    return f" Pairs with {first} only; all are in Comparison.diebold_mariano."


def _confidence_set(result: Comparison) -> Iterator[str]:
    if result.confidence_set.empty:
        return
    yield heading("Model confidence set", 3)
    joined = result.confidence_set.join(
        result.superior_predictive_ability.add_prefix("SPA ")
    ).rename(columns={"p_value": _P_VALUE})
    yield table(p_values(joined.drop(columns="included")).join(joined["included"]))
    yield paragraph(
        f"The set holds the best model with a probability of {100 * (1 - result.alpha):g} "
        "percent at least, asymptotically (Hansen, Lunde and Nason, 2011). SPA: p-values of "
        "that no other model is better (Hansen, 2005).",
        small=True,
    )


def _encompassing(result: Comparison) -> Iterator[str]:
    if result.encompassing.empty:
        return
    yield heading("Encompassing", 3)
    if len(result.models) > _PAIRS_BY_STEP:
        yield paragraph(
            f"Of {len(result.models)} models there are {len(result.encompassing)} ordered pairs, "
            "too many for a page; they are in Comparison.encompassing.",
            small=True,
        )
        return
    shown = result.encompassing.rename(
        columns={"model_a": "model", "model_b": "encompasses", "lambda": "weight of the other",
                 "std_err": "std err", "p_value": _P_VALUE, "encompasses": "not rejected"}
    ).set_index(["model", "encompasses"])  # fmt: skip
    shown = shown[["weight of the other", "std err", _P_VALUE, "not rejected"]]
    yield table(shown.assign(**p_values(shown[[_P_VALUE]])), digits=3)


def _forecasts(result: Comparison, n_series: int) -> Iterator[str]:
    """Forecasts and actual values of the first series."""
    if result.kind == "variance":
        return
    yield heading("Forecasts")
    for series in result.forecasts["unique_id"].unique()[:n_series]:
        drawing = figure_svg(plot_backtest(result.forecasts, series, result.models))
        yield picture(drawing, f"forecasts of {series} by model")


def _diagnostics(result: Comparison) -> Iterator[str]:
    """Tests of one-step errors."""
    if result.kind == "variance":
        return
    # In the order of the comparison, so that models keep their colours.
    diagnostics = diagnose(result.ordered_forecasts())
    yield heading("Errors one step ahead")
    tests = diagnostics.tests
    p = tests[list(_TESTS)].set_axis(list(_TESTS.values()), axis=1)
    if tests.groupby(level="model").size().max() <= _FEW:
        yield table(tests[["n", "mean", "sd", "lags"]].join(p_values(p)), digits=3)
        yield paragraph("p-values of tests that nothing is left in the errors.", small=True)
    else:
        known = p.notna().groupby(level="model", sort=False).sum()
        share = (p < 0.05).groupby(level="model", sort=False).sum() / known.where(known > 0)
        yield table((100 * share).add_suffix(", %"), digits=3)
        yield paragraph(
            "Percent of series whose errors reject at 5 percent that nothing is left in them.",
            small=True,
        )
    drawing = figure_svg(plot_diagnostics(diagnostics))
    yield picture(drawing, "autocorrelations of errors and histograms of the PIT, by model")


def _models(models: Mapping[str, Any]) -> Iterator[str]:
    """Summaries of fitted models, and plots of networks."""
    if models:
        yield heading("Models")
    for name, model in models.items():
        yield heading(name, 3)
        yield text_block(str(model.summary()))
        if hasattr(model, "contributions"):
            yield from _network(name, model)


def _network(name: str, model: Any) -> Iterator[str]:
    """Recurrence features of the whole forecast, components, effects and contributions."""
    try:
        features = forecast_features(model)
    except (TypeError, ValueError) as error:
        yield paragraph(f"Recurrence features: {error}", small=True)
    else:
        whole = f"recurrence features of the forecasts of {name}"
        yield picture(figure_svg(plot_features(features)), whole)
    horizon = {"h": 0} if model.known_ahead_ else {}  # future columns are not available here
    for method, what, options in (
        ("plot_components", "components", horizon),
        ("plot_effects", "effects of columns", {}),
    ):
        try:
            axes = getattr(model, method)(**options)
        except (AttributeError, ValueError):
            continue  # trained networks have no components; others may have no effects
        yield picture(figure_svg(axes), f"{what} by {name}")
    if model.known_ahead_:
        yield paragraph(
            "Contributions to a forecast need the future of the columns known ahead.", small=True
        )
        return
    try:
        parts = model.contributions()
    except UninformativeNetworkError:
        return  # the summary describes the prior network
    whose = ""
    if parts.index.nlevels > 1:  # the first of several series or targets
        first = parts.index.droplevel(-1).unique()[0]
        parts, whose = parts.loc[first], f" of {first}"
    drawing = figure_svg(plot_contributions(parts))
    yield picture(drawing, f"contributions to the forecast{whose} by {name}")


def _set_aside(result: Comparison) -> Iterator[str]:
    """Series without forecasts, with the reason."""
    if result.set_aside.empty:
        return
    yield heading("Series set aside")
    shown = result.set_aside.head(_ASIDE)
    shown = shown.assign(model=shown["model"].fillna("all"))
    yield table(
        shown.rename(columns={"n_windows": "windows", "error": "reason"}).set_index("unique_id")
    )
    if len(result.set_aside) > len(shown):
        yield paragraph(
            f"The first {len(shown)} of {len(result.set_aside)}; all are in Comparison.set_aside.",
            small=True,
        )


def _notes(result: Comparison) -> Iterator[str]:
    """Notes of the comparison."""
    if result.notes:
        yield heading("Notes")
        yield bullets(result.notes)
