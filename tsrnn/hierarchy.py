"""Forecasts of hierarchies that add up: forecasters of tsrnn reconciled by hierarchicalforecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from tsrnn.contract import Forecaster, check_levels, choice, level_name, seed_of

__all__ = ["reconcile"]

METHODS = (
    "bottom_up", "top_down", "ols", "wls_struct", "wls_var", "mint_cov", "mint_shrink",
)  # fmt: skip
# Not "permbu": it orders samples that were not sorted, and so loses the dependence of series.
INTERVALS = ("normality", "bootstrap")
NEEDS_FITTED = ("wls_var", "mint_cov", "mint_shrink", "bootstrap")
_SERIES = "__series__"  # while levels are named: a column of the levels may be called unique_id


def reconcile(
    forecaster: Forecaster[Any],
    df: pd.DataFrame,
    spec: Sequence[Sequence[str]],
    *,
    h: int | None = None,
    level: Any = None,
    method: Any = "mint_shrink",
    intervals: str = "normality",
    random_state: Any = 0,
) -> pd.DataFrame:
    r"""Forecast all levels of a hierarchy and reconcile: forecasts of parts add up to their sum's.

    The series of `df` are added up to every level, a forecaster is fitted to all of them in one
    batch, and its forecasts :math:`\hat y` become

    .. math:: \tilde y = S P \hat y

    with the summing matrix S and P of a method (Wickramasuriya, Athanasopoulos, Hyndman, 2019).

    Parameters
    ----------
    forecaster : forecaster of tsrnn
        For one target, without exogenous columns. It is copied, and not fitted itself.
    df : pandas.DataFrame
        Long, a row a series of the lowest level and time: the columns of `spec`, those of time and
        target that the forecaster names, and perhaps others, which are not read.
    spec : sequence of sequences of str
        Columns of each level, the last with all of them: ``[["country"], ["country", "region"]]``.
        Series are named by the values of these columns, with a slash between.
    h : int, optional
        Steps; `horizon` of the forecaster by default.
    level : float or list of float, optional
        Coverage of intervals in percent.
    method : {"mint_shrink", "mint_cov", "wls_var", "wls_struct", "ols", "bottom_up", "top_down"}
        Minimum trace with the covariance of one-step errors, shrunk or not, or with their
        variances; with the number of lowest series as variance; unweighted; the sums of the lowest
        forecasts; the highest ones shared as the forecasts below are. The first three need fitted
        values, as the models of `tsrnn.linear` have them. A reconciler of
        ``hierarchicalforecast.methods`` is taken as well.
    intervals : {"normality", "bootstrap"}
        Normal, with the spread of the forecaster's intervals and the correlations that the method
        estimates: those of "mint_shrink" and "mint_cov", while the others take errors to be
        uncorrelated, and so give sums of series that move together too little width. Or errors
        of one step within the data, drawn together, at all steps; "top_down" needs these.
    random_state : int or Generator
        Of the draws.

    Returns
    -------
    DataFrame
        The forecasts of all series as the forecaster writes them. Point forecasts add up, ends of
        intervals, which are quantiles, do not.

    Raises
    ------
    ImportError
        If hierarchicalforecast is not installed: ``pip install 'tsrnn[hierarchy]'``.
    TypeError, ValueError
        If an argument or the data cannot be used, or a series could not be fitted.

    References
    ----------
    Wickramasuriya, S. L., Athanasopoulos, G., Hyndman, R. J. (2019). Optimal forecast
    reconciliation for hierarchical and grouped time series through trace minimization. JASA.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn import ARMA, hierarchy
    >>> visitors = pd.DataFrame({"country": "all", "region": ["N", "S"] * 20, "y": range(40)})
    >>> visitors["ds"] = visitors.index // 2
    >>> spec = [["country"], ["country", "region"]]
    >>> forecasts = hierarchy.reconcile(ARMA(), visitors, spec, h=1)  # doctest: +SKIP
    >>> forecasts["unique_id"].tolist()  # doctest: +SKIP
    ['all', 'all/N', 'all/S']
    """
    try:
        from hierarchicalforecast import core, methods, utils
    except ImportError as error:
        raise ImportError(
            "tsrnn.hierarchy.reconcile needs hierarchicalforecast: pip install 'tsrnn[hierarchy]'"
        ) from error
    if not isinstance(method, str) and hasattr(method, "fit_predict"):
        reconciler, needs_fitted = method, bool(getattr(method, "insample", False))
    else:
        name = choice("method", method, METHODS)
        reconciler, needs_fitted = _reconciler(methods, name), name in NEEDS_FITTED
    drawn = choice("intervals", intervals, INTERVALS) in NEEDS_FITTED or method == "top_down"
    needs_fitted |= drawn and level is not None
    levels, seed = check_levels(level), seed_of(random_state)
    params = forecaster.get_params()
    id_col, time_col, target = params["id_col"], params["time_col"], params["target"] or "y"
    keys = [id_col, time_col]
    data, sums, tags = _levels(utils, df, spec, time_col, target)
    data, sums = (frame.rename(columns={_SERIES: id_col}) for frame in (data, sums))

    model = clone(forecaster).fit(data)
    column = model.column_name
    if needs_fitted:
        if not hasattr(model, "fittedvalues"):
            raise ValueError(
                f"method={method!r} with intervals={intervals!r} needs fitted values within the "
                f"data, which {type(model).__name__} does not have. Take method='wls_struct', "
                "'ols' or 'bottom_up' with intervals='normality', or a model of tsrnn.linear"
            )
        fitted = model.fittedvalues().rename(columns={"fitted": column})
        data = data.merge(fitted[[*keys, column]], on=keys, how="left", validate="1:1")
    base = model.predict(h=h, level=levels or None)
    lost = base.loc[base[column].isna(), id_col].unique()
    if len(lost):
        raise ValueError(
            f"every series must have a forecast to be reconciled; {lost[0]!r} has none, as "
            f"{type(model).__name__} could not be fitted to it. Take another model, or leave the "
            "series out"
        )
    result = core.HierarchicalReconciliation([reconciler]).reconcile(
        Y_hat_df=base, S_df=sums, tags=tags, Y_df=data, level=list(levels) or None,
        intervals_method=intervals, seed=seed, is_balanced=True, id_col=id_col,
        time_col=time_col, target_col=target,
    )  # fmt: skip
    return _written(result, base, keys, column, levels, intervals)


def _reconciler(methods: Any, name: str) -> Any:
    if name == "bottom_up":
        return methods.BottomUp()
    if name == "top_down":
        return methods.TopDown(method="forecast_proportions")
    return methods.MinTrace(method=name)


def _levels(
    utils: Any, df: Any, spec: Sequence[Sequence[str]], time_col: str, target: Any
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, np.ndarray]]:
    """Series of all levels, the summing matrix as a frame, and the names of series by level."""
    if not isinstance(df, pd.DataFrame):
        raise TypeError(f"df must be a pandas frame in long form; got {type(df).__name__}")
    if not isinstance(target, str):
        raise ValueError(f"a hierarchy is of one target; got target={target!r}")
    legal = isinstance(spec, Sequence) and not isinstance(spec, str) and len(spec) > 0
    if not legal or any(isinstance(columns, str) or not columns for columns in spec):
        raise ValueError(
            "spec must be lists of columns, a list a level, such as [['country'], ['country', "
            f"'region']]; got {spec!r}"
        )
    lists = [list(columns) for columns in spec]
    bottom = max(lists, key=len)
    absent = {name for columns in lists for name in columns} - set(bottom)
    if absent:
        raise ValueError(
            f"the lowest level of spec, {bottom}, must have all columns; it lacks {sorted(absent)}"
        )
    lacking = [name for name in (*bottom, time_col, target) if name not in df.columns]
    if lacking:
        raise ValueError(f"df must have the columns {lacking}; it has {list(df.columns)}")
    frame = df[[*bottom, time_col, target]]
    missing = frame.isna().any()
    if missing.any():
        raise ValueError(f"column {missing.idxmax()!r} must have no missing values: sums need all")
    counts = frame.groupby(bottom, observed=True)[time_col].agg(["size", "nunique"])
    times = frame[time_col].nunique()
    uneven = counts[(counts["size"] != times) | (counts["nunique"] != times)]
    if len(uneven):
        raise ValueError(
            f"every series must have one row at each of the {times} times, as a sum over fewer is "
            f"another series; {uneven.index[0]!r} has {uneven['size'].iloc[0]} rows. Write zeros "
            "where there was nothing, or leave the series out"
        )
    frame = frame.astype(dict.fromkeys(bottom, str))
    parts = utils.aggregate(
        frame, lists, id_col=_SERIES, time_col=time_col, target_cols=(target,)
    )  # fmt: skip
    return parts[0], parts[1], parts[2]


def _written(
    result: pd.DataFrame,
    base: pd.DataFrame,
    keys: list[str],
    column: str,
    levels: list[float],
    intervals: str,
) -> pd.DataFrame:
    """Reconciled forecasts under the names of the forecaster's columns, and what they promise."""
    mean = next(name for name in result.columns if name.startswith(f"{column}/"))
    columns = {column: mean}
    for share in levels:
        for end in ("lo", "hi"):
            columns[f"{column}-{end}-{level_name(share)}"] = f"{mean}-{end}-{share}"
    written = result[keys].reset_index(drop=True)
    for name, source in columns.items():
        written[name] = result[source].to_numpy()
    written.attrs = dict(base.attrs)
    if levels:
        written.attrs["guarantee"] = (
            f"Reconciled, intervals by {intervals}. Asymptotic, as those of the forecaster, and if "
            "errors ahead are correlated between series as the method takes them to be."
        )
    return written
