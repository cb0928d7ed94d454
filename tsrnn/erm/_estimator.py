"""Estimator of functions of sequences: the samples, training and files of every such estimator."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tsrnn.contract import (
    Frozen,
    Kind,
    check_argument_names,
    check_fits,
    record,
    saved_arguments,
    seed_of,
    write_file,
)
from tsrnn.erm._file import COMMON, arrays_of, header_of, revive
from tsrnn.erm._resampling import take
from tsrnn.erm._risk import Risk, empirical_risk, risk_of_steps
from tsrnn.erm._sequences import Sequences, read_sequences
from tsrnn.erm._settings import Settings, settings_of, update_arguments
from tsrnn.erm._summary import Summary, reason_of_inactivity, summarise
from tsrnn.erm._targets import read_targets, read_weights, require_targets
from tsrnn.erm._training import (
    EmpiricalRisk,
    RiskOfSamples,
    SampleEpoch,
    TrainingData,
    all_outputs,
    constant_risk,
    counted_samples,
    fitted_scaler,
    hold_out,
)
from tsrnn.interpret import active_networks, block_shares
from tsrnn.layers import CellStack, RecurrentNetwork
from tsrnn.training import parameter_groups

SHARE_NUMBERS = 20_000  # of the inputs that blocks are judged by
OF_THE_NETWORK = (
    "hidden_size", "cell", "block_size", "n_layers", "nonlinearity", "n_states", "window",
    "n_heads", "engine", "layer_options", "aggregation", "input_projection", "many_to_many",
    "pooling", "standardize",
)  # fmt: skip
LARGEST = float(np.finfo(np.float32).max)


class SequenceEstimator(Frozen, BaseEstimator, ABC):
    """Base of the estimators of functions of sequences; not to be used by itself.

    A subclass reads targets (`_targets`) and gives them back (`_original`), puts them to the
    network (`_fit_targets`, `_encoded`, `_n_outputs`), names the loss that is lowered (`_loss`),
    bounds outputs (`_output_bounds`), and writes targets to files (`_target_header`,
    `_target_kinds`, `_set_targets`).
    """

    not_saved = ("callbacks",)
    network_: Any
    history_: list[dict[str, float]]
    best_epoch_: int
    validation_skill_: float | None
    input_scaler_: StandardScaler | None
    target_scaler_: StandardScaler | None
    feature_names_in_: np.ndarray
    n_features_in_: int
    _fitted_to_table: bool

    def __init__(
        self,
        hidden_size: int = 64,
        *,
        cell: Any = "rnn",
        block_size: int | None = None,
        n_layers: int = 1,
        nonlinearity: str | None = None,
        init: str | None = None,
        n_states: int | None = None,
        window: int | None = None,
        n_heads: int | None = None,
        engine: str = "auto",
        layer_options: dict[str, Any] | None = None,
        aggregation: str = "fc",
        input_projection: bool = False,
        many_to_many: bool = False,
        pooling: str = "last",
        bound: float | None = None,
        standardize: bool = True,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.0,
        batch_size: int | None = None,
        max_epochs: int = 100,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        validation_split: str = "random",
        patience: int | None = 10,
        device: str = "cpu",
        callbacks: Sequence[Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_size = hidden_size
        self.cell = cell
        self.block_size = block_size
        self.n_layers = n_layers
        self.nonlinearity = nonlinearity
        self.init = init
        self.n_states = n_states
        self.window = window
        self.n_heads = n_heads
        self.engine = engine
        self.layer_options = layer_options
        self.aggregation = aggregation
        self.input_projection = input_projection
        self.many_to_many = many_to_many
        self.pooling = pooling
        self.bound = bound
        self.standardize = standardize
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.validation_split = validation_split
        self.patience = patience
        self.device = device
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose

    @property
    @abstractmethod
    def _loss(self) -> str:
        """Name of the loss."""

    @abstractmethod
    def _targets(self, y: np.ndarray, sequences: Sequences, *, reset: bool) -> np.ndarray:
        """Targets as numbers, checked; with `reset` learn their shape or their classes."""

    @abstractmethod
    def _original(self, targets: np.ndarray) -> np.ndarray:
        """Targets as users give them, one below the other."""

    @abstractmethod
    def _fit_targets(self, targets: np.ndarray, weights: np.ndarray | None) -> None:
        """Learn from the training part how targets are put to the network."""

    @abstractmethod
    def _encoded(self, targets: np.ndarray, counted: np.ndarray | bool = True) -> Tensor:
        """Targets as the network is to give them; those that are not counted may be anything."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """Outputs of the network."""

    @abstractmethod
    def _output_bounds(self, bound: float) -> tuple[Tensor, Tensor]:
        """Least and largest output."""

    @abstractmethod
    def _target_header(self) -> dict[str, Any]:
        """Fields of a file that describe targets."""

    @classmethod
    @abstractmethod
    def _target_kinds(cls) -> dict[str, Kind]:
        """Kinds of these fields by name."""

    @abstractmethod
    def _set_targets(self, fitted: dict[str, Any]) -> None:
        """Restore the description of targets from the fields of a file."""

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        update_arguments(header["params"])

    def _strata(self, targets: np.ndarray) -> np.ndarray | None:
        """Classes whose shares a random split keeps."""
        return None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the network.

        Parameters
        ----------
        X : array of shape (N, T, d_in), list of N arrays (T_i, d_in) or (T_i,), or table (N, T)
            In a table rows are series of one input, all of one length, then and later.
        y : array of shape (N,) or (N, k)
            With `many_to_many` of shape (N, T) or (N, T, k), or a list of arrays (T_i,) or
            (T_i, k). Classes have no k.
        sample_weight : array of shape (N,), optional
            With `many_to_many` also one per step, in the shape of y without k. Only ratios matter.
            Samples of weight 0 are left out of training, of the validation part and of the risk;
            targets of steps of weight 0 may be any number.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument is not legal or the data do not fit; the message names the sample.
        FloatingPointError
            If training diverges.
        """
        with self._fitting():
            settings = settings_of(self.arguments_.as_dict())
            samples = self._read(X, y, sample_weight, settings, reset=True)
            generator = torch.Generator().manual_seed(seed_of(self.arguments_.random_state))
            counted = counted_samples(samples.weights, samples.sequences, settings.many_to_many)
            strata = self._strata(samples.targets)
            if strata is not None:
                strata = strata[counted]
            train, held_out = hold_out(counted, settings, strata, generator)
            self._fit_scalers(samples, train, settings)
            data = self._data(samples, settings)
            self._start(samples.sequences.n_inputs, settings, generator)
            self._train(data, train, held_out, settings, generator)
            self.n_train_, self.n_validation_ = len(train), len(held_out)
            self._judge(samples, data, train, held_out)
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Go on with one epoch over these samples; the first call starts."""
        first = not hasattr(self, "network_")
        if not first:
            fitted, now = self.arguments_.as_dict(), self.get_params(deep=False)
            for name in OF_THE_NETWORK:
                if now[name] is not fitted[name] and now[name] != fitted[name]:
                    raise ValueError(
                        f"partial_fit needs the arguments of the fit; {name} was {fitted[name]!r} "
                        f"and is now {now[name]!r}. Set it back, or fit again"
                    )
        with self._fitting():
            settings = settings_of(self.arguments_.as_dict())
            samples = self._read(X, y, sample_weight, settings, reset=first)
            # Another order of the samples at each call, and the same ones in another run.
            seed = seed_of(self.arguments_.random_state) + (0 if first else self.n_train_)
            generator = torch.Generator().manual_seed(seed % 2**63)
            counted = counted_samples(samples.weights, samples.sequences, settings.many_to_many)
            if first:
                self._fit_scalers(samples, counted, settings)
                self._start(samples.sequences.n_inputs, settings, generator)
                self.n_train_ = self.n_validation_ = 0
            data = self._data(samples, settings)
            self._train_once(data, counted, settings, generator)
            self.n_train_ += len(counted)
            # The record of a fit does not describe this network any more.
            self.history_, self.best_epoch_, self.validation_skill_ = [], 0, None
            self._judge(samples, data, counted, counted[:0])

    def _read(
        self, X: Any, y: Any, sample_weight: Any, settings: Settings, *, reset: bool
    ) -> _Samples:
        require_targets(y, self)
        sequences = read_sequences(X, self, reset=reset)
        if reset:
            self._fitted_to_table = sequences.kind == "table"
        many = settings.many_to_many
        targets = self._targets(read_targets(y, sequences, many), sequences, reset=reset)
        return _Samples(sequences, targets, read_weights(sample_weight, sequences, many))

    def _fit_scalers(self, samples: _Samples, train: Tensor, settings: Settings) -> None:
        sequences, weights = samples.sequences, samples.weights
        trained = np.zeros(len(sequences), bool)
        trained[train.numpy()] = True
        rows = np.repeat(trained, sequences.lengths)
        of_targets = rows if settings.many_to_many else trained
        weights = None if weights is None else weights[of_targets]
        self._fit_targets(samples.targets[of_targets], weights)
        self.input_scaler_ = None
        if settings.standardize:
            if weights is not None and not settings.many_to_many:
                weights = np.repeat(weights, sequences.lengths[trained])
            self.input_scaler_ = fitted_scaler("X", sequences.values[rows], weights)

    def _data(self, samples: _Samples, settings: Settings) -> TrainingData:
        weights = samples.weights
        encoded = self._encoded(samples.targets, True if weights is None else weights > 0)
        scaled = self._scaled(samples.sequences)
        return TrainingData(scaled, encoded, weights, settings.many_to_many)

    def _scaled(self, sequences: Sequences) -> Sequences:
        """Sequences as the network sees them."""
        values = sequences.values
        if self.input_scaler_ is not None:
            values = self.input_scaler_.transform(values)
        too_large = np.abs(values) > LARGEST
        if too_large.any():
            row, column = np.argwhere(too_large)[0]
            raise ValueError(
                f"X is too large for the network, whose numbers end at {LARGEST:.3g}: at "
                f"{sequences.where(int(row), True)}, input {column} it is "
                f"{sequences.values[row, column]:.3g}, "
                f"and {values[row, column]:.3g} as the network is to see it. Change its unit, or "
                "look for what is wrong with this value"
            )
        return replace(sequences, values=values)

    def _start(self, n_inputs: int, settings: Settings, generator: torch.Generator) -> None:
        self._make_network(n_inputs)
        self.network_.prepare(verbose=bool(settings.verbose))
        self.network_.reset_parameters(generator)
        self.history_ = []
        self.best_epoch_ = 0

    def _make_network(self, n_inputs: int) -> None:
        settings = settings_of(self.arguments_.as_dict() | {"device": "cpu"})
        shapes = self._network_without_memory(n_inputs).parameters()
        check_fits(
            f"a network of hidden_size={settings.hidden_size} and n_layers={settings.n_layers}",
            16.0 * sum(parameter.numel() for parameter in shapes),  # value, gradient, two moments
            "Take smaller sizes; by default hidden_size=64 and n_layers=1",
        )
        with torch.random.fork_rng(devices=[]):  # layers draw parameters, which are drawn anew
            self.network_ = settings.make(n_inputs, self._n_outputs())
        self._moments: dict[Any, Any] | None = None

    def _check_settings(self) -> None:
        settings_of(self.get_params(deep=False) | {"device": "cpu"})

    def _network_without_memory(self, n_inputs: int) -> RecurrentNetwork:
        """Network that has the shapes of its parameters alone."""
        settings = settings_of(self.get_params(deep=False) | {"device": "cpu"})
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            return settings.make(n_inputs, self._n_outputs())

    def _train(
        self,
        data: TrainingData,
        train: Tensor,
        held_out: Tensor,
        settings: Settings,
        generator: torch.Generator,
    ) -> None:
        from tsrnn.training import train as fit_network  # Lightning is slow to load

        network, reading = self.network_, self._reading()
        bounds = None if settings.bound is None else self._output_bounds(settings.bound)
        judged = held_out if len(held_out) else train
        self.history_, self.best_epoch_ = fit_network(
            network,
            SampleEpoch(data, train, settings.batch_size, generator),
            loss=EmpiricalRisk(network, self._loss, reading),
            validate=RiskOfSamples(network, data, judged, self._loss, reading, bounds),
            groups=parameter_groups(network, [], settings.learning_rate, settings.weight_decay),
            max_epochs=settings.max_epochs,
            patience=settings.patience if settings.early_stopping else None,
            device=settings.device,
            callbacks=settings.callbacks,
            verbose=settings.verbose,
        )
        network.eval()
        self.validation_skill_ = None
        if len(held_out) and self.best_epoch_:
            # The network is judged by what it takes off the risk of the best constant.
            constant = constant_risk(data, train, held_out, self._loss)
            kept = self.history_[self.best_epoch_ - 1]["val_loss"]
            if constant > 0:
                self.validation_skill_ = 1 - kept / constant

    def _train_once(
        self, data: TrainingData, samples: Tensor, settings: Settings, generator: torch.Generator
    ) -> None:
        from tsrnn.training import train_for

        # A copy: a call that fails leaves the network as it was.
        self.network_ = network = copy.deepcopy(self.network_).train()
        self._moments = train_for(
            network,
            SampleEpoch(data, samples, settings.batch_size, generator, least_steps=1),
            loss=EmpiricalRisk(network, self._loss, self._reading()),
            groups=parameter_groups(network, [], settings.learning_rate, settings.weight_decay),
            rates=[settings.learning_rate],
            device=settings.device,
            callbacks=settings.callbacks,
            verbose=settings.verbose,
            moments=copy.deepcopy(self._moments),
        )
        network.eval()

    def _reading(self) -> str:
        """States that the head is given: see `outputs`."""
        return "every" if self.arguments_.many_to_many else self.arguments_.pooling

    def _judge(
        self, samples: _Samples, data: TrainingData, train: Tensor, held_out: Tensor
    ) -> None:
        """Keep a sample of inputs, and the risk of either part."""
        self.sample_ = data.sample(SHARE_NUMBERS)
        self.sample_length_ = int(samples.sequences.lengths.max())
        self.training_risk_ = self._risk(samples, train)
        self.validation_risk_ = self._risk(samples, held_out) if len(held_out) else None

    def _risk(self, samples: _Samples, part: Tensor) -> Risk:
        """Risk of a part of the samples, in the unit of the targets."""
        sequences, weights, rows = samples.sequences, samples.weights, part.numpy()
        y = self._original(samples.targets)
        X = take(sequences.in_shape(sequences.values), rows)
        if not self.arguments_.many_to_many:
            weights = None if weights is None else weights[rows]
            return empirical_risk(self, X, y[rows], loss=self._loss, sample_weight=weights)
        lengths = sequences.lengths[rows]
        steps = np.isin(np.repeat(np.arange(len(sequences)), sequences.lengths), rows)
        weights = np.ones(steps.sum()) if weights is None else weights[steps]
        return risk_of_steps(self, X, y[steps], weights, lengths)

    def _outputs(self, X: Any) -> tuple[Sequences, np.ndarray]:
        """Sequences of X, and outputs of the network (N, k), or (rows, k) of all steps.

        Raises
        ------
        FloatingPointError
            If one is not finite.
        """
        check_is_fitted(self, "network_")
        sequences = read_sequences(X, self, reset=False)
        many, bound = self.arguments_.many_to_many, self.arguments_.bound
        unknown = torch.zeros(len(sequences.values) if many else len(sequences))
        data = TrainingData(self._scaled(sequences), unknown, None, many)
        outputs = all_outputs(self.network_, data, self._reading())
        finite = np.isfinite(outputs).all(1)
        if not finite.all():
            raise FloatingPointError(
                f"the network gives no finite output for {(~finite).sum()} of {len(finite)} "
                f"targets, the first at {sequences.where(int(np.argmin(finite)), many)}: values "
                "of X are too far from those of the fit, or states grow without bound over the "
                "steps. Look for such values, or leave these samples out"
            )
        if bound is not None:
            least, largest = self._output_bounds(bound)
            outputs = outputs.clip(least.numpy(), largest.numpy())
        return sequences, outputs

    def _in_shape(self, sequences: Sequences, values: np.ndarray) -> Any:
        """Values in the shape of X where they are of steps, those of samples as they are."""
        return sequences.in_shape(values) if self.arguments_.many_to_many else values

    def _scored(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Targets, predictions and weights of samples, or of the steps of all samples."""
        require_targets(y, self)
        predictions = self.predict(X)
        sequences, many = read_sequences(X, self, reset=False), self.arguments_.many_to_many
        if many:
            predictions = np.concatenate([*predictions])
        weights = read_weights(sample_weight, sequences, many)
        return read_targets(y, sequences, many), predictions, weights

    def summary(self) -> Summary:
        """Summary of the fit, its risk and its recurrence features; print the result."""
        check_is_fitted(self, "network_")
        return summarise(self)

    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the fitted estimator to a file that `tsrnn.load` reads.

        Safetensors with a JSON header, in one step: a file of that name is whole or untouched. A
        generator as `random_state`, callbacks and the state of the optimiser are not kept. The
        arguments in the file are those of the fit, whatever `set_params` has given since.

        Parameters
        ----------
        path : path or binary file
            An open file, for example an `io.BytesIO`, is written to where it stands.

        Raises
        ------
        TypeError
            If an argument cannot be written as JSON, such as your own cell; the message names it.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self, "network_")
        write_file(path, header_of(self), arrays_of(self))

    @classmethod
    def _restore(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], restore: Any = None
    ) -> SequenceEstimator:
        """Restore the fitted estimator that `save` wrote."""
        record(COMMON)(header, "")
        check_argument_names(cls, header)
        estimator = cls(**saved_arguments(header))
        estimator._freeze()
        revive(estimator, header["fitted"], arrays)
        return estimator

    @property
    def network_active_(self) -> bool:
        """Whether the network was found to predict better than a constant, if that was judged.

        Not so where no epoch was better than the random start, or where the risk of the held-out
        samples is not below that of the best constant (``validation_skill_`` of 0 or less).
        """
        return not self.inactive_networks_

    @property
    def inactive_networks_(self) -> dict[int, str]:
        """Reason why the network contributes nothing, by its number, 1; empty if it contributes."""
        reason = reason_of_inactivity(self)
        return {} if reason is None else {1: reason}

    def block_shares_(self) -> list[np.ndarray] | None:
        """Share of the network's output variance by block, one array per layer.

        Computed from a part of the training samples; see `tsrnn.recurrence_features`. None where
        the layers have no blocks.

        Raises
        ------
        tsrnn.interpret.UninformativeNetworkError
            If the network contributes nothing.
        """
        check_is_fitted(self, "network_")
        active_networks(self, "block_shares_")
        if not isinstance(self.network_.rnn, CellStack):
            return None
        return [share.numpy() for share in block_shares(self.network_, self.sample_)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


@dataclass(frozen=True)
class _Samples:
    """Sequences with their targets, as numbers, and weights, of samples or of all steps."""

    sequences: Sequences
    targets: np.ndarray
    weights: np.ndarray | None
