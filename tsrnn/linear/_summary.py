"""Summary of a fitted linear model on one page, laid out as statsmodels and arch do."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.contract import Summary
from tsrnn.data import show_label
from tsrnn.linear._diagnostics import residual_tests
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._fitted import FittedLinear
from tsrnn.linear._frames import sample_text
from tsrnn.linear._inference import (
    DESCRIPTIONS,
    check_kind,
    confidence_intervals,
    criteria,
    no_covariance,
    standard_errors,
    z_values,
)
from tsrnn.prior import outlier_lines

if TYPE_CHECKING:
    from tsrnn.linear._base import LinearForecaster


NO_COVARIANCE = "The covariance matrix is singular or not positive definite: no standard errors."


def summarise(forecaster: LinearForecaster, unit: Any, cov_type: str | None) -> LinearSummary:
    """Build the summary of one unit, or of all."""
    if unit is None and len(forecaster.units_) > 1:
        kind = forecaster.arguments_.cov_type if cov_type is None else cov_type
        check_kind(kind, forecaster.estimates_, forecaster.fitted_.family.cov_kinds)
        return _summary_of_all(forecaster)
    return _summary_of_unit(forecaster, forecaster._unit_number(unit), cov_type)


def _summary_of_unit(forecaster: LinearForecaster, i: int, cov_type: str | None) -> LinearSummary:
    cov_type = forecaster.arguments_.cov_type if cov_type is None else cov_type
    fitted, family = forecaster.fitted_, forecaster.fitted_.family
    estimates, (params, constants) = fitted.estimates.select(np.array([i])), fitted.unit(i)
    cov = fitted.covariance(cov_type)[i : i + 1]
    notes = list(estimates.messages[0])
    if estimates.fitted[0] and not estimates.fixed.all():
        lacking = [NO_COVARIANCE] if no_covariance(estimates, cov)[0] else []
        kind = f"Standard errors: {DESCRIPTIONS[cov_type]}."
        notes = [kind, *lacking, *notes]
    if estimates.fitted[0]:
        notes += family.notes()
    series = i // fitted.n_units
    ids = fitted.data.ids[series : series + 1]
    begin, end = sample_text(fitted.data.layout, ids, *fitted.sample[:, series])
    model = {
        "Series": show_label(forecaster.units_[i]),
        "Model": family.title,
        "Sample": begin,
        "": f"- {end}",
        "Covariance Type": cov_type,
        **family.conventions,
        **family.facts(params, constants),
    }
    return LinearSummary(
        title=f"{type(forecaster).__name__} Results",
        model=model,
        fit=_fit_facts(estimates),
        params=_table(estimates, standard_errors(cov)).loc[list(family.names_of(constants))],
        tests=_residual_tests(fitted, i),
        outliers=fitted.outlier_table(i),
        notes=[*notes, *_large_residual(fitted, i), *fitted.support_notes],
    )


def _table(estimates: Estimates, errors: np.ndarray) -> pd.DataFrame:
    z, p = z_values(estimates.params, errors)
    ends = confidence_intervals(estimates.params, errors, 95)
    values = (estimates.params, errors, z, p, *ends)
    columns = {key: value[0] for key, value in zip(COLUMNS, values, strict=True)}
    return pd.DataFrame(columns, index=pd.Index(estimates.names, name="parameter"))


def _fit_facts(estimates: Estimates) -> dict[str, object]:
    best = criteria(estimates)
    facts: dict[str, object] = {
        "No. Observations": int(estimates.n_obs[0]),
        "Log Likelihood": f"{estimates.loglik[0]:.3f}",
        "AIC": f"{best.aic[0]:.3f}",
        "BIC": f"{best.bic[0]:.3f}",
        "HQIC": f"{best.hqic[0]:.3f}",
    }
    if estimates.fixed.all():  # given: nothing was searched for
        return facts
    slope = np.linalg.norm(np.where(estimates.fixed, 0.0, estimates.gradient))
    facts |= {
        "Iterations": int(estimates.iterations[0]),
        "Gradient norm": f"{slope:.1e}",
        "Converged": "yes" if estimates.converged[0] else "no",
    }
    if estimates.starts is not None and estimates.agreement is not None and estimates.starts[0]:
        facts["Starts that agree"] = f"{estimates.agreement[0]} of {estimates.starts[0]}"
    return facts


def _summary_of_all(forecaster: LinearForecaster) -> LinearSummary:
    estimates, family = forecaster.estimates_, forecaster.fitted_.family
    table = forecaster.params_.assign(
        loglik=forecaster.loglik_, nobs=forecaster.nobs_, converged=forecaster.converged_
    )
    n, fitted = len(table), int(estimates.fitted.sum())
    model = {"Model": family.title, "Units": n, **family.conventions}
    fit: dict[str, object] = {
        "Fitted": f"{fitted} of {n}",
        "Converged": f"{int((estimates.converged & estimates.fitted).sum())} of {n}",
        "With warnings": sum(bool(texts) for texts in estimates.messages),
        "Log Likelihood": f"{np.nansum(estimates.loglik):.3f}",
    }
    fitted_model = forecaster.fitted_
    notes = message_counts(estimates.messages) + _large_residual(fitted_model)
    notes += fitted_model.support_notes
    return LinearSummary(
        f"{type(forecaster).__name__} Results", model, fit, table, None,
        forecaster.fitted_.outlier_table(), notes,
    )  # fmt: skip


def _residual_tests(fitted: FittedLinear, unit: int) -> pd.DataFrame | None:
    """Tests at one lag, as statsmodels prints them; None without the data."""
    if fitted.panel is None:
        return None
    series, target = divmod(unit, fitted.n_units)
    alone = fitted.panel.select(np.arange(len(fitted.data.ids)) == series)
    return residual_tests(fitted, alone, 1, 0, None if fitted.family.multivariate else target)


def _large_residual(fitted: FittedLinear, unit: int | None = None) -> list[str]:
    """Note on a large residual that ``outliers="pulse"`` could skip; empty without one."""
    panel, names = fitted.panel, fitted.arguments.as_dict()
    if panel is None or "outliers" not in names or names["outliers"] is not None:
        return []
    targets = slice(None)
    if unit is not None:
        series, target = divmod(unit, fitted.n_units)
        panel = panel.select(np.arange(panel.n_series) == series)
        targets = slice(target, target + 1)
    means, scaled = (part[:, targets] for part in fitted.in_sample(panel))
    sizes = np.nan_to_num(np.abs(scaled))
    large = int((sizes > LARGE).sum())
    if not large:
        return []
    row, target = np.unravel_index(sizes.argmax(), sizes.shape)
    residual = panel.values[:, targets][row, target] - means[row, target]
    axis = panel.axis
    where = f"{axis.where(int(axis.codes[row]))}{axis.show(np.array([row]))}"
    if scaled.shape[1] > 1:
        where += f", {show_label(panel.target_names[target])}"
    count = "A residual is" if large == 1 else f"{large} residuals are"
    return [
        f"{count} above {LARGE} standard deviations, the largest {residual:.4g} with "
        f"{sizes[row, target]:.1f} of them ({where}). "
        'outliers="pulse" skips gross errors of single rows.'
    ]


WIDTH = 78
LARGE = 6  # standard deviations: one normal residual in 500 million
NUMBERS_WIDTH = 67  # of the table of coefficients, without the names
COLUMNS = ("coef", "std err", "z", "P>|z|", "lower", "upper")  # of the table of coefficients
ROWS_SHOWN = 20
MESSAGES_SHOWN = 5
NO_ERROR = "-: none, as the parameter is on a boundary, not identified, imposed or has no variance."


@dataclass(frozen=True, eq=False, repr=False)
class LinearSummary(Summary):
    """Text and tables of a fitted model; print it.

    Attributes
    ----------
    title : str
    model : dict
        Model, sample and conventions of the likelihood.
    fit : dict
        Log-likelihood, criteria, and facts on the optimiser.
    params : DataFrame
        One unit: a row a parameter, with ``coef``, ``std err``, ``z``, ``P>|z|`` and the ends
        of the 95% interval, NaN where there is no standard error. Many: a row a unit.
    tests : DataFrame or None
        Tests of standardised residuals, a row a target; see `diagnostics`.
    outliers : DataFrame
        Gross errors, which are skipped, and level shifts; empty unless `outliers` is set.
    notes : list of str
    """

    title: str
    model: dict[str, object]
    fit: dict[str, object]
    params: pd.DataFrame
    tests: pd.DataFrame | None
    outliers: pd.DataFrame
    notes: list[str]

    def as_text(self) -> str:
        """Page as it is printed."""
        one_unit = "coef" in self.params
        table = _coefficient_lines(self.params) if one_unit else _unit_lines(self.params)
        width = max(WIDTH, *map(len, table))
        lines = [
            self.title.center(width).rstrip(),
            "=" * width,
            *_two_columns(self.model, self.fit, width),
            "=" * width,
            *table,
            "=" * width,
        ]
        if self.tests is not None:
            lines += [*_test_lines(self.tests, width), "=" * width]
        if len(self.outliers):
            lines += ["Outliers", *outlier_lines(self.outliers), "=" * width]
        if one_unit and (self.params["std err"].isna() & self.params["coef"].notna()).any():
            lines.append(NO_ERROR)
        if self.notes:
            lines += ["", "Warnings and notes:"]
        for i, note in enumerate(self.notes, 1):
            lines.append(textwrap.fill(f"[{i}] {note}", width, subsequent_indent="    "))
        return "\n".join(lines)


def message_counts(messages: tuple[tuple[str, ...], ...]) -> list[str]:
    """Most frequent messages, with the number of units of each."""
    counts = Counter(text for texts in messages for text in texts)
    shown = [
        f"{n} unit{'s' if n > 1 else ''}: {text}" for text, n in counts.most_common(MESSAGES_SHOWN)
    ]
    if len(counts) > len(shown):
        shown.append(f"{len(counts) - len(shown)} other messages; see messages_.")
    return shown


def _coefficient_lines(table: pd.DataFrame) -> list[str]:
    stub = max(WIDTH - NUMBERS_WIDTH, *(len(str(name)) + 1 for name in table.index))
    head = f"{'':<{stub}}{'coef':>10}{'std err':>11}{'z':>11}{'P>|z|':>11}"
    lines = [f"{head}{'[0.025':>12}{'0.975]':>12}", "-" * (stub + NUMBERS_WIDTH)]
    for name, row in table.iterrows():
        error = _digits(row["std err"], 3)
        z, p = (_fixed(row[key]) for key in ("z", "P>|z|"))
        ends = (_digits(row[key], 3) for key in ("lower", "upper"))
        numbers = f"{_digits(row['coef'], 4):>10}{error:>11}{z:>11}{p:>11}"
        lines.append(f"{name!s:<{stub}}{numbers}" + "".join(f"{end:>12}" for end in ends))
    return lines


def _unit_lines(table: pd.DataFrame) -> list[str]:
    half = ROWS_SHOWN // 2
    shown = table if len(table) <= ROWS_SHOWN else pd.concat([table.head(half), table.tail(half)])
    text = shown.to_string(float_format=lambda value: _digits(value, 4), na_rep="-")
    lines = text.splitlines()
    if len(shown) < len(table):
        lines.insert(len(lines) - half, "...")
    return [*lines, f"{len(table)} units"]


def _test_lines(table: pd.DataFrame, width: int) -> list[str]:
    if len(table) > 1:
        return table.T.to_string(float_format=lambda value: _digits(value, 3)).splitlines()
    row = table.iloc[0]
    lags = f"(L{row['lags']:.0f})"
    left = {
        f"Ljung-Box {lags} (Q):": row["ljung_box"],
        "Prob(Q):": row["ljung_box_pvalue"],
        f"Ljung-Box of squares {lags}:": row["ljung_box_squares"],
        "Prob(Q, squares):": row["ljung_box_squares_pvalue"],
    }
    right = {
        "Jarque-Bera (JB):": row["jarque_bera"],
        "Prob(JB):": row["jarque_bera_pvalue"],
        "Skew / Kurtosis:": f"{_two(row['skewness'])} / {_two(row['kurtosis'])}",
        f"ARCH-LM {lags} / Prob:": f"{_two(row['arch_lm'])} / {_two(row['arch_lm_pvalue'])}",
    }
    pairs = zip(left.items(), right.items(), strict=True)
    return [_pair((a, _two(b)), (c, d if isinstance(d, str) else _two(d)), width)
            for (a, b), (c, d) in pairs]  # fmt: skip


def _two_columns(left: Mapping[str, object], right: Mapping[str, object], width: int) -> list[str]:
    sides = [[(f"{key}:" if key else "", str(facts[key])) for key in facts]
             for facts in (left, right)]  # fmt: skip
    pairs = zip_longest(*sides, fillvalue=("", ""))
    return [_pair(a, b, width) for a, b in pairs]


def _pair(left: tuple[str, str], right: tuple[str, str], width: int) -> str:
    """Two names with values, each right-aligned in its half of the line."""
    half = (width - 3) // 2
    first, second = (
        f"{name}{value:>{max(half - len(name), len(value) + 1)}}" for name, value in (left, right)
    )
    return f"{first:<{half}}   {second}".rstrip()


def _digits(value: float, digits: int) -> str:
    """Fixed decimals, or significant digits for very small and large numbers."""
    if np.isnan(value):
        return "-"
    if value != 0 and not 10.0**-digits <= abs(value) < 1e4:
        return f"{value:.{digits}g}"
    return f"{value:.{digits}f}"


def _fixed(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def _two(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"
