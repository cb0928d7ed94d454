"""Estimates of all units as JSON values and arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tsrnn.baselines._unit import Fitted

NUMBERS = ("n_rows", "loglik", "aic", "bic", "converged")


def estimates_header(estimates: tuple[Fitted, ...]) -> dict[str, Any]:
    """JSON values of the estimates; names that units share are held once."""
    kinds = list(dict.fromkeys(one.names for one in estimates))
    return {
        "names": [list(names) for names in kinds],
        "named": [kinds.index(one.names) for one in estimates],
        "specs": [one.spec for one in estimates],
        "messages": [list(one.messages) for one in estimates],
        "reasons": [one.reason for one in estimates],
    }


def estimates_arrays(estimates: tuple[Fitted, ...]) -> dict[str, np.ndarray]:
    """Arrays of the estimates."""
    numbers = {
        f"estimates.{name}": np.array([getattr(one, name) for one in estimates], float)
        for name in NUMBERS
    }
    return numbers | {"estimates.params": np.concatenate([one.params for one in estimates])}


def revived_estimates(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[Fitted, ...]:
    """The estimates of which the two hold the parts."""
    names = [tuple(header["names"][number]) for number in header["named"]]
    ends = np.cumsum([len(own) for own in names])
    params = np.split(arrays["estimates.params"], ends[:-1])
    numbers = {name: arrays[f"estimates.{name}"] for name in NUMBERS}
    return tuple(
        Fitted(
            names=names[i],
            params=params[i],
            spec=header["specs"][i],
            n_rows=int(numbers["n_rows"][i]),
            loglik=float(numbers["loglik"][i]),
            aic=float(numbers["aic"][i]),
            bic=float(numbers["bic"][i]),
            converged=bool(numbers["converged"][i]),
            messages=tuple(header["messages"][i]),
            reason=header["reasons"][i],
        )
        for i in range(len(names))
    )
