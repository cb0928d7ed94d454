"""What each part of the prior network brings, on series of M1 and M3 that it was never shown.

MASE by frequency of the structural models alone, weighed by their tempered likelihoods; of the
network without its recurrence; of the network; and of the network adapted to the panel. Coverage
of intervals of 80 percent and MSIS of those of 95, of the network with the widths that it has
learned and with those of the panel. On the last rows of the training parts, on which choices were
made, and on the official test parts. ``--panel N`` takes panels of N series.

Then the networks of all cells side by side: MASE as they were trained and, behind it, MSIS with the
widths of the panel.

The networks are those that `train.py` gives, of which one was trained without each collection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from _competitions import NETWORKS, Part, load, unseen_network
from _timing import option_parser, print_table

from tsrnn.prior import (
    PANEL_RATE,
    PRIOR_CELLS,
    Forecasts,
    PriorNetwork,
    TrainedPrior,
    trained_prior,
    window_rows,
)

PANELS = 4  # of --panel
UNTRAINED = {"hidden_size": 1, "n_layers": 0, "width": 1}  # its weights are the posterior's


class Panel:
    """Histories of a part and the h rows that came, with the scale of MASE of each series."""

    def __init__(self, histories: list[np.ndarray], coming: np.ndarray, season: int) -> None:
        self.histories, self.coming, self.season = histories, coming, season
        window = window_rows(season)
        self.lengths = np.array([min(len(y), window) for y in histories])
        self.rows = np.zeros((len(histories), window))
        self.scale = np.zeros(len(histories))
        for i, y in enumerate(histories):
            self.rows[i, : self.lengths[i]] = y[-window:]
            lag = season if len(y) > season else 1
            self.scale[i] = np.abs(y[lag:] - y[:-lag]).mean()

    def forecasts(self, prior: TrainedPrior, widths: np.ndarray | None = None) -> Forecasts:
        """Forecasts of a network alone, without autoregressions beside it."""
        h, prior = self.coming.shape[1], replace(prior, autoregression=False)
        return prior.forecast(self.rows, self.lengths, self.season, h, widths)

    def mase(self, forecasts: Forecasts) -> float:
        """Mean over the series."""
        return float((np.abs(self.coming - forecasts.median).mean(1) / self.scale).mean())

    def intervals(self, forecasts: Forecasts) -> tuple[float, float]:
        """Coverage of 80 percent intervals, in percent, and MSIS of those of 95 percent."""
        low, high, lowest, highest = forecasts.at([0.1, 0.9, 0.025, 0.975]).swapaxes(0, 1)
        inside = (self.coming >= low) & (self.coming <= high)
        beyond = np.maximum(lowest - self.coming, 0) + np.maximum(self.coming - highest, 0)
        score = (highest - lowest + 2 / 0.05 * beyond).mean(1) / self.scale
        return float(100 * inside.mean()), float(score.mean())


def panels(part: Part, official: bool, size: int | None) -> Iterator[Panel]:
    """Panels of a part: all series, or some of the given size."""
    train, test = (
        [rows.to_numpy(float) for _, rows in frame.groupby("unique_id", sort=False)["y"]]
        for frame in (part.train, part.test)
    )
    if not official:
        test = [y[-part.h :] for y in train]
        train = [y[: -part.h] for y in train]
    varied = [i for i, y in enumerate(train) if len(y) >= 5 and np.ptp(y) > 0]
    order = np.array(varied)
    if size is not None:
        order = np.random.default_rng(0).permutation(order)
    count = 1 if size is None else min(PANELS, len(order) // size)
    for number in range(count):
        chosen = order[slice(None) if size is None else slice(number * size, (number + 1) * size)]
        panel = Panel([train[i] for i in chosen], np.array([test[i] for i in chosen]), part.season)
        if (panel.scale > 0).all():
            yield panel


def row(panel: Panel, networks: dict[str, TrainedPrior]) -> dict[str, float]:
    """Measures of all networks on a panel."""
    made = {name: panel.forecasts(network) for name, network in networks.items()}
    result = {name: panel.mase(each) for name, each in made.items()}
    network = networks["network"]
    adapted = network.adapted_to(panel.histories, panel.season, PANEL_RATE)
    result["adapted"] = panel.mase(panel.forecasts(adapted))
    widths = network.panel_widths(panel.rows, panel.lengths, panel.season)
    of_panel = panel.forecasts(network, widths)
    for name, forecasts in (("", made["network"]), (", panel's widths", of_panel)):
        result["covers" + name], result["MSIS" + name] = panel.intervals(forecasts)
    return result


def cells_row(panel: Panel, networks: dict[str, TrainedPrior]) -> list[tuple[float, float]]:
    """MASE of the network of each cell as it was trained, and MSIS with the panel's widths."""
    result = []
    for network in networks.values():
        widths = network.panel_widths(panel.rows, panel.lengths, panel.season)
        forecasts = panel.forecasts(network, widths)
        result.append((panel.mase(forecasts), panel.intervals(forecasts)[1]))
    return result


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--panel", type=int, help="series of a panel, by default all")
    parser.add_argument("--collections", nargs="+", default=["m1", "m3"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    untrained = TrainedPrior.of(PriorNetwork(**UNTRAINED).eval(), UNTRAINED, "")
    for official in (False, True):
        table, of_cells = [], []
        for collection in options.collections:
            by_cell = {
                cell: trained_prior(unseen_network(collection, cell)) for cell in PRIOR_CELLS
            }
            networks = {
                "structural models": untrained,
                "feedforward": trained_prior(
                    NETWORKS / f"feedforward_without_{collection}.safetensors"
                ),
                "network": by_cell["rnn"],
            }
            for part in load(collection):
                chosen = list(panels(part, official, options.panel))
                if not chosen:
                    continue
                label = f"{part.collection} {part.frequency}"
                means = pd.DataFrame([row(panel, networks) for panel in chosen]).mean()
                digits = [1 if name.startswith("covers") else 3 for name in means.index]
                cells = [f"{x:.{n}f}" for x, n in zip(means, digits, strict=True)]
                table.append([label, *cells])
                header = ["", *means.index]
                pairs = np.mean([cells_row(panel, by_cell) for panel in chosen], 0)
                of_cells.append([label, *(f"{mase:.3f}, {msis:.2f}" for mase, msis in pairs)])
        print("\n" + ("official test parts" if official else "last training rows") + "\n")
        print_table(header, table)
        print()
        print_table(["", *PRIOR_CELLS], of_cells)


if __name__ == "__main__":
    main()
