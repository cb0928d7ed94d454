"""Forecasts of hierarchies that add up: forecasters of tsrnn, reconciled with their intervals."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from tsrnn.contract import (
    Forecaster,
    IntervalWarning,
    Support,
    check_levels,
    choice,
    level_name,
    within_supports,
)
from tsrnn.data import array_advice, check_numeric, quote, quoted, warn_user

__all__ = ["reconcile"]

METHODS = (
    "bottom_up", "top_down", "ols", "wls_struct", "wls_var", "mint_cov", "mint_shrink",
)  # fmt: skip
INTERVALS = ("normality", "bootstrap")
WEIGHTED = ("wls_var", "mint_cov", "mint_shrink")  # by one-step errors
ROUNDING = 1e-7  # width over the widest of its step below which a cancelled variance is rounding
FEWEST_ERRORS = 3  # times with errors of all series that correlations need


def reconcile(
    forecaster: Forecaster[Any],
    df: pd.DataFrame,
    spec: Sequence[Sequence[str]],
    *,
    h: int | None = None,
    level: Any = None,
    method: Any = "mint_shrink",
    intervals: str = "normality",
) -> pd.DataFrame:
    r"""Forecast all levels of a hierarchy, and reconcile: forecasts of parts add up to their sums.

    The series of `df` are summed to every level, a forecaster is fitted to all of them in one
    batch, and its forecasts :math:`\hat y` become

    .. math:: \tilde y = S P \hat y

    with the summing matrix S and P of a method (Wickramasuriya, Athanasopoulos, Hyndman, 2019).

    Parameters
    ----------
    forecaster : forecaster of tsrnn
        For one target, without exogenous columns. A copy is fitted.
    df : pandas.DataFrame
        Long, a row per time and series of the lowest level: the columns of `spec`, and the time and
        target columns of the forecaster. Other columns are ignored.
    spec : sequence of sequences of str
        Columns of each level, the last with all of them: ``[["country"], ["country", "region"]]``.
        Series are named by the values of these columns, with a slash between.
    h : int, optional
        Steps; `horizon` of the forecaster by default.
    level : float or list of float, optional
        Coverage of intervals in percent.
    method : {"mint_shrink", "mint_cov", "wls_var", "wls_struct", "ols", "bottom_up", "top_down"}
        Minimum trace with the covariance of one-step errors, shrunk or not, or with their
        variances; with the number of lowest series as variance; unweighted; sums of the lowest
        forecasts; the highest forecast split in proportion to the forecasts below. Reconcilers of
        ``hierarchicalforecast.methods`` are accepted as well.
    intervals : {"normality", "bootstrap"}
        "normality" takes the variances of :math:`S P W P' S'`, where W has the widths of the
        forecaster's intervals and the correlations of its one-step errors. "bootstrap" takes
        quantiles of these errors, joint over series, reconciled, and widened at later steps like
        the forecaster's intervals; "top_down" needs it.

    Returns
    -------
    DataFrame
        Forecasts of all series in the format of the forecaster. Point forecasts add up; ends of
        intervals, which are quantiles, do not.

    Raises
    ------
    ImportError
        If a reconciler is given and hierarchicalforecast cannot be imported.
    TypeError, ValueError
        If an argument or the data cannot be used, or a series could not be fitted.

    Notes
    -----
    One-step errors come from ``fittedvalues()`` of the models of `tsrnn.linear`. Other forecasters
    are fitted a second time, to the first two thirds of the rows, and forecast the last third one
    step ahead. A constant series has no errors: methods that weight by errors leave its forecast
    unchanged.

    If the `support` of the forecaster excludes negative values, negative forecasts of the lowest
    level are set to zero before they are summed. Ends of intervals are cut at zero, and rounded for
    counts; bootstrap draws are cut at the lowest level and summed. Upper bounds, such as those of
    shares, do not hold for sums: a support with one is refused.

    Intervals need :math:`P S = I`: only then is the error of a reconciled forecast :math:`S P`
    times the error of the forecasts. Top-down with fixed shares, and reconcilers that constrain
    their forecasts, ignore the error of the shares or the constraint, and are refused with `level`.

    References
    ----------
    Wickramasuriya, S. L., Athanasopoulos, G., Hyndman, R. J. (2019). Optimal forecast
    reconciliation for hierarchical and grouped time series through trace minimization. JASA.

    Panagiotelis, A., Gamakumara, P., Athanasopoulos, G., Hyndman, R. J. (2023). Probabilistic
    forecast reconciliation: properties, evaluation and score optimisation. EJOR.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import ARMA, hierarchy
    >>> visitors = pd.DataFrame({"country": "all", "region": ["N", "S"] * 20})
    >>> visitors["y"] = np.random.default_rng(0).normal(size=40)
    >>> visitors["ds"] = visitors.index // 2
    >>> spec = [["country"], ["country", "region"]]
    >>> forecasts = hierarchy.reconcile(ARMA(order=(1, 0)), visitors, spec, h=1)
    >>> forecasts["unique_id"].tolist()
    ['all', 'all/N', 'all/S']
    """
    levels = _check_arguments(forecaster, method, intervals, level)
    params = forecaster.get_params()
    id_col, time_col, target = params["id_col"], params["time_col"], params["target"] or "y"
    tree = _read_hierarchy(df, spec, time_col, target)
    data = tree.long_frame(id_col, time_col, target)
    model = clone(forecaster).fit(data)
    (support,) = model.fitted_.data.supports
    if np.isfinite(support.upper):
        raise ValueError(
            "sums have no upper bound; those of "
            f"{quote(model.fitted_.data.layout.target_names[0])} would be cut by "
            f"support={support.value!r}. Give support='nonnegative' or 'real'"
        )
    # On the real line, so that widths are not cut or rounded by the support.
    model.fitted_ = model.fitted_.with_supports((Support.of("real"),))
    column = model.column_name
    with warnings.catch_warnings():
        # Only reconciled intervals are checked, below: a constant may get width from other series.
        warnings.filterwarnings("ignore", r"intervals of .* have no width", IntervalWarning)
        base = _in_order(model.predict(h=h, level=levels or None), tree.names, id_col)
    point = _complete(base[column], tree.names, type(model).__name__)
    errors = np.full_like(tree.values, np.nan)
    if levels or method in WEIGHTED or getattr(method, "insample", False):
        errors = _one_step_errors(forecaster, model, data, tree, [id_col, time_col])
    known = errors[:, np.isfinite(errors).all(axis=0)]
    linear: np.ndarray | None = None  # S P, unless the method is not linear
    if not isinstance(method, str):
        reconciled, linear = _reconcile_by(method, tree, point, errors, needs_linear=bool(levels))
    elif method == "top_down":
        reconciled = _share_down(tree, point)
    else:
        linear = _projection(method, tree, point, known)
        reconciled = linear @ point
    floor = support.lower
    reconciled = _not_below(tree, reconciled, floor)
    written = base[[id_col, time_col]].reset_index(drop=True)
    written[column] = reconciled.ravel()
    flat = np.zeros(len(tree.names), bool)  # series without a width
    for share in levels:
        ends = [f"{column}-{end}-{level_name(share)}" for end in ("lo", "hi")]
        lower, upper = (base[end].to_numpy(float).reshape(point.shape) for end in ends)
        if intervals == "bootstrap":
            bounds = _error_quantiles(tree, linear, point, upper - lower, known, share, floor)
        else:
            assert linear is not None  # only "top_down" has None, and is refused above
            width = _reconciled_width(linear, (upper - lower) / 2, known)
            bounds = reconciled - width, reconciled + width
        flat |= (bounds[1] == bounds[0]).any(axis=1)
        inside = within_supports(
            {
                f"-{end}-": values[..., None]
                for end, values in zip(("lo", "hi"), bounds, strict=True)
            },
            [support],
        )
        for end, values in zip(ends, inside.values(), strict=True):
            written[end] = values.ravel()
    if flat.any():
        names = [name for name, still in zip(tree.names, flat, strict=True) if still]
        warn_user(
            f"intervals of {quoted(names, 3)} have no width: their forecast errors are zero. They "
            "guarantee nothing if coming values differ. Give rows in which the series vary",
            IntervalWarning,
        )
    written.attrs = dict(base.attrs)
    if levels:
        written.attrs["guarantee"] = (
            f"Reconciled, intervals by {intervals}. Asymptotic, as those of the forecaster, and if "
            "errors ahead are correlated between series as those of one step were."
        )
    return written


def _check_arguments(forecaster: Any, method: Any, intervals: Any, level: Any) -> list[float]:
    """Check the arguments, and return the levels as a list."""
    if not isinstance(forecaster, Forecaster):
        raise TypeError(
            f"forecaster must be a forecaster of tsrnn, such as ARMA(); got {forecaster!r}"
        )
    if isinstance(method, str) or not hasattr(method, "fit_predict"):
        choice("method", method, METHODS)
    choice("intervals", intervals, INTERVALS)
    levels = list(check_levels(level))
    if levels and method == "top_down" and intervals == "normality":
        raise ValueError(
            "method='top_down' has no normal intervals, as its shares are forecasts too. Pass "
            "intervals='bootstrap', or another method"
        )
    return levels


class _Hierarchy(NamedTuple):
    """Series of all levels, the lowest last."""

    names: list[str]
    levels: dict[str, np.ndarray]  # (n_bottom,): row of the series that has each lowest one
    times: pd.Index
    values: np.ndarray  # (n, T)
    summing: np.ndarray  # (n, n_bottom)

    def long_frame(self, id_col: str, time_col: str, target: str) -> pd.DataFrame:
        """Rows of all series, one series after the other."""
        n, n_times = self.values.shape
        return pd.DataFrame(
            {
                id_col: np.repeat(np.array(self.names, dtype=object), n_times),
                time_col: self.times.take(np.tile(np.arange(n_times), n)),
                target: self.values.ravel(),
            }
        )


def _read_hierarchy(
    df: Any, spec: Sequence[Sequence[str]], time_col: Any, target: Any
) -> _Hierarchy:
    """Sum rows of the lowest level to the series of all levels."""
    if isinstance(target, list | tuple):
        raise ValueError(f"a hierarchy is of one target; got target={quote(target)}")
    lists = _read_spec(spec)
    if not isinstance(df, pd.DataFrame):
        columns = [*lists[-1], time_col, target]
        raise TypeError(
            f"df must be a pandas frame in long form; got {type(df).__name__}."
            f"{array_advice(df, columns)}"
        )
    _check_present(df, lists, time_col, target)
    _check_levels(lists)
    bottom = lists[-1]
    frame = _read_rows(df, [*bottom, time_col, target])
    # As text, since values become parts of names, where 1 and "1" are the same.
    text = frame[bottom].astype(str)
    series = text.groupby(bottom, observed=True).ngroup().to_numpy()
    stamps, y = frame[time_col], frame[target].to_numpy(float)
    counts = stamps.groupby(series).agg(["size", "nunique"])
    n_times = stamps.nunique()
    uneven = counts[(counts["size"] != n_times) | (counts["nunique"] != n_times)]
    if len(uneven):
        first = tuple(text.iloc[int((series == uneven.index[0]).argmax())])
        raise ValueError(
            f"every series must have one row at each of the {n_times} times, as a sum over fewer "
            f"is another series; {quote(first)} has {uneven['size'].iloc[0]} rows. Write zeros "
            "where there was nothing, or leave the series out"
        )
    try:
        time, times = pd.factorize(stamps, sort=True)
    except TypeError as error:
        raise TypeError(
            f"column {quote(time_col)} must have times of one type, which can be sorted; got "
            f"{quote(stamps.iloc[0])} among others. Convert them with pandas.to_datetime"
        ) from error
    lowest = np.empty((len(counts), n_times))
    lowest[series, time] = y
    # The first row of each lowest series has the values that name it.
    keys = text.iloc[np.unique(series, return_index=True)[1]]
    names: list[str] = []
    levels: dict[str, np.ndarray] = {}
    for columns in lists:
        group = keys.groupby(columns, observed=True).ngroup().to_numpy()
        named = keys.iloc[np.unique(group, return_index=True)[1]]
        levels["/".join(map(str, columns))] = len(names) + group
        names += ["/".join(values) for values in named[columns].to_numpy()]
    doubled = pd.Index(names).duplicated()
    if doubled.any():
        raise ValueError(
            "series are named by the values of their columns with a slash between, and two would "
            f"be {quote(names[int(doubled.argmax())])}. Rename values, so that each name is of one "
            "series"
        )
    summing = np.zeros((len(names), len(keys)))
    for rows in levels.values():
        summing[rows, np.arange(len(keys))] = 1
    return _Hierarchy(names, levels, pd.Index(times), summing @ lowest, summing)


def _check_present(df: pd.DataFrame, lists: list[list[Any]], time_col: Any, target: Any) -> None:
    """Refuse a frame without the columns of levels, times and target."""
    names = dict.fromkeys(name for columns in lists for name in columns)
    absent = [name for name in names if name not in df.columns]
    if absent:
        raise ValueError(
            f"spec must name columns of df; it names {quoted(absent)}, and df has "
            f"{quoted(df.columns, 10)}. Correct spec, or add the column to df"
        )
    for role, name in (("time_col", time_col), ("target", target)):
        if name not in df.columns:
            raise ValueError(
                f"df must have the column {quote(name)} of {role}; it has "
                f"{quoted(df.columns, 10)}. Give {role} to the forecaster, or rename the column"
            )


def _read_rows(df: pd.DataFrame, columns: list[Any]) -> pd.DataFrame:
    """Select columns, the target last; refuse missing and infinite values."""
    target = columns[-1]
    frame = df[columns]
    if frame.shape[1] != len(columns) or len(set(columns)) != len(columns):
        raise ValueError(
            f"df must have each of the columns {quote(columns)} once, for levels, times and "
            "target; rename what is there twice"
        )
    if not len(frame):
        raise ValueError("df must have rows, one for each series of the lowest level and time")
    check_numeric(frame, [target], "the target", booleans=False)
    y = frame[target]
    missing = frame.isna().any()
    if missing.any():
        raise ValueError(
            f"column {quote(missing.idxmax())} must have no missing values: sums need all"
        )
    endless = np.isinf(y.to_numpy(float)).sum()
    if endless:
        raise ValueError(f"column {quote(target)} must be finite: sums need all; {endless} are not")
    return frame


def _read_spec(spec: Any) -> list[list[Any]]:
    """Check `spec`, and return the columns of each level as lists."""
    legal = isinstance(spec, Sequence) and not isinstance(spec, str) and len(spec) > 0
    if not legal or any(
        isinstance(columns, str) or not isinstance(columns, Sequence) or not columns
        or not all(isinstance(name, Hashable) for name in columns)
        for columns in spec
    ):  # fmt: skip
        raise ValueError(
            "spec must be lists of columns, a list a level, such as [['country'], ['country', "
            f"'region']]; got {spec!r}"
        )
    return [list(columns) for columns in spec]


def _check_levels(lists: list[list[Any]]) -> None:
    """Refuse levels with columns outside the last one, and repetitions."""
    bottom = lists[-1]
    absent = {name for columns in lists for name in columns} - set(bottom)
    if absent:
        raise ValueError(
            f"the lowest level of spec, {quote(bottom)}, must be the last and have all columns; it "
            f"lacks {quote(sorted(absent, key=str))}. Put it last, or add these columns to it"
        )
    sets = [frozenset(columns) for columns in lists]
    if any(len(columns) != len(names) for columns, names in zip(sets, lists, strict=True)) or len(
        set(sets)
    ) != len(sets):
        raise ValueError(
            "spec must name each column of a level, and each level, once; got "
            f"{quote(lists)}. Drop what is there twice"
        )


def _check_tree(tree: _Hierarchy) -> None:
    """Refuse crossing levels, where a part would be a share of two sums."""
    for upper, lower in pairwise(tree.levels.values()):
        pairs = np.unique(np.stack([lower, upper]), axis=1)
        crossing = np.flatnonzero(np.diff(pairs[0]) == 0)
        if len(crossing):
            child, first, second = *pairs[:, crossing[0]], pairs[1, crossing[0] + 1]
            raise ValueError(
                "method='top_down' shares each series among those of the next level of spec, which "
                f"must lie in one each; {quote(tree.names[child])} lies in "
                f"{quote(tree.names[first])} and in {quote(tree.names[second])}. Order the levels "
                "as a tree, or take another method"
            )


def _in_order(frame: pd.DataFrame, names: list[str], id_col: str) -> pd.DataFrame:
    """Sort the rows of a frame by series, in the order of `names`."""
    return frame.iloc[
        np.argsort(pd.Index(names).get_indexer(pd.Index(frame[id_col])), kind="stable")
    ]


def _complete(column: pd.Series, names: list[str], model: str) -> np.ndarray:
    """Forecasts (n, h) of all series; refuse a missing one."""
    point = column.to_numpy(float).reshape(len(names), -1)
    lost = np.isnan(point).any(axis=1)
    if lost.any():
        raise ValueError(
            "every series must have a forecast to be reconciled; "
            f"{quote(names[int(lost.argmax())])} has none, as {model} could not be fitted to it. "
            "Take another model, or leave the series out"
        )
    return point


def _one_step_errors(
    forecaster: Forecaster[Any], model: Any, data: pd.DataFrame, tree: _Hierarchy, keys: list[str]
) -> np.ndarray:
    """Errors of one-step forecasts (n, T), NaN where missing."""
    if hasattr(model, "fittedvalues"):
        fitted = model.fittedvalues().set_index(keys)["fitted"]
    else:
        # Two thirds to estimate, one third of errors for the correlations.
        early = data[keys[1]] < tree.times[2 * len(tree.times) // 3]
        rolled = clone(forecaster).fit(data[early]).predict_rolling(data[~early], h=1)
        fitted = rolled.set_index(keys)[model.column_name]
    forecasts = fitted.reindex(pd.MultiIndex.from_frame(data[keys])).to_numpy(float)
    errors = tree.values - forecasts.reshape(tree.values.shape)
    count = int(np.isfinite(errors).all(axis=0).sum())
    if count < FEWEST_ERRORS:
        raise ValueError(
            f"at least {FEWEST_ERRORS} times must have one-step errors of all series; "
            f"{type(model).__name__} has {count}, from {len(tree.times)} rows a series. Give more "
            "rows, or take method='bottom_up', 'ols' or 'wls_struct' without level"
        )
    # Errors at rounding level are set to zero.
    exact = np.nanmax(np.abs(errors), axis=1) <= 1e-10 * np.abs(tree.values).max(axis=1)
    return np.where(exact[:, None], 0 * errors, errors)


def _projection(method: str, tree: _Hierarchy, point: np.ndarray, errors: np.ndarray) -> np.ndarray:
    r"""Matrix S P (n, n) of a linear method, from errors (n, T') of all series.

    With constraints C, where C y = 0 for series that add up, minimum trace has

    .. math:: S P = I - W C' (C W C')^+ C,

    which needs no inverse of W, so that W may be singular, as with series without errors.
    """
    S = tree.summing
    n, n_bottom = S.shape
    n_sums = n - n_bottom
    if method == "bottom_up":
        return np.hstack([np.zeros((n, n_sums)), S])
    if method == "ols":
        W = np.eye(n)
    elif method == "wls_struct":
        W = np.diag(S.sum(axis=1))
    elif method == "wls_var":
        W = np.diag((errors**2).mean(axis=1))
    else:
        W = np.cov(errors) if method == "mint_cov" else _shrunk_covariance(errors)
    C = np.hstack([np.eye(n_sums), -S[:n_sums]])
    # Constraints in units of their errors, so that series of any size weigh alike.
    size = np.sqrt(np.abs(C) @ np.diag(W))
    scaled = C / np.where(size > 0, size, 1.0)[:, None]
    # If errors already add up, as those of linear methods do, constraint errors are rounding, with
    # variances below 1e-10 in these units.
    values, vectors = np.linalg.eigh(scaled @ W @ scaled.T)
    vectors = vectors[:, values > 1e-10]
    inverse = vectors / values[values > 1e-10] @ vectors.T
    whole = np.eye(n) - W @ scaled.T @ inverse @ scaled
    left = np.abs(C @ whole @ point)
    allowed = 1e-3 * size[:, None] + 1e-6 * np.abs(C) @ np.abs(point)
    if (left > allowed).any():
        worst = int((left - allowed).max(axis=1).argmax())
        raise ValueError(
            f"method={method!r} cannot make the forecasts of {quote(tree.names[worst])} add up: it "
            f"needs errors at more times than there are sums, {n_sums}, and there are "
            f"{errors.shape[1]}. Give more rows, or take method='mint_shrink'"
        )
    return S @ whole[n_sums:]


def _shrunk_covariance(errors: np.ndarray) -> np.ndarray:
    r"""Covariance of errors (n, T) with correlations shrunk to zero.

    The share is :math:`\sum_{i \ne j} \widehat{Var}(r_{ij}) / \sum_{i \ne j} r_{ij}^2` (Schäfer and
    Strimmer, 2005), over series with errors.
    """
    count = errors.shape[1]
    deviation = errors.std(axis=1, ddof=1)
    scale = np.where(deviation > 0, deviation, 1.0)[:, None]
    z = (errors - errors.mean(axis=1, keepdims=True)) / scale
    mean = z @ z.T / count
    variance = count / (count - 1) ** 3 * (z**2 @ (z**2).T - count * mean**2)
    correlation = mean * count / (count - 1)
    away = ~np.eye(len(z), dtype=bool)
    total = (correlation[away] ** 2).sum()
    share = min(1.0, variance[away].sum() / total) if total > 0 else 1.0
    return np.where(away, 1 - share, 1.0) * correlation * np.outer(deviation, deviation)


def _share_down(tree: _Hierarchy, values: np.ndarray) -> np.ndarray:
    """Split values (n, m) of the highest level in proportion to the values of each level below."""
    _check_tree(tree)
    shared = values.copy()
    for upper, lower in pairwise(tree.levels.values()):
        children, first = np.unique(lower, return_index=True)
        parents = upper[first]
        sums, sizes = np.zeros_like(values), np.zeros_like(values)
        np.add.at(sums, parents, values[children])
        np.add.at(sizes, parents, np.abs(values[children]))
        alike = 1 / np.bincount(parents, minlength=len(values))[parents, None]
        # Parts that cancel out get equal shares, as in hierarchicalforecast.
        none = np.abs(sums) <= 1e-10 * sizes
        share = values[children] / np.where(none, 1.0, sums)[parents]
        shared[children] = np.where(none[parents], alike, share) * shared[parents]
    return shared


def _not_below(tree: _Hierarchy, values: np.ndarray, floor: float) -> np.ndarray:
    """Cut values (n, m) of the lowest level at `floor`, and sum them to all levels."""
    lowest = values[-tree.summing.shape[1] :]
    # Nothing to cut: summing again would only round.
    return values if (lowest >= floor).all() else tree.summing @ np.maximum(lowest, floor)


def _reconcile_by(
    method: Any, tree: _Hierarchy, point: np.ndarray, errors: np.ndarray, *, needs_linear: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Forecasts (n, h) by a reconciler of hierarchicalforecast, and its S P if it has one.

    Numbers replace the names of series, which the library splits at slashes.
    """
    try:
        from hierarchicalforecast.core import HierarchicalReconciliation
    except ImportError as error:
        raise ImportError(
            "a reconciler in the place of a name needs hierarchicalforecast: "
            "pip install 'tsrnn[hierarchy]'"
        ) from error
    n, n_bottom = tree.summing.shape
    ids = np.array([f"{i:09d}" for i in range(n)], dtype=object)

    def long(**columns: np.ndarray) -> pd.DataFrame:
        count = next(iter(columns.values())).shape[1]
        keys = {"unique_id": np.repeat(ids, count), "ds": np.tile(np.arange(count), n)}
        return pd.DataFrame(keys | {name: values.ravel() for name, values in columns.items()})

    known = long(y=tree.values, forecast=tree.values - errors)
    sums = pd.DataFrame(tree.summing, columns=ids[n - n_bottom :])
    sums.insert(0, "unique_id", ids)
    reconciler, name = copy.deepcopy(method), type(method).__name__
    try:
        # Warnings are of divisions and matrices in the library; forecasts are checked below.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = HierarchicalReconciliation([reconciler]).reconcile(
                Y_hat_df=long(forecast=point), S_df=sums, is_balanced=True,
                Y_df=None if np.isnan(errors).all() else known,
                tags={label: ids[np.unique(rows)] for label, rows in tree.levels.items()},
            )  # fmt: skip
    except Exception as error:
        raise ValueError(
            f"{name} could not reconcile these {n} series: {type(error).__name__}: {error}. Take "
            f"another reconciler, or one of the methods {METHODS}"
        ) from error
    column = next(label for label in result.columns if label.startswith("forecast/"))
    reconciled = result[column].to_numpy(float).reshape(n, -1)
    if not np.isfinite(reconciled).all():
        lost = tree.names[int((~np.isfinite(reconciled)).any(axis=1).argmax())]
        raise ValueError(f"{name} has no finite forecast of {quote(lost)}. Take another reconciler")
    P = getattr(reconciler, "P", None)
    linear = None if P is None else tree.summing @ np.asarray(P @ np.eye(n))
    exact = linear is not None and np.allclose(linear @ tree.summing, tree.summing, atol=1e-6)
    if needs_linear and not (exact and np.allclose(linear @ point, reconciled)):
        raise ValueError(
            f"{name} has no intervals: they need forecasts S P y with P S = I, whose errors are "
            "S P times those of y; errors of its shares, estimates or constraints would be left "
            f"out. Leave out level, or take one of the methods {METHODS}"
        )
    return reconciled, linear


def _reconciled_width(linear: np.ndarray, width: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Roots of the diagonal of S P W P' S', from widths (n, h) and correlations of errors."""
    covariance = np.cov(errors)
    deviation = np.sqrt(np.diag(covariance))
    scale = np.where(deviation > 0, deviation, 1.0)
    correlation = covariance / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)  # also for series without errors
    steps = [linear * w for w in width.T]
    variance = np.array(
        [np.einsum("ij,jk,ik->i", A, correlation, A, optimize=True) for A in steps]
    ).T
    # Where errors cancel, the variance is rounding of either sign.
    reconciled = np.sqrt(np.maximum(variance, 0.0))
    return np.where(reconciled > ROUNDING * width.max(axis=0), reconciled, 0.0)


def _error_quantiles(
    tree: _Hierarchy,
    linear: np.ndarray | None,
    point: np.ndarray,
    width: np.ndarray,
    errors: np.ndarray,
    level: float,
    floor: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of intervals (n, h): quantiles of reconciled forecasts plus the errors of each time.

    Errors grow over the steps like the intervals of the forecaster, `width`. Values of the lowest
    level are cut at `floor`.
    """
    count, tail = errors.shape[1], (1 - level / 100) / 2
    # No quantile is known beyond the smallest error; 1e-9 absorbs rounding.
    needed = int(np.ceil(1 / tail - 1e-9)) - 1
    if count < needed:
        raise ValueError(
            f"intervals='bootstrap' of level {level:g} need one-step errors at {needed} times at "
            f"least; there are {count}. Give more rows, ask for a lower level, or take "
            "intervals='normality'"
        )
    first = width[:, :1]
    growth = np.where(first > 0, width / np.where(first > 0, first, 1.0), 1.0)
    ends = np.empty((2, *point.shape))
    for step in range(point.shape[1]):
        ahead = point[:, [step]] + growth[:, [step]] * errors
        ahead = _share_down(tree, ahead) if linear is None else linear @ ahead
        ahead = _not_below(tree, ahead, floor)
        # Weibull's definition: a new error exceeds the quantile with the right probability.
        ends[:, :, step] = np.quantile(ahead, [tail, 1 - tail], axis=1, method="weibull")
    return ends[0], ends[1]


def __dir__() -> list[str]:
    return sorted(__all__)
