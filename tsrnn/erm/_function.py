"""Fitted functions of sequences: values, risk and file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, Self

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from tsrnn.contract import (
    Arguments,
    Kind,
    as_saved,
    by_name,
    check_arrays,
    integer,
    listed,
    optional,
    plain,
    real,
    record,
    refuse,
    text,
    truth,
)
from tsrnn.erm._risk import Risk, risk_of, risk_of_predictions
from tsrnn.erm._sequences import Inputs, Sequences, read_sequences
from tsrnn.erm._settings import PASSED_ON, Settings, settings_of
from tsrnn.erm._targets import Targets
from tsrnn.erm._training import Samples, TrainingData, all_outputs, from_moments, scaled
from tsrnn.layers import MOST_SIZE, RecurrentNetwork, check_saveable

Arrays = dict[str, np.ndarray]

NETWORK = "network."  # prefix of parameters in a file
# Fields of a file, besides those of the targets.
KINDS: dict[str, Kind] = {
    "n_features_in": integer(1),
    "feature_names": optional(listed(text)),
    "table": truth,
    "n_inputs": integer(1),
    "n_train": integer(0),
    "n_validation": integer(0),
    "history": listed(by_name(optional(real))),
    "best_epoch": integer(0),
    "sample_length": integer(1),
    "validation_skill": optional(real),
}


class SequenceFunction(Protocol):
    """Fitted function of sequences, the attribute `fitted_` of a regressor or classifier.

    It is immutable and independent of the estimator, which reads all its fitted attributes from it.
    `fit` and `partial_fit` replace it at their end, so that a failed fit keeps the previous one,
    and copies of an estimator may share it.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn import ParaRNNRegressor
    >>> from tsrnn.erm import SequenceFunction
    >>> X = np.random.default_rng(0).normal(size=(50, 10, 2))
    >>> model = ParaRNNRegressor(8, max_epochs=1, random_state=0).fit(X, X[:, -1])
    >>> function: SequenceFunction = model.fitted_
    >>> function.outputs(X).shape, function.predict([X[0, :3]]).shape
    ((50, 2), (1, 2))
    """

    @property
    def arguments(self) -> Arguments:
        """Constructor arguments of the fit, a `tsrnn.contract.Arguments`."""

    @property
    def network(self) -> RecurrentNetwork:
        """Network on the CPU, from scaled sequences (B, T, d_in) to outputs (B, T, n_outputs)."""

    def outputs(self, X: Any) -> Any:
        """Return outputs of the network within their bounds.

        Parameters
        ----------
        X : array of shape (N, T, d_in), list of N arrays (T_i, d_in) or (T_i,), or table (N, T)

        Returns
        -------
        ndarray of shape (N, n_outputs)
            Standardised targets, or log odds of classes up to a constant. With `many_to_many` of
            shape (N, T, n_outputs), or a list of arrays (T_i, n_outputs).
        """

    def predict(self, X: Any) -> Any:
        """Return estimates in the unit of the targets, or labels of classes.

        Parameters
        ----------
        X : as in `outputs`

        Returns
        -------
        ndarray of shape (N,) or (N, k)
            With `many_to_many` of shape (N, T) or (N, T, k), or a list of arrays (T_i,) or
            (T_i, k).
        """

    def to_file(self) -> tuple[dict[str, Any], Arrays]:
        """Return header (JSON values by name, without arguments) and arrays of a file."""

    @classmethod
    def from_file(
        cls, header: dict[str, Any], arrays: Arrays, arguments: Arguments, targets: Any
    ) -> Self:
        """Rebuild a function from `to_file`, with its arguments and class of targets.

        A field or array that is not as written raises `tsrnn.contract.DamagedFileError`.
        """


@dataclass(frozen=True, eq=False)
class Course:
    """Course of the training.

    After partial fits, `n_train` counts the samples seen, the history is empty, and `moments` is
    the state of the optimiser, which files do not hold.
    """

    n_train: int = 0
    n_validation: int = 0
    history: tuple[dict[str, float], ...] = ()
    best_epoch: int = 0
    sample_length: int = 0
    validation_skill: float | None = None
    moments: dict[Any, Any] | None = None


COURSE_FIELDS = [part.name for part in fields(Course) if part.name != "moments"]  # in a file


@dataclass(frozen=True, eq=False, repr=False)
class FittedFunction:
    """`SequenceFunction` of a network, with the course of its training.

    `model` is the name of the estimator's class, for messages. `sample` (n, T, d_in) are scaled
    inputs on which shares of blocks are computed. `risks` holds those of "training" and, if any,
    "validation" samples, in the unit of the targets.
    """

    model: str
    arguments: Arguments
    inputs: Inputs
    input_scaler: StandardScaler | None
    targets: Targets
    network: RecurrentNetwork
    course: Course = Course()
    sample: Tensor = field(default_factory=lambda: torch.empty(0))
    risks: Mapping[str, Risk] = field(default_factory=dict)

    @property
    def reading(self) -> str:
        """States that enter the head, see `outputs` of `_training`."""
        return "every" if self.arguments.many_to_many else self.arguments.pooling

    @property
    def bounds(self) -> tuple[Tensor, Tensor] | None:
        """Least and largest output, None without a bound."""
        bound = self.arguments.bound
        return None if bound is None else self.targets.output_bounds(bound)

    def outputs(self, X: Any, of: Callable[[np.ndarray], np.ndarray] | None = None) -> Any:
        """Return outputs of the network, transformed by `of`, a function of rows (n, n_outputs)."""
        sequences = read_sequences(X, self.model, self.inputs)
        values = self.evaluate(sequences)
        if of is not None:
            values = of(values)
        return sequences.in_shape(values) if self.arguments.many_to_many else values

    def predict(self, X: Any) -> Any:
        """Return estimates in the unit of the targets, or labels of classes."""
        bound = self.arguments.bound
        return self.outputs(X, lambda outputs: self.targets.predictions(outputs, bound))

    def evaluate(self, sequences: Sequences) -> np.ndarray:
        """Return finite outputs of samples (N, n_outputs), or of all steps (rows, n_outputs)."""
        many, bounds = self.arguments.many_to_many, self.bounds
        unknown = torch.zeros(len(sequences.values) if many else len(sequences))
        data = TrainingData(scaled(sequences, self.input_scaler), unknown, None, many)
        outputs = all_outputs(self.network, data, self.reading)
        finite = np.isfinite(outputs).all(1)
        if not finite.all():
            raise FloatingPointError(
                f"the network gives no finite output for {(~finite).sum()} of {len(finite)} "
                f"targets, the first at {sequences.where(int(np.argmin(finite)), many)}: values "
                "of X are too far from those of the fit, or states grow without bound over the "
                "steps. Look for such values, or leave these samples out"
            )
        return outputs if bounds is None else outputs.clip(*(bound.numpy() for bound in bounds))

    def training_data(self, samples: Samples) -> TrainingData:
        """Return samples in the scales of the network."""
        encoded = self.targets.encoded(samples.targets, samples.weights)
        sequences = scaled(samples.sequences, self.input_scaler)
        return TrainingData(sequences, encoded, samples.weights, samples.many_to_many)

    def judged(self, course: Course, sample: Tensor, loss: str, **parts: Samples) -> FittedFunction:
        """Return the function after training, with its risk on parts of the samples."""
        risks = {}
        for name, samples in parts.items():
            outputs = self.evaluate(samples.sequences)
            risks[name] = risk_of_predictions(
                self.targets.estimates(outputs, self.arguments.bound),
                samples.targets,
                samples.weights,
                loss,
                samples.sequences.lengths if samples.many_to_many else None,
            )
        return replace(self, course=course, sample=sample, risks=risks)

    def to_file(self) -> tuple[dict[str, Any], Arrays]:
        """Return header and arrays of a file; raise TypeError for a custom cell."""
        check_saveable(self.arguments.cell)
        names, course = self.inputs.names, self.course
        fitted = {
            "n_features_in": self.inputs.n_features,
            "feature_names": None if names is None else plain(names, "columns of X"),
            "table": self.inputs.is_table,
            "n_inputs": self.inputs.n_inputs,
            **{name: getattr(course, name) for name in COURSE_FIELDS},
            "history": list(course.history),
            **self.targets.header(),
        }
        arrays = {"sample": self.sample.numpy()}
        for name, scaler in (("input", self.input_scaler), ("target", self.targets.scaler)):
            if scaler is not None:
                arrays |= {f"{name}_mean": scaler.mean_, f"{name}_scale": scaler.scale_}
        for name, risk in self.risks.items():
            arrays[f"{name}_losses"] = risk.losses
            if risk.weights is not None:
                arrays[f"{name}_weights"] = risk.weights
        for name, parameter in self.network.state_dict().items():
            arrays[NETWORK + name] = parameter.numpy()
        return {"class": self.model, "fitted": fitted}, arrays

    @classmethod
    def from_file(
        cls, header: dict[str, Any], arrays: Arrays, arguments: Arguments, targets: type[Targets]
    ) -> FittedFunction:
        """Rebuild a function from `to_file`; raise DamagedFileError for a changed file."""
        fitted = header["fitted"]
        record(KINDS | targets.kinds)(fitted, "fitted")
        settings = _settings_of_file(arguments, fitted, arrays)
        input_scaler = _scaler("input", arrays)
        restored = targets.from_file(fitted, _scaler("target", arrays))
        sizes = fitted["n_inputs"], restored.n_outputs
        with as_saved("params"):
            parameters = settings.shapes(*sizes).state_dict()
        _check_arrays(arrays, parameters, sizes, input_scaler, restored.scaler)
        if settings.standardize != (input_scaler is not None):
            raise refuse("the array 'input_mean'", "there if standardize is True", sorted(arrays))
        network = settings.network(*sizes)
        network.load_state_dict(
            {name: torch.as_tensor(arrays[NETWORK + name]) for name in network.state_dict()}
        )
        names = fitted["feature_names"]
        names = None if names is None else np.array(names, dtype=object)
        course = {name: fitted[name] for name in COURSE_FIELDS}
        risks = {
            name: risk_of(arrays[f"{name}_losses"], arrays.get(f"{name}_weights"), settings.loss, 0)
            for name in ("training", "validation")
            if f"{name}_losses" in arrays
        }
        return cls(
            header["class"],
            arguments,
            Inputs(fitted["n_features_in"], fitted["table"], names),
            input_scaler,
            restored,
            network.eval(),
            Course(**course | {"history": tuple(fitted["history"])}),
            torch.as_tensor(arrays["sample"]),
            risks,
        )


def _settings_of_file(arguments: Arguments, fitted: dict[str, Any], arrays: Arrays) -> Settings:
    """Return the settings of a file, with sizes bounded by those of the arrays."""
    most = max(MOST_SIZE, *(array.size for array in arrays.values()))
    params = arguments.as_dict()
    further = params["layer_options"] if isinstance(params["layer_options"], dict) else {}
    sizes = {f"params.{name}": params[name] for name in ("hidden_size", *PASSED_ON)}
    sizes |= {f"params.layer_options.{name}": value for name, value in further.items()}
    sizes |= {f"fitted.{name}": fitted[name] for name in ("n_inputs", "n_features_in")}
    for place, value in sizes.items():
        if isinstance(value, int) and abs(value) > most:
            raise refuse(place, f"at most {most}, by the arrays", value)
    if isinstance(params["n_layers"], int) and params["n_layers"] > len(arrays):
        raise refuse("params.n_layers", f"at most {len(arrays)}, by the arrays", params["n_layers"])
    with as_saved("params"):
        settings = settings_of(params | {"device": "cpu"})  # restored on the CPU
    names, n = fitted["feature_names"], fitted["n_features_in"]
    optional(listed(text, n))(names, "fitted.feature_names")
    inputs = 1 if fitted["table"] else n
    if fitted["n_inputs"] != inputs:
        raise refuse("fitted.n_inputs", f"{inputs}, by n_features_in and table", fitted["n_inputs"])
    for i, entry in enumerate(fitted["history"]):
        for name, kind in {"epoch": integer(0), "learning_rate": real}.items():
            kind(entry.get(name), f"fitted.history[{i}].{name}")
    return settings


def _check_arrays(
    arrays: Arrays,
    parameters: dict[str, Tensor],
    sizes: tuple[int, int],
    *scalers: StandardScaler | None,
) -> None:
    """Refuse arrays other than those of the network, its two scalers and its risks."""
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "sample": ("float32", (-1, -1, sizes[0])),
        "training_losses": ("float64", (-1,)),
        "validation_losses": ("float64", (-1,)),
    }
    for name in ("training", "validation"):
        if f"{name}_losses" in arrays:
            shapes[f"{name}_weights"] = "float64", arrays[f"{name}_losses"].shape
    for name, size, scaler in zip(("input", "target"), sizes, scalers, strict=True):
        if scaler is not None:
            shapes |= dict.fromkeys((f"{name}_mean", f"{name}_scale"), ("float64", (size,)))
    for name, parameter in parameters.items():
        dtype = str(parameter.dtype).removeprefix("torch.")
        shapes[NETWORK + name] = dtype, tuple(parameter.shape)
    check_arrays(
        arrays, shapes, may_lack=["validation_losses", "training_weights", "validation_weights"]
    )
    for name in ("sample", "training_losses"):
        if not arrays[name].size:
            raise refuse(f"the array {name!r}", "not empty", arrays[name].shape)


def _scaler(name: str, arrays: Arrays) -> StandardScaler | None:
    mean, scale = arrays.get(f"{name}_mean"), arrays.get(f"{name}_scale")
    if mean is None or scale is None:
        return None
    if mean.ndim != 1 or mean.shape != scale.shape or mean.dtype != scale.dtype:
        raise refuse(f"the array '{name}_scale'", f"as '{name}_mean', a row", scale.shape)
    return from_moments(mean, scale)
