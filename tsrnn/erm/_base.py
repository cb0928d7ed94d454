"""What regressor and classifier have in common: samples, training, files."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import IO, Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tsrnn.contract import Frozen, check_fits, saved_arguments, seed_of, write_file
from tsrnn.erm._data import SampleEpoch, TrainingData, counted_samples
from tsrnn.erm._guard import check_outputs
from tsrnn.erm._holdout import hold_out
from tsrnn.erm._network import EmpiricalRisk, RiskOfSamples, all_outputs, constant_risk
from tsrnn.erm._risk import Risk, empirical_risk
from tsrnn.erm._samples import take
from tsrnn.erm._scaling import fitted_scaler
from tsrnn.erm._score import risk_of_steps
from tsrnn.erm._sequences import Sequences, read_sequences
from tsrnn.erm._settings import Settings, settings_of
from tsrnn.erm._stored import arrays_of, check_header, header_of, revive
from tsrnn.erm._summary import Summary, reason_of_inactivity, summarise
from tsrnn.erm._targets import read_targets, read_weights, require_targets
from tsrnn.interpret import active_networks, block_shares
from tsrnn.layers import CellStack, RecurrentNetwork
from tsrnn.training import parameter_groups

SHARE_NUMBERS = 20_000  # of the inputs that blocks are judged by
OF_THE_NETWORK = (
    "hidden_size", "cell", "block_size", "n_layers", "nonlinearity", "layer_options",
    "aggregation", "input_projection", "many_to_many", "pooling", "standardize",
)  # fmt: skip
LARGEST = float(np.finfo(np.float32).max)


class SequenceEstimator(Frozen, BaseEstimator, ABC):
    """Base of the estimators of this room; not to be used by itself.

    A subclass says what targets are (`_targets`, `_original`), how they are put to the network
    (`_fit_targets`, `_encoded`, `_n_outputs`), which loss is lowered (`_loss`), how far outputs may
    go (`_output_bounds`), and what a file has of targets (`_target_header`, `_set_targets`).
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

    @property
    def _reading(self) -> str:
        """What of the states is read: see `outputs`."""
        if self.arguments_.many_to_many:
            return "every"
        return self.arguments_.pooling

    @abstractmethod
    def _targets(self, y: np.ndarray, sequences: Sequences, *, reset: bool) -> np.ndarray:
        """Targets as numbers, checked; with `reset` learn what they are."""

    @abstractmethod
    def _fit_targets(self, targets: np.ndarray, weights: np.ndarray | None) -> None:
        """Learn from those that train how they are put to the network."""

    @abstractmethod
    def _encoded(self, targets: np.ndarray, counted: np.ndarray | bool = True) -> Tensor:
        """Targets as the network is to give them; those that are not counted may be anything."""

    @abstractmethod
    def _target_header(self) -> dict[str, Any]:
        """What a file says of targets."""

    @abstractmethod
    def _set_targets(self, fitted: dict[str, Any]) -> None:
        """Take that back."""

    @abstractmethod
    def _original(self, targets: np.ndarray) -> np.ndarray:
        """Targets as users give them, one below the other."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """Outputs of the network."""

    @abstractmethod
    def _output_bounds(self, bound: float) -> tuple[Tensor, Tensor]:
        """Least and largest output."""

    def _strata(self, targets: np.ndarray) -> np.ndarray | None:
        """What a random split keeps the shares of."""
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
            With `many_to_many` also one a step, in the shape of y without k. Only ratios matter.
            Samples of weight 0 are left out: of training, of the validation part and of the risk;
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
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        settings = settings_of(self.arguments_.as_dict())
        sequences, targets, weights = self._read(X, y, sample_weight, settings, reset=True)
        generator = torch.Generator().manual_seed(seed_of(self.arguments_.random_state))
        samples = counted_samples(weights, sequences, settings.many_to_many)
        strata = self._strata(targets)
        if strata is not None:
            strata = strata[samples]
        train, held_out = hold_out(samples, settings, strata, generator)
        self._fit_scalers(sequences, targets, weights, train, settings)
        data = self._data(sequences, targets, weights, settings)
        self._start(sequences.n_inputs, settings, generator)
        self._train(data, train, held_out, settings, generator)
        self.n_train_, self.n_validation_ = len(train), len(held_out)
        self.sample_ = data.sample(SHARE_NUMBERS)
        self.sample_length_ = int(sequences.lengths.max())
        self.training_risk_ = self._risk(sequences, targets, weights, train)
        self.validation_risk_ = None
        if len(held_out):
            self.validation_risk_ = self._risk(sequences, targets, weights, held_out)

    def _fit_on(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Go on with one epoch over these samples."""
        first = not hasattr(self, "network_")
        if not first:
            self._check_unchanged()
        with self._fitting():
            self._go_on(X, y, sample_weight, first)

    def _go_on(self, X: Any, y: Any, sample_weight: Any, first: bool) -> None:
        settings = settings_of(self.arguments_.as_dict())
        sequences, targets, weights = self._read(X, y, sample_weight, settings, reset=first)
        seed = seed_of(self.arguments_.random_state) + (0 if first else self.n_train_)
        generator = torch.Generator().manual_seed(seed % 2**63)
        samples = counted_samples(weights, sequences, settings.many_to_many)
        if first:
            self._fit_scalers(sequences, targets, weights, samples, settings)
            self._start(sequences.n_inputs, settings, generator)
            self.n_train_ = self.n_validation_ = 0
        data = self._data(sequences, targets, weights, settings)
        self._train_once(data, samples, settings, generator)
        self.n_train_ += len(samples)
        # What is of a fit is no more of this network.
        self.history_, self.best_epoch_, self.validation_skill_ = [], 0, None
        self.sample_ = data.sample(SHARE_NUMBERS)
        self.sample_length_ = int(sequences.lengths.max())
        self.training_risk_ = self._risk(sequences, targets, weights, samples)
        self.validation_risk_ = None

    def _read(
        self, X: Any, y: Any, sample_weight: Any, settings: Settings, *, reset: bool
    ) -> tuple[Sequences, np.ndarray, np.ndarray | None]:
        require_targets(y, self)
        sequences = read_sequences(X, self, reset=reset)
        if reset:
            self._fitted_to_table = sequences.kind == "table"
        many = settings.many_to_many
        targets = self._targets(read_targets(y, sequences, many), sequences, reset=reset)
        return sequences, targets, read_weights(sample_weight, sequences, many)

    def _fit_scalers(
        self,
        sequences: Sequences,
        targets: np.ndarray,
        weights: np.ndarray | None,
        train: Tensor,
        settings: Settings,
    ) -> None:
        samples = np.zeros(len(sequences), bool)
        samples[train.numpy()] = True
        rows = np.repeat(samples, sequences.lengths)
        chosen = rows if settings.many_to_many else samples
        own = None if weights is None else weights[chosen]
        self._fit_targets(targets[chosen], own)
        self.input_scaler_ = None
        if settings.standardize:
            if own is not None and not settings.many_to_many:
                own = np.repeat(own, sequences.lengths[samples])
            self.input_scaler_ = fitted_scaler("X", sequences.values[rows], own)

    def _data(
        self,
        sequences: Sequences,
        targets: np.ndarray,
        weights: np.ndarray | None,
        settings: Settings,
    ) -> TrainingData:
        encoded = self._encoded(targets, True if weights is None else weights > 0)
        return TrainingData(self._scaled(sequences), encoded, weights, settings.many_to_many)

    def _scaled(self, sequences: Sequences) -> Sequences:
        """Sequences as the network sees them."""
        values = sequences.values
        if self.input_scaler_ is not None:
            values = self.input_scaler_.transform(values)
        too_large = np.abs(values) > LARGEST
        if too_large.any():
            row, column = np.argwhere(too_large)[0]
            sample, step = sequences.place(int(row))
            raise ValueError(
                f"X is too large for the network, whose numbers end at {LARGEST:.3g}: at sample "
                f"{sample}, step {step}, input {column} it is {sequences.values[row, column]:.3g}, "
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

    def _check_unchanged(self) -> None:
        """Raise if an argument of the network is another than that of the fit."""
        fitted, now = self.arguments_.as_dict(), self.get_params(deep=False)
        for name in OF_THE_NETWORK:
            if now[name] is not fitted[name] and now[name] != fitted[name]:
                raise ValueError(
                    f"partial_fit needs the arguments of the fit; {name} was {fitted[name]!r} and "
                    f"is now {now[name]!r}. Set it back, or fit again"
                )

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
        """A network that has the shapes of its parameters alone."""
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

        network, reading = self.network_, self._reading
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
            constant = constant_risk(data, train, held_out, self._loss)
            kept = self.history_[self.best_epoch_ - 1]["val_loss"]
            if constant > 0:
                self.validation_skill_ = 1 - kept / constant

    def _train_once(
        self, data: TrainingData, samples: Tensor, settings: Settings, generator: torch.Generator
    ) -> None:
        from tsrnn.training import train_for

        self.network_ = network = copy.deepcopy(self.network_).train()
        self._moments = train_for(
            network,
            SampleEpoch(data, samples, settings.batch_size, generator, least_steps=1),
            loss=EmpiricalRisk(network, self._loss, self._reading),
            groups=parameter_groups(network, [], settings.learning_rate, settings.weight_decay),
            rates=[settings.learning_rate],
            device=settings.device,
            callbacks=settings.callbacks,
            verbose=settings.verbose,
            moments=copy.deepcopy(self._moments),
        )
        network.eval()

    def _risk(
        self,
        sequences: Sequences,
        targets: np.ndarray,
        weights: np.ndarray | None,
        samples: Tensor,
    ) -> Risk:
        """Risk of some samples, in the unit of the targets."""
        rows, y = samples.numpy(), self._original(targets)
        X = take(sequences.in_shape(sequences.values), rows)
        if self.arguments_.many_to_many:
            weights = np.ones(len(y)) if weights is None else weights
            chosen = np.isin(np.repeat(np.arange(len(sequences)), sequences.lengths), rows)
            lengths = sequences.lengths[rows]
            return risk_of_steps(self, X, y[chosen], weights[chosen], lengths)
        own = None if weights is None else weights[rows]
        return empirical_risk(self, X, y[rows], loss=self._loss, sample_weight=own)

    def _in_shape(self, sequences: Sequences, values: np.ndarray) -> Any:
        """Values of samples as they are, those of steps in the shape of X."""
        return sequences.in_shape(values) if self.arguments_.many_to_many else values

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
        found = all_outputs(self.network_, data, self._reading)
        check_outputs(found, sequences, many)
        if bound is not None:
            least, largest = self._output_bounds(bound)
            found = found.clip(least.numpy(), largest.numpy())
        return sequences, found

    def summary(self) -> Summary:
        """What was fitted, its risk, and its recurrence features; print the result."""
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
            If an argument is no JSON value, as a cell of one's own is not; the message names it.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self, "network_")
        write_file(path, header_of(self), arrays_of(self))

    @classmethod
    def _restore(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], restore: Any = None
    ) -> SequenceEstimator:
        """The fitted estimator that `save` wrote."""
        check_header(cls, header)
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
        """Why the network contributes nothing, by its number, 1; empty if it contributes."""
        reason = reason_of_inactivity(self)
        return {} if reason is None else {1: reason}

    def block_shares_(self) -> list[np.ndarray] | None:
        """Share of the network's output variance by block, an array a layer.

        Judged on some of the samples fitted to; see `tsrnn.recurrence_features`. None where the
        layers have no blocks.

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
