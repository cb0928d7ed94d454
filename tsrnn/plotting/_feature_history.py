"""Plot of the types of recurrence features by epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tsrnn.plotting._style import PALE, PALETTE, SMALL, tidy, whole_ticks

_KINDS = {"R": PALETTE[0], "C": PALETTE[1]}
_FADE = 0.6  # factor of the colour strength from one order to the next
_COLUMNS = ("training", "epoch", "layer", "type")


def plot_feature_history(frame: pd.DataFrame, training: int | None = None) -> np.ndarray:
    """Draw the shares of the types of recurrence features during training.

    Rows of panels are recurrent matrices, columns are layers, as in Figure 3 of Cai et al. (2026).
    Decays (R) are stacked from below and damped waves (C) from above, with the lowest orders
    outermost; higher orders are paler. The label names the epoch whose weights were kept. If it is
    epoch 0, the network has learned nothing.

    Parameters
    ----------
    frame : DataFrame
        ``frame`` of a `tsrnn.interpret.FeatureHistory`. Select rows to draw some layers, matrices
        or epochs only.
    training : int, optional
        Number of the training, the first by default. A forecaster with ``refit=True`` trains
        twice, ensembles train more often.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (matrices, layers)
        In a new figure, ``axes[0, 0].figure``.

    Raises
    ------
    TypeError
        If `frame` is no DataFrame.
    ValueError
        If it lacks columns or the training, or has fewer than two epochs of it.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.interpret import jordan_block, recurrence_features
    >>> from tsrnn.plotting import plot_feature_history
    >>> defective = recurrence_features(jordan_block(0.9, 0.5, 2)).assign(epoch=0)
    >>> simple = recurrence_features([[0.9, 0.1], [-0.1, 0.9]]).assign(epoch=1)
    >>> axes = plot_feature_history(pd.concat([defective, simple]).assign(training=1))
    >>> axes.shape
    (1, 1)
    """
    frame = _one_training(frame, training)
    matrix = frame["matrix"] if "matrix" in frame else pd.Series("", index=frame.index)
    panels = frame.assign(matrix=matrix.fillna(""))
    types = sorted(set(panels["type"]), key=_place)
    names, layers = list(dict.fromkeys(panels["matrix"])), sorted(set(panels["layer"]))
    axes = _new_panels(len(names), len(layers))
    for row, name in zip(axes, names, strict=True):
        for ax, layer in zip(row, layers, strict=True):
            here = (panels["matrix"] == name) & (panels["layer"] == layer)
            _draw_panel(ax, panels[here], types, f"layer {layer}" + (f", {name}" if name else ""))
    kept = frame.loc[frame["kept"].eq(True), "epoch"] if "kept" in frame else frame["epoch"][:0]
    _explain(axes[0, 0].figure, types, None if kept.empty else int(kept.iloc[0]))
    return axes


def _one_training(frame: Any, training: int | None) -> pd.DataFrame:
    """Validate the frame, and select the rows of one training."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            "`frame` must be the DataFrame `frame` of a FeatureHistory; "
            f"got {type(frame).__name__}."
        )
    missing = [name for name in _COLUMNS if name not in frame]
    if missing:
        raise ValueError(
            "the frame must be as FeatureHistory gives it, one row a feature and epoch; "
            f"this one lacks the columns {missing}."
        )
    trainings = sorted(set(frame["training"]))
    if training is not None and training not in trainings:
        raise ValueError(f"training must be one of those in the frame, {trainings}; got {training}")
    chosen = frame[
        frame["training"] == (min(trainings, default=1) if training is None else training)
    ]
    if chosen["epoch"].nunique() < 2:
        raise ValueError(
            "a history needs at least two epochs to be drawn; got "
            f"{sorted(set(chosen['epoch']))}. Draw a single epoch with plot_features."
        )
    return chosen


def _place(kind: str) -> tuple[int, int]:
    """Sort key in the stack: R-1, R-2, ..., zero, ..., C-2, C-1."""
    letter, _, order = kind.partition("-")
    return {"R": (0, int(order or 0)), "C": (2, -int(order or 0))}.get(letter, (1, 0))


def _shade(kind: str) -> Any:
    """Colour of a type, by letter, and paler for higher orders."""
    from matplotlib.colors import to_rgb

    letter, _, order = kind.partition("-")
    if letter not in _KINDS:
        return PALE
    strength = _FADE ** (int(order) - 1)
    return tuple(1 - strength + strength * part for part in to_rgb(_KINDS[letter]))


def _new_panels(rows: int, columns: int) -> np.ndarray:
    import matplotlib.pyplot as plt

    width, height = 5.0 if columns == 1 else 3.4, 2.6 if rows == 1 else 1.8
    size = (1.6 + width * columns, 0.7 + height * rows)
    shared: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False}
    return plt.subplots(rows, columns, figsize=size, layout="constrained", **shared)[1]


def _draw_panel(ax: Any, rows: pd.DataFrame, types: list[str], title: str) -> None:
    """Draw the stacked shares of one matrix; nothing if the layer lacks it."""
    if rows.empty:
        ax.set_axis_off()
        return
    from matplotlib.ticker import PercentFormatter

    counts = pd.crosstab(rows["epoch"], rows["type"], normalize="index")
    shares = counts.reindex(columns=types, fill_value=0.0)
    style: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.4}
    colours = [_shade(kind) for kind in types]
    ax.stackplot(shares.index.to_numpy(), shares.to_numpy().T, colors=colours, **style)
    ax.set(xlim=(shares.index.min(), shares.index.max()), ylim=(0, 1))
    ax.set_title(title, fontsize=SMALL, loc="left")
    whole_ticks(ax)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    tidy(ax)


def _explain(figure: Any, types: list[str], kept: int | None) -> None:
    """Label the shared axes, and add a legend in the order of the stack."""
    from matplotlib.patches import Patch

    of_kept = "" if kept is None else f" ({kept} is kept{': nothing was learned' * (kept == 0)})"
    figure.supxlabel(f"Epoch{of_kept}", fontsize="medium")
    figure.supylabel("Share of features", fontsize="medium")
    handles = [Patch(color=_shade(kind), label=kind) for kind in reversed(types)]
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=SMALL)
