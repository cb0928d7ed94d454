"""Coverage of 80 and 95 percent intervals by step: simulated AR(1), ETTh1, M4 hourly; M1 and M3.

Shares of the values that came within their intervals, over all series and origins of a part that
neither trained nor validated. ``--shared`` names the folder with the data of the other two.
``--classical`` takes classical models on all series of M1 and M3 instead, by kind of interval; with
``--validation`` on their training parts, the last h rows held out, by which defaults were chosen.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _m4 import long_frame, ragged
from _timing import option_parser, print_machine, print_table, read_options
from classical import LEVELS, Part, Run, load, scores

from tsrnn import ParaRNNForecaster
from tsrnn.datasets import load_ett
from tsrnn.models import model_class

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
# Kinds of intervals of classical models, by arguments.
KINDS = {
    "known parameters": {"parameter_uncertainty": False},
    "model": {},
    "conformal": {"intervals": "conformal"},
}
SHORTEST = 8  # rows of a series that are left when its last h are held out
Covered = dict[int, np.ndarray]  # share by step, for each level


def rolling_coverage(model: ParaRNNForecaster, test: pd.DataFrame) -> Covered:
    """Of a fitted model on rows of a wide frame that follow."""
    found = model.predict_rolling(test, level=LEVELS)
    names = list(test)
    actual = test.loc[found.index, names].to_numpy()
    return {
        level: by_step(
            (found[[f"{n}-lo-{level}" for n in names]].to_numpy() <= actual)
            & (actual <= found[[f"{n}-hi-{level}" for n in names]].to_numpy()),
            model.horizon_,
        )
        for level in LEVELS
    }


def by_step(covered: np.ndarray, horizon: int) -> np.ndarray:
    """Mean of rows (origins * horizon, ...) for each step."""
    return covered.reshape(-1, horizon, *covered.shape[1:]).mean(0).reshape(horizon, -1).mean(1)


def autoregressions(count: int = 50) -> Covered:
    """AR(1) of 600 rows, the last 200 held out, six steps."""
    draw, y = np.random.default_rng(0), np.zeros((700, count))
    noise = draw.normal(size=y.shape)
    for t in range(1, len(y)):
        y[t] = 0.8 * y[t - 1] + noise[t]
    frame = pd.DataFrame(y[100:], columns=[f"y{i}" for i in range(count)])
    model = ParaRNNForecaster(horizon=6, prior=None, random_state=0).fit(frame[:400])
    return rolling_coverage(model, frame[400:])


def ett(shared: Path) -> Covered:
    """ETTh1, all variables, 24 steps, split as in table_s4.py."""
    data, month = load_ett("ETTh1", data_home=shared / "ett"), 720
    model = ParaRNNForecaster(horizon=24, prior=None, val_size=4 * month, random_state=0)
    model.fit(data[: 16 * month])
    return rolling_coverage(model, data[16 * month : 20 * month])


def m4_hourly(shared: Path) -> Covered:
    """M4 hourly, 48 steps from one origin of 414 series, settings as in m4.py."""
    train = ragged(shared / "m4" / "Hourly-train.csv.gz", 0)
    test = ragged(shared / "m4" / "Hourly-test.csv.gz", 0)
    model = ParaRNNForecaster(
        horizon=48, random_state=0, use_boxcox="log", loss="mae", input_size=336
    )
    found = model.fit(long_frame(train, "h")).predict(48, level=LEVELS)
    actual = np.concatenate([test[name] for name in found["unique_id"].unique()])
    return {
        level: by_step(
            (found[f"{model.column_name}-lo-{level}"] <= actual).to_numpy()
            & (actual <= found[f"{model.column_name}-hi-{level}"]).to_numpy(),
            48,
        )
        for level in LEVELS
    }


def held_out(part: Part) -> Part:
    """Part whose test rows are the last h of the training part, of series that leave enough."""
    rows = part.train.groupby("unique_id").cumcount(ascending=False)
    train = part.train[rows >= part.h]
    long = train.groupby("unique_id").size()
    ids = long.index[long >= SHORTEST]
    train, test = (f[f["unique_id"].isin(ids)] for f in (train, part.train[rows < part.h]))
    return part._replace(train=train, test=test)


def classical_rows(part: Part) -> list[list[str]]:
    """Rows of the table of a part: a model and a kind of its intervals each."""
    rows = []
    for name in ("ETS", "Theta", "AutoARIMA"):
        for kind, arguments in KINDS.items():
            model = model_class(name)(season_length=part.season, horizon=part.h, **arguments)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about single series, which are thousands
                run = Run(model.fit(part.train).predict(level=LEVELS), 0.0)
            table, steps = scores(run, part).mean(), scores(run, part, by="step")
            row = [f"{name}, {part.collection} {part.frequency}", kind]
            for level in LEVELS:
                share = 100 * steps[f"coverage-{level}"]
                three = share.iloc[[0, len(share) // 2, -1]]
                row += [f"{share.mean():.1f}", " ".join(f"{s:.0f}" for s in three)]
            rows.append(row + [f"{table[f'MSIS-{level}']:.3f}" for level in LEVELS])
            print(*rows[-1], file=sys.stderr, flush=True)
    return rows


def print_classical(validation: bool) -> None:
    """Print coverage and MSIS of all series of M1 and M3 by kind of interval."""
    everything = [part for name in ("m1", "m3") for part in load(name, None)]
    if validation:
        everything = [held_out(part) for part in everything]
    head = [f"{level}: {what}" for level in LEVELS for what in ("mean", "first, middle, last")]
    rows = [row for part in everything for row in classical_rows(part)]
    print_table(["model", "intervals", *head, *(f"MSIS {level}" for level in LEVELS)], rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--classical", action="store_true", help="classical models on M1 and M3")
    parser.add_argument("--validation", action="store_true", help="their training parts")
    options = read_options(parser)
    print_machine()
    if options.classical:
        print_classical(options.validation)
        return
    cases = {"AR(1)": lambda: autoregressions(2 if options.smoke else 50)}
    if options.shared.is_dir() and not options.smoke:
        cases["ETTh1"] = lambda: ett(options.shared)
        cases["M4 hourly"] = lambda: m4_hourly(options.shared)
    rows = []
    for name, run in cases.items():
        for level, share in run().items():
            percent, h = 100 * share, len(share)
            steps = [percent[i - 1] for i in (1, max(1, h // 4), h // 2, h)]
            print(name, level, np.round(percent, 1), file=sys.stderr, flush=True)
            rows.append([name, level, *(f"{p:.1f}" for p in steps), f"{percent.mean():.1f}",
                         f"{percent.min():.1f} to {percent.max():.1f}"])  # fmt: skip
    print_table(["data", "level", "step 1", "h/4", "h/2", "h", "mean of steps", "all steps"], rows)


if __name__ == "__main__":
    main()
