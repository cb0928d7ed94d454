"""File of the estimates: JSON values and arrays, and their checks when read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tsrnn.baselines._unit import CONSTANT, SEASONLESS, Rows, UnitEstimates, UnitModel
from tsrnn.contract import (
    MOST_STEPS,
    anything,
    as_saved,
    by_name,
    check_arrays,
    integer,
    listed,
    one_of,
    record,
    refuse,
    text,
)

NUMBERS: dict[str, type[Any]] = {
    "n_rows": int, "loglik": float, "aic": float, "bic": float, "converged": bool,
}  # fmt: skip
ESTIMATES = "estimates."  # prefix of array names
# Arguments that are orders, or bounds on orders.
ORDERS = (
    "order", "seasonal_order", "season_length", "lags", "p", "o", "q", "max_p", "max_q", "max_P",
    "max_Q", "d", "D", "max_lags", "rank", "seasonal", "autoregressive",
)  # fmt: skip
MOST_LAGS = 1000  # largest order in a file with few rows


def estimates_header(estimates: tuple[UnitEstimates, ...]) -> dict[str, Any]:
    """JSON values of the estimates; names that units share are written once."""
    kinds = list(dict.fromkeys(fitted.names for fitted in estimates))
    return {
        "names": [list(names) for names in kinds],
        "named": [kinds.index(fitted.names) for fitted in estimates],
        "specs": [fitted.spec for fitted in estimates],
        "messages": [list(fitted.messages) for fitted in estimates],
        "reasons": [fitted.reason for fitted in estimates],
    }


def estimates_arrays(estimates: tuple[UnitEstimates, ...]) -> dict[str, np.ndarray]:
    """Arrays of the estimates."""
    numbers = {
        ESTIMATES + name: np.array([getattr(fitted, name) for fitted in estimates], float)
        for name in NUMBERS
    }
    params = np.concatenate([fitted.params for fitted in estimates])
    return numbers | {ESTIMATES + "params": params}


def check_lags(value: Any, most: int, name: str) -> None:
    """Refuse orders beyond the rows, before arrays of that size are built."""
    if isinstance(value, list | tuple):
        for item in value:
            check_lags(item, most, name)
    elif isinstance(value, int) and value > most:
        raise refuse(f"params.{name}", f"an order of at most {most}, by the rows", value)


def estimates_from_file(
    header: dict[str, Any], arrays: dict[str, np.ndarray], model: UnitModel, units: list[Rows]
) -> tuple[UnitEstimates, ...]:
    """Estimates of the units from the header and arrays of a file, checked."""
    n, lengths = len(units), np.array([len(rows.y) for rows in units])
    record(
        {
            "names": listed(listed(text)),
            "named": listed(integer(0), n),
            "specs": listed(by_name(anything), n),
            "messages": listed(listed(text), n),
            "reasons": listed(text, n),
            "horizon": integer(1, MOST_STEPS),
        }
    )(header, "fitted")
    kinds = [tuple(names) for names in header["names"]]
    listed(integer(0, len(kinds) - 1))(header["named"], "fitted.named")
    names = [kinds[number] for number in header["named"]]
    ends = np.cumsum([len(unit_names) for unit_names in names])
    shapes = dict.fromkeys((ESTIMATES + name for name in NUMBERS), ("float64", (n,)))
    check_arrays(arrays, shapes | {ESTIMATES + "params": ("float64", (int(ends[-1]),))})
    counts = arrays[ESTIMATES + "n_rows"]
    if not ((counts >= 0) & (counts <= lengths)).all():
        required = f"rows up to those of each series, {lengths.tolist()[:8]}"
        raise refuse("the array 'estimates.n_rows'", required, counts.tolist()[:8])
    params = np.split(arrays[ESTIMATES + "params"], ends[:-1])
    estimates = tuple(
        UnitEstimates(
            names=names[i],
            params=params[i],
            spec=header["specs"][i],
            messages=tuple(header["messages"][i]),
            reason=header["reasons"][i],
            **{name: kind(arrays[ESTIMATES + name][i]) for name, kind in NUMBERS.items()},
        )
        for i in range(n)
    )
    seen: set[tuple[int, str]] = set()
    for i, (fitted, rows) in enumerate(zip(estimates, units, strict=True)):
        check_unit(model, i, fitted, rows, seen)
    return estimates


def check_unit(
    model: UnitModel, i: int, fitted: UnitEstimates, rows: Rows, seen: set[tuple[int, str]]
) -> None:
    """Check that a model with these arguments has the parameters of unit number i in a file.

    `seen` are names and choices already checked; this unit adds its own.
    """
    place = f"fitted.specs[{i}]"
    if SEASONLESS in fitted.spec:
        one_of(True)(fitted.spec[SEASONLESS], f"{place}.{SEASONLESS}")
        if model.seasonless() is None:
            raise refuse(place, f"without {SEASONLESS!r}: no season is implied", fitted.spec)
        model = model.estimated(fitted)
    if CONSTANT in fitted.spec:
        one_of(True)(fitted.spec[CONSTANT], f"{place}.{CONSTANT}")
        if model.multivariate or model.of_variance:
            raise refuse(place, f"without {CONSTANT!r}: such a model needs a variance", fitted.spec)
        model = model.estimated(fitted)
    switches = CONSTANT, SEASONLESS
    spec = {name: value for name, value in fitted.spec.items() if name not in switches}
    if fitted.reason:
        if fitted.names or spec:
            raise refuse(place, "empty, as the unit has a reason not to be fitted", fitted.spec)
        return
    model.spec_kind(rows)(spec, place)
    chosen = {name: value for name, value in fitted.spec.items() if "scale" not in name}
    chosen.pop("origin", None)
    with as_saved("params and fitted"):
        fewest = model.fewest(rows)
    if fitted.n_rows < fewest:
        required = f"at least {fewest} rows, which such a model needs"
        raise refuse(f"the array 'estimates.n_rows' at {i}", required, fitted.n_rows)
    key = hash(fitted.names), json.dumps(chosen, sort_keys=True)
    if key in seen:
        return
    with as_saved("params and fitted"):
        legal = model.legal_names(fitted.spec, rows)
    if fitted.names not in legal:
        required = f"of parameters of such a model, {list(legal[0])}"
        raise refuse("fitted.names", required, list(fitted.names))
    seen.add(key)
