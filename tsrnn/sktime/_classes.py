"""Forecasters for sktime, with the arguments of the forecasters of tsrnn that they run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, ClassVar

from sklearn.base import clone

import tsrnn.forecasters as networks
import tsrnn.linear as linear
from tsrnn.models import MODELS, model_class
from tsrnn.sktime._adapter import FRAME_ARGUMENTS, Adapter

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
# In this test y is X plus a constant, for which the likelihood is unbounded.
DEGENERATE = {"tests:skip_by_name": ["test_update_with_exogenous_variables"]}
SMALL = {"hidden_size": 4, "n_layers": 1, "max_epochs": 1, "refit": False, "random_state": 0}
OF_NETWORKS = {"capability:random_state": True, "property:randomness": "derandomized"}
OF_LINEAR = {"capability:random_state": True, "capability:insample": True}


class TsrnnForecaster(Adapter):
    """Adapter of any forecaster of tsrnn for sktime.

    y holds the targets and X the columns known ahead; the arguments `target`, `known_ahead`,
    `id_col` and `time_col` of the forecaster are ignored. All series of a panel or hierarchy are
    fitted together, and share the parameters of a network. In-sample forecasts are one step ahead,
    if the forecaster has `fittedvalues`.

    Parameters
    ----------
    forecaster : forecaster of tsrnn
        Template, left unchanged; a clone is fitted.

    Attributes
    ----------
    forecaster_ : forecaster of tsrnn
        Fitted forecaster, with its `summary`.

    Notes
    -----
    `update` with ``update_params=True`` refits to all rows; with False it updates the state.
    Intervals of coverage 0, sktime's medians, are the point forecast.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.baselines import Naive
    >>> from tsrnn.sktime import TsrnnForecaster
    >>> y = pd.Series(np.arange(20.0))
    >>> TsrnnForecaster(Naive()).fit(y).predict(fh=[1, 2]).tolist()
    [19.0, 19.0]
    """

    _tags: ClassVar[dict[str, Any]] = {"capability:insample": True}

    def __init__(self, forecaster: Any) -> None:
        self.forecaster = forecaster
        super().__init__()
        self.set_tags(
            **{
                "capability:exogenous": getattr(forecaster, "takes_exog", True),
                "capability:insample": hasattr(forecaster, "fittedvalues"),
                "capability:missing_values": forecaster.missing != "error",
            }
        )

    def _forecaster(self, n_targets: int) -> Any:
        return clone(self.forecaster)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Arguments for sktime's checks."""
        forecasters = [linear.GARCH(mean=mean, intervals="analytic") for mean in ("zero", "ar")]
        return [{"forecaster": forecaster} for forecaster in forecasters]


def _running(runs: type) -> Callable[[type], type]:
    """Class decorator that copies the arguments of a forecaster except `FRAME_ARGUMENTS`."""
    signature = inspect.signature(runs)
    kept = [p for p in signature.parameters.values() if p.name not in FRAME_ARGUMENTS]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    whole = inspect.Signature([itself, *kept])

    def decorate(cls: Any) -> Any:
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            bound = whole.bind(self, *args, **kwargs)
            bound.apply_defaults()
            for name in list(bound.arguments)[1:]:
                setattr(self, name, bound.arguments[name])
            super(cls, self).__init__()
            self.set_tags(**{"capability:missing_values": self.missing != "error"})

        init.__signature__ = whole  # type: ignore[attr-defined]
        init.__name__, init.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
        cls.__init__, cls._runs = init, runs
        cls.__doc__ = _with_parameters(cls.__doc__, runs.__doc__, [p.name for p in kept])
        return cls

    return decorate


def _with_parameters(doc: str | None, source: str | None, kept: list[str]) -> str:
    """Docstring with the `kept` parameters of `source` inserted before its examples."""
    heading = "Examples\n--------\n"
    before, _, after = inspect.cleandoc(doc or "").partition(heading)
    parts = _HEADING.split(inspect.cleandoc(source or ""))
    section = dict(zip(parts[1::2], parts[2::2], strict=True))["Parameters"]
    parameters = ""
    for entry in re.split(r"^(?=\S)", section, flags=re.MULTILINE)[1:]:
        head, _, rest = entry.partition("\n")
        names, colon, kind = head.partition(" : ")
        left = [name for name in names.split(", ") if name in kept]
        if left:
            parameters += f"{', '.join(left)}{colon}{kind}\n{rest}"
    return f"{before}Parameters\n----------\n{parameters.rstrip()}\n\n{heading}{after}"


class _Running(Adapter):
    """Adapter with the arguments of the forecaster that it runs."""

    _runs: Any

    def _forecaster(self, n_targets: int) -> Any:
        return self._runs(**self.get_params(deep=False))


class _Network(_Running):
    _tags = OF_NETWORKS

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Arguments for sktime's checks, of small networks."""
        few = SMALL | {"intervals": "gaussian"}  # empirical quantiles need more rows
        return [few, few | {"multivariate": "joint", "linear_path": False}]


_NETWORK_DOC = """`tsrnn.{name}` as a forecaster of sktime.

The fitted forecaster is `forecaster_`. All series of a panel share the network; sktime's
`ForecastByLevel` fits one network per series. `fh` must lie after the data, and `X` must be known
for every step up to the last of `fh`.

Examples
--------
>>> import numpy as np, pandas as pd
>>> from tsrnn.sktime import {name}
>>> y = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
>>> {name}(hidden_size=8, max_epochs=1).fit(y).predict(fh=[1, 2]).columns.tolist()
['a', 'b']
"""
for _name, _model in MODELS.items():
    if _model.sktime and _model.module == networks.__name__:
        _members = {"__module__": __name__, "__doc__": _NETWORK_DOC.format(name=_name)}
        globals()[_name] = _running(model_class(_name))(type(_name, (_Network,), _members))


@_running(linear.ARMA)
class ARMA(_Running):
    """`tsrnn.ARMA` as a forecaster of sktime.

    The fitted forecaster, with standard errors and tests, is `forecaster_`. Columns and series are
    fitted separately, in one batch. In-sample forecasts are one step ahead, and NaN in the rows
    lost by differencing.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.sktime import ARMA
    >>> y = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    >>> ARMA(order=(1, 0)).fit(y).predict(fh=[1, 2]).columns.tolist()
    ['a', 'b']
    """

    _tags = OF_LINEAR | DEGENERATE

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Arguments for sktime's checks."""
        return [{"order": (1, 0)}, {"order": (0, 1), "trend": "n", "likelihood": "conditional"}]


@_running(linear.GARCH)
class GARCH(_Running):
    """`tsrnn.GARCH` as a forecaster of sktime.

    It forecasts the mean, with intervals from the variance; the fitted forecaster `forecaster_` has
    `predict_variance`. It takes no `X`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.sktime import GARCH
    >>> y = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    >>> GARCH(order=(1, 0)).fit(y).predict(fh=[1, 2]).columns.tolist()
    ['a', 'b']
    """

    _tags = OF_LINEAR | {"capability:exogenous": False, "property:randomness": "derandomized"}

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Arguments for sktime's checks."""
        return [
            {"mean": "ar", "intervals": "analytic", "n_starts": 1},
            {"order": (1, 0), "n_simulations": 50, "n_starts": 1, "random_state": 0},
        ]


@_running(linear.VARMA)
class VARMA(_Running):
    """`tsrnn.VARMA` as a forecaster of sktime.

    A single column is fitted by `tsrnn.ARMA` with the same order, trend and likelihood, where `X`
    enters the mean instead of the transition.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.sktime import VARMA
    >>> y = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    >>> VARMA(order=(1, 0)).fit(y).predict(fh=[1, 2]).columns.tolist()
    ['a', 'b']
    """

    _tags = OF_LINEAR | DEGENERATE

    def _forecaster(self, n_targets: int) -> Any:
        arguments = self.get_params(deep=False)
        if n_targets > 1:
            return self._runs(**arguments)
        del arguments["n_starts"]
        return linear.ARMA(**arguments)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Arguments for sktime's checks."""
        return [{"order": (1, 0)}, {"order": (0, 1), "trend": "n", "n_starts": 1}]
