"""Linear models behind the forecaster contract: fit by maximum likelihood, unit by unit."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from tsrnn.contract import (
    MOST_STEPS,
    Classical,
    Kind,
    as_saved,
    by_name,
    check_arrays,
    integer,
    listed,
    record,
    refuse,
    text,
    unit_index,
    warn_user,
    with_shared_arguments,
)
from tsrnn.data import Panel, write_stamps
from tsrnn.linear._as_rnn import AsRNN
from tsrnn.linear._diagnostics import InSample
from tsrnn.linear._estimates import BY_UNIT, Estimates
from tsrnn.linear._frames import given_params
from tsrnn.linear._hypotheses import fingerprint
from tsrnn.linear._inference import check_kind
from tsrnn.linear._state import LinearState
from tsrnn.linear._results import GIVEN, Results
from tsrnn.linear._summary import LinearSummary, summarise

NAMES_SHOWN = 3
MOST_LAGS = 100  # of an order that a file may have beside few parameters


@with_shared_arguments
class LinearForecaster(Results, InSample, AsRNN, Classical[LinearState]):
    """Base of the models fitted by maximum likelihood; not to be used by itself.

    A subclass says what its units are (`multivariate`) and whether it takes exogenous columns
    (`takes_exog`), and answers for panels: `_fit_panel`, which calls `_set_estimates`,
    `_filter_panel`, `_memory_of`, `_advance`, `_forecast`, `_in_sample`; in words:
    `_param_names`, `_model_name`, `_conventions`, and if it likes `_facts`, `_notes`.

    Units are numbered series by series, within a series target by target.

    Parameters
    ----------
    cov_type : {"hessian", "opg", "information", "robust", "bollerslev-wooldridge", \
            "arch-robust"}
        Kind of standard errors.
    **shared
        All other arguments are those of `CommonArguments`.
    """

    _guarantee: ClassVar[str] = (
        "Asymptotic, the parameters taken as known. Holds if the model is right and its "
        "innovations are normal."
    )

    def __init__(self, *, cov_type: str = "hessian", **shared: Any) -> None:
        super().__init__(**shared)
        self.cov_type = cov_type

    @abstractmethod
    def _filter_panel(self, panel: Panel, params: np.ndarray) -> LinearState:
        """Counterpart of `_fit_panel` with given parameters (N, k)."""

    @abstractmethod
    def _param_names(self) -> tuple[str, ...]:
        """Names of the parameters of a unit."""

    @abstractmethod
    def _model_name(self) -> str:
        """The model with its orders, such as "ARMA(1, 1)"."""

    @abstractmethod
    def _state_shapes(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Dtype and shape of the arrays that a series carries on, by name."""

    def _check_settings(self) -> None:
        """Refuse arguments that are not legal beside the estimates."""
        check_kind(self.arguments_.cov_type, self.estimates_)
        self._model_name()

    def _facts(self, unit: int) -> dict[str, object]:
        """Further lines on the left of the summary's head."""
        return {}

    def _notes(self, unit: int) -> list[str]:
        """Further notes under the summary."""
        return []

    def filter(self, df: Any, params: Any) -> LinearForecaster:
        """Run over data with parameters that are given, in place of `fit`.

        Parameters
        ----------
        df : frame
            As for `fit`.
        params : DataFrame, Series, dict or array_like
            In the shape of `params_`, a row a unit; or one set for all units.

        Returns
        -------
        self
            As fitted, without standard errors.

        Raises
        ------
        TypeError, ValueError
            If data, parameters or an argument cannot be used; the message says what to do.
        """
        with self._fitting():
            panel = self._read_training(df)
            self._begin(panel)
            units = unit_index(panel.layout, panel.ids, self.multivariate)
            given = given_params(params, units, self._param_names())
            self.state_ = self._filter_panel(panel, given)
            self._mark_given()
            self._report()
        return self

    def summary(self, unit: Any = None, cov_type: str | None = None) -> LinearSummary:
        """Everything about one unit, or a table of many; print the result.

        Parameters
        ----------
        unit : label, optional
            One of `units_`; by default the only one, or all in a table.
        cov_type : str, optional
            Kind of standard errors; that of the constructor by default.
        """
        return summarise(self, unit, cov_type)

    def _fit_to(self, panel: Panel) -> None:
        self._begin(panel)
        self.state_ = self._fit_panel(panel)
        self._report()

    def _begin(self, panel: Panel) -> None:
        """Check what does not depend on the model; keep the data for residuals."""
        check_kind(self.arguments_.cov_type)
        super()._begin(panel)
        self._panel = panel
        self._sample = panel.times[panel.indptr[:-1]], panel.last_times
        self._data_digest = fingerprint(panel)

    def _mark_given(self) -> None:
        """Parameters that were not estimated have no standard errors."""
        messages = tuple((*texts, GIVEN) for texts in self.estimates_.messages)
        fixed = np.ones_like(self.estimates_.fixed)
        self._set_estimates(replace(self.estimates_, fixed=fixed, messages=messages))

    def _report(self) -> None:
        """Refuse estimates of which there are none; warn of units that failed."""
        estimates = self.estimates_
        check_kind(self.arguments_.cov_type, estimates)
        lost = np.flatnonzero(~estimates.fitted)
        if len(lost):
            reason = (*estimates.messages[lost[0]], "no admissible parameters were found")[0]
            if len(lost) == len(estimates.params):
                raise ValueError(f"no series could be fitted; {self._labels(lost)}: {reason}")
            warn_user(
                f"{len(lost)} of {len(estimates.params)} units could not be fitted, "
                f"{self._labels(lost)}. The reason for the first: {reason.removesuffix('.')}. The "
                "parameters of these units are NaN; see messages_"
            )
        loose = np.flatnonzero(estimates.fitted & ~estimates.converged)
        if len(loose):
            warn_user(
                f"the likelihood of {len(loose)} of {len(estimates.params)} units was not "
                f"maximised to tolerance, {self._labels(loose)}; see converged_ and messages_"
            )

    def _labels(self, units: np.ndarray) -> str:
        shown = ", ".join(repr(label) for label in self.units_[units[:NAMES_SHOWN]])
        return shown if len(units) <= NAMES_SHOWN else f"first {shown}"

    def _header(self) -> dict[str, Any]:
        return fitted_header(self.estimates_) | {
            "horizon": self.horizon_,
            "data": self._data_digest,
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        sample = {"sample": np.stack([np.asarray(ends).astype("int64") for ends in self._sample])}
        return sample | fitted_arrays(self.estimates_, self.state_)

    def _revive(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        ids: pd.Index,
        last_times: np.ndarray,
    ) -> LinearState:
        record(FITTED)(header, "fitted")
        layout, n_series = self._panel_shape[0], len(ids)
        n_targets, k = len(layout.target_names), len(header["names"])
        n_units = n_series * (1 if self.multivariate else n_targets)
        state = {name: array for name, array in arrays.items() if name.startswith(STATE)}
        check_arrays(
            {name: array for name, array in arrays.items() if name not in state},
            estimates_shapes(n_units, k)
            | {
                "sample": ("int64", (2, n_series)),
                "target_scale": ("float64", (n_series, n_targets)),
            },
            may_lack=["estimates.information", "estimates.starts", "estimates.agreement"],
        )
        for name in ("order", "garch_order", "mean_order", "coint_rank"):
            _check_lags(getattr(self, name, None), max(k, MOST_LAGS), f"params.{name}")
        with as_saved("params"):
            names = self._param_names()
            shapes = self._state_shapes()
        if list(names) != header["names"]:
            raise refuse(
                "fitted.names", f"those of {type(self).__name__}, {names}", header["names"]
            )
        check_arrays(
            state,
            {STATE + name: (dtype, (n_series, *shape)) for name, (dtype, shape) in shapes.items()},
        )
        for unit in header["messages"]:
            if unit not in map(str, range(n_units)):
                raise refuse("fitted.messages", f"of {n_units} units by their number", unit)
        self._set_estimates(revived_estimates(header, arrays))
        with as_saved("params"):
            self._check_settings()
        self.horizon_, self._panel = header["horizon"], None
        self._data_digest = header["data"]
        first, last = arrays["sample"].astype(last_times.dtype)
        with as_saved("the array 'sample' and layout"):
            write_stamps(np.concatenate([first, last]), layout)
        self._sample = first, last
        return revived_memory(arrays, ids, last_times)


# Fields of a file beside those of every forecaster.
FITTED: dict[str, Kind] = {
    "names": listed(text),
    "messages": by_name(listed(text)),
    "horizon": integer(1, MOST_STEPS),
    "data": by_name(text),
}


def _check_lags(value: Any, most: int, place: str) -> None:
    """Refuse orders that no parameters bear out, before anything is as long as they say."""
    if isinstance(value, list | tuple):
        for item in value:
            _check_lags(item, most, place)
    elif isinstance(value, int) and value > most:
        raise refuse(place, f"an order of at most {most} with the parameters of this file", value)


_ESTIMATES, STATE, _SCALE = "estimates.", "state.", "target_scale"


def fitted_header(estimates: Estimates) -> dict[str, Any]:
    """JSON values of the estimates."""
    return {
        "names": list(estimates.names),
        "messages": {str(i): list(texts) for i, texts in enumerate(estimates.messages) if texts},
    }


def fitted_arrays(estimates: Estimates, memory: LinearState) -> dict[str, np.ndarray]:
    """Arrays of estimates and memory; ids and last times are kept elsewhere."""
    fitted = {_ESTIMATES + name: getattr(estimates, name) for name in BY_UNIT}
    state = {STATE + name: array for name, array in memory.arrays.items()}
    arrays = fitted | state | {_SCALE: memory.target_scale}
    return {name: array for name, array in arrays.items() if array is not None}


def estimates_shapes(n_units: int, k: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Dtype and shape of the arrays of the estimates of so many units and parameters."""
    matrices = dict.fromkeys(("hessian", "opg", "information"), ("float64", (n_units, k, k)))
    rows = dict.fromkeys(("params", "gradient"), ("float64", (n_units, k)))
    counts = dict.fromkeys(("n_obs", "iterations", "starts", "agreement"), ("int64", (n_units,)))
    shapes = matrices | rows | counts
    shapes |= {
        "loglik": ("float64", (n_units,)),
        "converged": ("bool", (n_units,)),
        "fixed": ("bool", (n_units, k)),
    }
    return {_ESTIMATES + name: shape for name, shape in shapes.items()}


def revived_estimates(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Estimates:
    """Estimates of the parts that `fitted_header` and `fitted_arrays` hold."""
    fitted = {name: arrays.get(_ESTIMATES + name) for name in BY_UNIT}
    texts = header["messages"]
    messages = tuple(
        tuple(texts.get(str(i), ())) for i in range(len(arrays[f"{_ESTIMATES}params"]))
    )
    return Estimates(names=tuple(header["names"]), messages=messages, **fitted)  # type: ignore[arg-type]


def revived_memory(
    arrays: dict[str, np.ndarray], ids: pd.Index, last_times: np.ndarray
) -> LinearState:
    """Memory of the arrays that `fitted_arrays` holds."""
    state = {
        name.removeprefix(STATE): array for name, array in arrays.items() if name.startswith(STATE)
    }
    return LinearState(ids, last_times, arrays[_SCALE], state)
