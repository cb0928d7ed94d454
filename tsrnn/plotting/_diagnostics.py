"""Autocorrelations and PIT histograms of one-step errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.plotting._style import GREY, INK, PALE, SMALL, colour, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_diagnostics"]

_RANGE = (0.05, 0.95)  # of the series, where there are several
_LONGEST_NAME = 80


def plot_diagnostics(diagnostics: Any, series: Any = None) -> np.ndarray:
    """Draw autocorrelations of one-step errors and the histogram of the PIT, a row a model.

    Of several series autocorrelations are their mean, with a line from the 5 to the 95 percent
    quantile over series, and the histogram is that of all.

    Parameters
    ----------
    diagnostics : Diagnostics
        What `diagnose` gave, or anything with its tables ``acf`` and ``pit``.
    series : object, optional
        One series, by its id.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (models, 2)

    Raises
    ------
    ValueError
        If the series is not there.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import ARMA, diagnose
    >>> from tsrnn.plotting import plot_diagnostics
    >>> y = pd.Series(np.random.default_rng(0).normal(size=300))
    >>> plot_diagnostics(diagnose(ARMA(order=(1, 0)).fit(y[:200]), y[200:])).shape
    (1, 2)
    """
    import matplotlib.pyplot as plt

    acf, pit = (_of_series(frame, series) for frame in (diagnostics.acf, diagnostics.pit))
    names = list(acf.index.unique("model"))
    _, axes = plt.subplots(
        len(names), 2, figsize=(8.0, 2.3 * len(names) + 0.3), squeeze=False, layout="constrained"
    )
    for i, (name, pair) in enumerate(zip(names, axes, strict=True)):
        _draw_acf(pair[0], acf.loc[name], colour(i))
        _draw_pit(pair[1], pit.loc[name], colour(i))
        text: dict[str, Any] = {"fontsize": SMALL, "loc": "left", "parse_math": False}
        pair[0].set_title(f"{_short(str(name))}\nautocorrelation of errors", **text)
        pair[1].set_title("PIT: 1 if the model is right", **text)
    apart = getattr(diagnostics, "steps_apart", 1)
    label = "lag" if apart == 1 else f"lag, in origins {apart} steps apart"
    axes[-1, 0].set_xlabel(label, fontsize=SMALL)
    axes[-1, 1].set_xlabel("probability given to less", fontsize=SMALL)
    return axes


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 3] + "..."


def _of_series(frame: pd.DataFrame, series: Any) -> pd.DataFrame:
    if series is None:
        return frame
    ids = frame.index.get_level_values("unique_id")
    if series not in ids:
        raise ValueError(
            f"there is no series {series!r}; the first ones are {list(ids.unique()[:5])}."
        )
    return frame[ids == series]


def _draw_acf(ax: Axes, acf: pd.DataFrame, tint: str) -> None:
    from matplotlib.ticker import MaxNLocator

    if acf["acf"].isna().all():
        _draw_nothing(ax, "too few errors, or none that vary")
        return
    by_lag = acf.groupby("lag")
    mean, band = by_lag["acf"].mean(), by_lag["band"].max()
    lags = mean.index.to_numpy(dtype=float)
    ax.fill_between(lags, -band, band, color=PALE, alpha=0.5, linewidth=0, label="95% band")
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.vlines(lags, 0, mean, color=tint, linewidth=2.5)
    if acf.index.get_level_values("unique_id").nunique() > 1:
        low, high = (by_lag["acf"].quantile(q) for q in _RANGE)
        ax.vlines(lags, low, high, color=tint, linewidth=0.9, alpha=0.7)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(ax)


def _draw_pit(ax: Axes, pit: pd.DataFrame, tint: str) -> None:
    if not pit["count"].sum():
        _draw_nothing(ax, "too few errors")
        return
    bins = pit.groupby("from")
    count, to = bins["count"].sum(), bins["to"].first()
    left = count.index.to_numpy(dtype=float)
    width = to.to_numpy() - left
    total = int(count.sum())
    ax.bar(
        left, count / total / width, width, align="edge", color=tint, alpha=0.6, edgecolor="white"
    )
    ax.axhline(1.0, color=INK, linewidth=0.9, linestyle="--")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, max(1.6, np.nanmax((count / total / width).to_numpy(), initial=0.0) * 1.1))
    tidy(ax)


def _draw_nothing(ax: Axes, why: str) -> None:
    ax.text(0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", color=GREY)
    ax.set(xticks=[], yticks=[])
    tidy(ax)
