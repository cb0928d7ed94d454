"""What a report says of a comparison, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.evaluation import Comparison, diagnose
from tsrnn.evaluation._comparison_page import ENCOMPASSING, MATRIX, UNITS
from tsrnn.evaluation._diebold_mariano import ALL
from tsrnn.evaluation._forecasts import KEYS, model_columns
from tsrnn.evaluation._words import ALL_PAIRS
from tsrnn.interpret import recurrence_features
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
    panels,
    paragraph,
    picture,
    table,
    text_block,
)

_LOWER_IS_BETTER = (
    "MAE",
    "MSE",
    "RMSE",
    "MASE",
    "RMSSE",
    "sMAPE",
    "OWA",
    "pinball",
    "CRPS",
    "QLIKE",
)
_ASIDE = 20  # series set aside that are shown
_FEW = 8  # series of which each test is shown
_TESTS = ("ljung_box", "arch_lm", "jarque_bera", "pit")
_P_VALUE = "p-value"


def data_section(result: Comparison) -> Iterator[str]:
    """What was compared."""
    series = "1 series" if result.n_series == 1 else f"{result.n_series} series"
    cutoffs = result.forecasts["cutoff"]
    first, last = pd.Index([cutoffs.min(), cutoffs.max()]).astype(str)
    yield paragraph(
        f"{', '.join(result.models)}: forecasts of {series}, {result.horizon} steps ahead, after "
        f"{cutoffs.nunique()} cutoffs from {first} to {last}."
    )


def composition_section(models: Mapping[str, Any]) -> Iterator[str]:
    """What forecasts, of models that are networks."""
    for name, model in models.items():
        composition = getattr(model.summary(), "composition", None)
        if composition is not None:
            yield paragraph(f"{name}: {composition}")


def words_section(result: Comparison) -> Iterator[str]:
    """The tests in sentences."""
    said = result.words()
    if said:
        yield heading("In words")
        yield bullets(said)


def accuracy_section(result: Comparison) -> Iterator[str]:
    """Measures of all steps, and by step."""
    yield heading("Accuracy")
    yield table(result.accuracy, _best(result.accuracy))
    yield paragraph(
        "Means over series; the lowest of each measure of error stands out. Coverage should be "
        "that of the level.",
        small=True,
    )
    yield panels(
        (figure_svg(plot_comparison(result, panels=[name])), alt) for name, alt in _panels(result)
    )
    if result.horizon > 1:
        by_step = result.by_step[result.measure].unstack("model")[result.models]
        yield heading(f"{result.measure} by step", 3)
        yield table(by_step, by_step.eq(by_step.min(axis=1), axis=0))


def _panels(result: Comparison) -> Iterator[tuple[str, str]]:
    """Panels of the picture of a comparison, and what each shows."""
    yield result.measure, f"{result.measure} by step"
    for name in result.by_step.columns:
        if str(name).startswith("coverage-"):
            yield name, f"{name} by step"
    if len(result.ranks):
        yield "ranks", "mean ranks"


def _best(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Where a measure is the lowest of its column; coverage has no lowest."""
    lowest = accuracy.eq(accuracy.min())
    names = [str(column).split("-")[0] for column in accuracy.columns]
    counted = [name in (*_LOWER_IS_BETTER, "Winkler") for name in names]
    return lowest & np.array(counted)


def tests_section(result: Comparison) -> Iterator[str]:
    """Tests of equal accuracy."""
    if len(result.models) < 2 or result.diebold_mariano.empty:
        return
    yield heading("Tests of equal accuracy")
    yield from _diebold_mariano(result)
    yield from _by_step(result)
    yield from _confidence_set(result)
    yield from _encompassing(result)


def _diebold_mariano(result: Comparison) -> Iterator[str]:
    """Tests over all steps, of every pair or of the benchmark or best model."""
    tests = result.diebold_mariano
    tests, left_out = _of_pairs(result, tests[tests["step"] == ALL], MATRIX)
    names = {"model_a": "model", "model_b": "against", "p_value": _P_VALUE,
             "mean_difference": "difference", "p_adjusted": "p-value, Holm"}  # fmt: skip
    shown = tests.rename(columns=names).set_index(["model", "against"])
    yield heading("Diebold and Mariano, all steps", 3)
    numbers = [_P_VALUE, "p-value, Holm"]
    yield table(shown[["n", "difference", "statistic"]].join(p_values(shown[numbers])))
    yield paragraph(
        f"Of the mean {result.loss} loss over {UNITS[str(result.over)]}; a negative difference is "
        "that the first model errs less. Small samples: Harvey, Leybourne and Newbold (1997)."
        f"{left_out}",
        small=True,
    )


def _by_step(result: Comparison) -> Iterator[str]:
    """p-values by step, a column a pair."""
    steps = result.diebold_mariano
    steps, left_out = _of_pairs(result, steps[steps["step"] != ALL], ALL_PAIRS)
    if steps["step"].nunique() < 2:
        return
    pairs = steps["model_a"] + " – " + steps["model_b"]
    by_step = steps.assign(pair=pairs).pivot(index="step", columns="pair", values="p_value")
    by_step = by_step[pairs.unique()]
    yield heading("p-values by step", 3)
    yield table(p_values(by_step), by_step < result.alpha)
    yield paragraph(
        f"Diebold and Mariano, not adjusted for the number of tests.{left_out}", small=True
    )


def _of_pairs(result: Comparison, tests: pd.DataFrame, most: int) -> tuple[pd.DataFrame, str]:
    """Tests of all pairs of at most so many models, else of one model, and where others are."""
    if len(result.models) <= most:
        return tests, ""
    first = result.benchmark or result.models[0]
    own = tests[(tests["model_a"] == first) | (tests["model_b"] == first)]
    return own, f" Pairs with {first} only; all are in Comparison.diebold_mariano."


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
    if len(result.models) > ENCOMPASSING:
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


def forecast_section(result: Comparison, n_series: int) -> Iterator[str]:
    """Forecasts over what came, of the first series."""
    if result.kind == "variance":
        return
    yield heading("Forecasts")
    for series in result.forecasts["unique_id"].unique()[:n_series]:
        drawn = figure_svg(plot_backtest(result.forecasts, series, result.models))
        yield picture(drawn, f"forecasts of {series} by model")


def diagnostics_section(result: Comparison) -> Iterator[str]:
    """Tests of errors one step ahead."""
    if result.kind == "variance":
        return
    found = diagnose(_in_order(result))
    yield heading("Errors one step ahead")
    tests = found.tests
    rejected = tests[[f"{test}_pvalue" for test in _TESTS]].set_axis(
        ["Ljung-Box", "ARCH-LM", "Jarque-Bera", "PIT"], axis=1
    )
    if tests.groupby(level="model").size().max() <= _FEW:
        yield table(tests[["n", "mean", "sd", "lags"]].join(p_values(rejected)), digits=3)
        yield paragraph("p-values of tests that nothing is left in the errors.", small=True)
    else:
        known = rejected.notna().groupby(level="model", sort=False).sum()
        share = (rejected < 0.05).groupby(level="model", sort=False).sum() / known.where(known > 0)
        yield table((100 * share).add_suffix(", %"), digits=3)
        yield paragraph(
            "Percent of series whose errors reject at 5 percent that nothing is left in them.",
            small=True,
        )
    drawn = figure_svg(plot_diagnostics(found))
    yield picture(drawn, "autocorrelations of errors and histograms of the PIT, by model")


def _in_order(result: Comparison) -> pd.DataFrame:
    """The forecasts with models in the order of the comparison, so that colours are the same."""
    frame = result.forecasts
    columns = list(KEYS)
    for model, intervals in model_columns(frame, result.models).items():
        columns += [model, *chain.from_iterable(intervals.values())]
    return frame[columns]


def models_section(models: Mapping[str, Any]) -> Iterator[str]:
    """Summaries of fitted models, and what can be read from networks."""
    if models:
        yield heading("Models")
    for name, model in models.items():
        yield heading(name, 3)
        yield text_block(str(model.summary()))
        if hasattr(model, "contributions"):
            yield from _of_network(name, model)


def _of_network(name: str, model: Any) -> Iterator[str]:
    try:
        features = recurrence_features(model)
    except (TypeError, ValueError) as error:
        yield paragraph(f"Recurrence features: {error}", small=True)
    else:
        yield picture(figure_svg(plot_features(features)), f"recurrence features of {name}")
    if model.known_ahead_:
        yield paragraph(
            "Contributions to a forecast need the future of the columns known ahead.", small=True
        )
        return
    parts = model.contributions()
    whose = ""
    if parts.index.nlevels > 1:  # of several series or targets, the first
        first = parts.index.droplevel(-1).unique()[0]
        parts, whose = parts.loc[first], f" of {first}"
    drawn = figure_svg(plot_contributions(parts))
    yield picture(drawn, f"contributions to the forecast{whose} by {name}")


def set_aside_section(result: Comparison) -> Iterator[str]:
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


def notes_section(result: Comparison) -> Iterator[str]:
    """What was left out, and what the tests rest on."""
    if result.notes:
        yield heading("Notes")
        yield bullets(result.notes)
