"""Base of the estimators of functions of sequences."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import IO, Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import (
    Arguments,
    Kind,
    anything,
    arguments_of,
    by_name,
    check_argument_names,
    integer,
    listed,
    record,
    saved_arguments,
    text,
    write_file,
)
from tsrnn.erm._function import FittedFunction
from tsrnn.erm._minimisation import minimise_risk, minimise_risks, take_epoch
from tsrnn.erm._sequences import read_sequences
from tsrnn.erm._settings import update_arguments
from tsrnn.erm._summary import SequenceSummary, reason_of_inactivity, summarise
from tsrnn.erm._targets import Targets, read_targets, read_weights
from tsrnn.interpret import active_networks, block_shares, recurrence_features
from tsrnn.layers import CellStack

Class = TypeVar("Class", bound=type)

# Fields of a file.
KINDS: dict[str, Kind] = {
    "format": integer(1),
    "version": text,
    "class": text,
    "params": by_name(anything),
    "tuples": listed(text),
    "fitted": by_name(anything),
}


def of_fit(read: str | Callable[[FittedFunction], Any], doc: str) -> Any:
    """Return a property that reads the fitted function, by an attribute path or a function."""
    value: Callable[[FittedFunction], Any] = attrgetter(read) if isinstance(read, str) else read
    return property(lambda estimator: value(estimator._function), doc=doc)


class SequenceEstimator(BaseEstimator):
    """Abstract base of the estimators of functions of sequences.

    A subclass sets the class of its targets, `_targets`.

    Parameters
    ----------
    hidden_size : int, default 64
        Width d of the network.
    cell : {"rnn", "gru", "lstm", "attention", "lem", "lru", "newton-gru", "newton-lstm"} or Cell
        Recurrent layers by their names in `tsrnn.layers.CELLS`: blocks of Elman networks, of gated
        recurrent units or of long short-term memory; block-recurrent attention; long expressive
        memory; linear recurrent units; the diagonal cells of Danieli et al. (2025); or your own
        `tsrnn.kernels.Cell`.
    block_size : int or sequence of int, optional
        Block size d_s, a divisor of `hidden_size`. By default 2, and full matrices for "lem".
        ``block_size=hidden_size`` gives the ordinary network. "lru" and the cells of Danieli et al.
        have no blocks. "rnn", "gru" and "lstm" also accept several sizes, such as (2, 2, 4), with a
        sum that divides `hidden_size`.
    n_layers : int, default 1
        Number of recurrent layers L.
    nonlinearity : {"tanh", "relu", "identity"}, optional
        Activation of ``cell="rnn"``, "tanh" by default. The theorems assume "relu".
    init : str, optional
        Initialisation, among those of the layer.
    n_states, window, n_heads : int, optional
        State vectors, steps of a window and heads of ``cell="attention"``; by default 16, 16 and 4.
        `n_heads` divides `hidden_size`; the cells of Danieli et al. have it too, by default 1.
        Table S.1 of Cai et al. has 3 to 5 layers, 32 or 128 states and 8 heads.
    engine : str, default "auto"
        Engine of `tsrnn.kernels.recurrence`, for training and predictions. In time order:
        "sequential", or "dense" for blocks above 8. Parallel in time: "shooting", "newton", or
        "scan" for linear recurrences. "reference" is a loop in torch. Predictions agree to
        rounding. Attention only has "auto".
    layer_options : dict, optional
        Further arguments of the layer, such as ``{"dt": 0.5}`` for "lem", or for "attention"
        ``{"recurrent_layer": "all"}``.
    aggregation : {"fc", "linear", "ffn"}, default "fc"
        Aggregation F, see `tsrnn.layers.RecurrentNetwork`. The theorems assume "fc"; with "linear",
        outputs are sums over blocks.
    input_projection : bool, default False
        Map the inputs by a matrix P before the first layer.
    many_to_many : bool, default False
        Estimate a target at every step, E[z_t | x_1, ..., x_t], instead of one per sample.
    pooling : {"last", "mean", "max"}, default "last"
        State of the last layer that predicts one target per sample: the last, as in the theorems,
        or the mean or maximum over steps. "max" and "mean" can be far better if the relevant steps,
        such as those that distinguish classes, may lie anywhere in a long sequence; "last" is
        better if the order of the last steps matters. Choose by cross-validation.
    bound : float, optional
        Bound U: predictions are truncated to [-U, U], in the unit of the targets. A classifier
        truncates its outputs, log odds up to a constant, so that no probability is 0. Training
        minimises the risk before truncation, and truncation lowers it further for targets within
        [-U, U]. By default there is no bound.
    standardize : bool, default True
        Centre each input, and each target of a regressor, and divide by the standard deviation over
        all steps of the training part.
    learning_rate : float, default 0.002
        Learning rate of Adam, halved when the validation risk has not improved for three epochs.
        Training ends below 1e-6. Gradients are clipped at norm 1.
    weight_decay : float, default 0
        Decoupled weight decay.
    batch_size : int, optional
        Samples per step of the optimiser; by default 64, or a 200th of the training part if that
        is more, at most 1024. An epoch is one pass over the training part, or several passes if one
        has fewer than 20 steps.
    max_epochs : int, default 100
    early_stopping : bool, default True
        Hold out a part of the samples. Its risk selects the epoch whose parameters are kept, halves
        the learning rate and ends training. If False, the empirical risk of all samples decides,
        and training continues to `max_epochs` or the least learning rate: empirical risk
        minimisation as in the theorems.
    validation_fraction : float, default 0.1
        Held-out fraction of the samples, at most a half.
    validation_split : {"random", "last"}, default "random"
        Held-out samples. For samples in time order, such as windows of one series, take the last;
        the first of these still overlap with the last windows of the training part.
    patience : int or None, default 10
        Epochs without improvement of the validation risk before training stops.
    device : str, default "cpu"
        Device of training, such as "cuda". Predictions are computed on the CPU.
    callbacks : list of lightning.pytorch.Callback, optional
        Passed to Lightning's trainer, such as `tsrnn.interpret.FeatureHistory`.
    random_state : int, numpy random generator or None
        Seed; the same integer gives the same estimate on the same machine. None varies.
    verbose : int, default 0
        1 shows a progress bar over epochs.

    Attributes
    ----------
    fitted_ : SequenceFunction
        Fitted function, the source of all other attributes.
    arguments_ : tsrnn.contract.Arguments
        Constructor arguments of the fit; before a fit, the current ones.
    network_ : tsrnn.layers.RecurrentNetwork
    history_ : list of dict
        Losses, in the scale of training, and learning rate of each epoch.
    best_epoch_ : int
        Epoch of the kept parameters; 0 is the random start.
    validation_skill_ : float or None
        Relative reduction of the held-out risk against the best constant, :math:`1 - R / R_0`, in
        the scale of training: 1 is perfect, 0 as good as the constant. None without held-out
        samples.
    network_active_ : bool
        False if no epoch was better than the random start, or `validation_skill_` is not positive.
        Functions that interpret networks, such as `tsrnn.recurrence_features`, then raise
        `tsrnn.interpret.UninformativeNetworkError`.
    inactive_networks_ : dict of int to str
        Reason why the network contributes nothing, with key 1; else empty.
    sample_length_ : int
        Steps of the longest sequence.
    training_risk_, validation_risk_ : Risk
        Mean loss over training and held-out samples, or over all their steps, with weights if
        given, in the unit of the data. `validation_risk_` is None without held-out samples, and
        slightly too small, since it selected the epoch. Several outputs are averaged; in training,
        each is divided by its variance if standardised.
    n_train_, n_validation_ : int
        Number of samples in either part; after `partial_fit` all samples trained on, and 0.
    n_features_in_ : int
        Inputs per step; for a table, its columns, which are steps.
    feature_names_in_ : ndarray of str
        Columns of a table, if all have names.
    sample_ : Tensor of shape (n, T, d_in)
        Scaled inputs of the training part, on which shares of blocks are computed.
    input_scaler_ : sklearn.preprocessing.StandardScaler or None
    """

    not_saved = ("callbacks",)
    _targets: ClassVar[type[Targets]]
    fitted_: FittedFunction

    def __init__(
        self,
        hidden_size: int = 64,
        *,
        cell: Any = "rnn",
        block_size: int | Sequence[int] | None = None,
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

    network_ = of_fit("network", "Network, in evaluation mode.")
    history_ = of_fit(lambda f: [*map(dict, f.course.history)], "Losses of every epoch.")
    best_epoch_ = of_fit("course.best_epoch", "Epoch whose parameters are kept.")
    validation_skill_ = of_fit("course.validation_skill", "Skill against the best constant.")
    sample_length_ = of_fit("course.sample_length", "Steps of the longest sequence.")
    training_risk_ = of_fit(lambda f: f.risks["training"], "Risk of the training part.")
    validation_risk_ = of_fit(lambda f: f.risks.get("validation"), "Risk of the held-out part.")
    n_train_ = of_fit("course.n_train", "Samples of the training part.")
    n_validation_ = of_fit("course.n_validation", "Samples of the held-out part.")
    n_features_in_ = of_fit("inputs.n_features", "Inputs per step, or columns of a table.")
    sample_ = of_fit(lambda f: f.sample.clone(), "Inputs of the network that blocks are judged by.")
    input_scaler_ = of_fit("input_scaler", "Scaler of the inputs.")

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Columns of the table of the fit."""
        names = self._function.inputs.names
        if names is None:
            raise AttributeError("feature_names_in_ is of fits to tables whose columns have names")
        return names

    @property
    def arguments_(self) -> Arguments:
        """Constructor arguments of the last fit; before a fit, the current ones."""
        return self.fitted_.arguments if hasattr(self, "fitted_") else Arguments.of(self)

    @property
    def _function(self) -> FittedFunction:
        check_is_fitted(self)
        return self.fitted_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        update_arguments(header["params"])

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the network.

        Parameters
        ----------
        X : array of shape (N, T, d_in), list of N arrays (T_i, d_in) or (T_i,), or table (N, T)
            Sequences. Rows of a table are series of one input and of one length, also later.
        y : array of shape (N,) or (N, k)
            Targets; with `many_to_many` of shape (N, T) or (N, T, k), or a list of arrays (T_i,) or
            (T_i, k). Classes have no k.
        sample_weight : array of shape (N,), optional
            Weights; with `many_to_many` also one per step, in the shape of y without k. Only ratios
            matter. Samples of weight 0 enter neither training, validation nor risk; targets of
            steps of weight 0 may be any number.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an argument is not legal, or the data do not match.
        FloatingPointError
            If training diverges.
        """
        self.fitted_ = self._fit_samples(X, y, sample_weight)
        return self

    def _fit_samples(self, *data: Any) -> FittedFunction:
        return minimise_risk(type(self).__name__, self._targets, Arguments.of(self), *data)

    def _can_be_fitted_together(self) -> bool:
        """Return True if fits like this one can be trained in one pass."""
        cls, arguments = type(self), Arguments.of(self)
        options = arguments.layer_options
        return (
            (cls.fit, cls._fit_samples) == (SequenceEstimator.fit, SequenceEstimator._fit_samples)
            and isinstance(arguments.cell, str)  # code of users may not run under torch.vmap
            and not arguments.callbacks
            and arguments.device == "cpu"
            # Dropout draws for all networks at once, unlike in single fits.
            and not (isinstance(options, Mapping) and options.get("dropout"))
        )

    @classmethod
    def _fit_together(
        cls,
        estimators: Sequence[Self],
        samples: Sequence[Callable[[], tuple[Any, ...]]],
        names: Sequence[str],
    ) -> None:
        """Fit each estimator to its samples in one pass, equal to `fit` up to rounding."""
        arguments = [Arguments.of(estimator) for estimator in estimators]
        functions = minimise_risks(cls.__name__, cls._targets, arguments, samples, names)
        for estimator, function in zip(estimators, functions, strict=True):
            estimator.fitted_ = function

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train one more epoch on these samples, at `learning_rate`, without validation.

        The first call without an earlier fit also sets the standardisation and draws the network.
        The state of the optimiser is kept between calls, but not in files. An epoch is one pass
        over the given samples; only ratios of weights within a call matter. `history_` is empty
        afterwards.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self
        """
        return self._go_on(X, y, sample_weight)

    def _go_on(self, *data: Any) -> Self:
        before = self.fitted_ if hasattr(self, "fitted_") else None
        self.fitted_ = take_epoch(
            type(self).__name__, self._targets, Arguments.of(self), before, *data
        )
        return self

    def predict(self, X: Any) -> Any:
        """Return the estimate of f0 at X; for a classifier, the most probable class.

        Parameters
        ----------
        X : as in `fit`
            Sequences of any lengths; a table has as many columns as in `fit`.

        Returns
        -------
        ndarray of shape (N,) or (N, k)
            Predictions in the shape of y in `fit`. With `many_to_many` of shape (N, T) or
            (N, T, k); for a list, a list of arrays (T_i,) or (T_i, k).

        Raises
        ------
        ValueError
            If X has another form or is not finite.
        FloatingPointError
            If an output of the network is not finite.
        """
        return self._function.predict(X)

    def _scored(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return targets, predictions and weights of samples, or of all their steps."""
        function, many = self._function, self.arguments_.many_to_many
        sequences = read_sequences(X, function.model, function.inputs)
        y, weights = read_targets(y, sequences, many), read_weights(sample_weight, sequences, many)
        outputs = function.evaluate(sequences)
        return y, function.targets.predictions(outputs, self.arguments_.bound), weights

    def summary(self) -> SequenceSummary:
        """Return a page on the fit, its risk and its recurrence features, to be printed."""
        function = self._function
        readable = self.network_active_ and function.network.matrix_names
        return summarise(function, recurrence_features(self) if readable else None)

    def save(self, path: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the fitted estimator to a file that `tsrnn.load` reads.

        The format is safetensors with a JSON header; writing is atomic. A generator as
        `random_state`, callbacks and the state of the optimiser are not saved. Arguments are those
        of the fit, not later ones of `set_params`.

        Parameters
        ----------
        path : path or binary file
            An open file, for example an `io.BytesIO`, is written from its current position.

        Raises
        ------
        TypeError
            If an argument has no JSON form, such as a custom cell.
        OSError
            If the file cannot be written.
        """
        header, arrays = self._function.to_file()
        write_file(path, header | arguments_of(self), arrays)

    @classmethod
    def _restore(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], restore: Any = None
    ) -> Self:
        """Restore the fitted estimator that `save` wrote."""
        record(KINDS)(header, "")
        check_argument_names(cls, header)
        estimator = cls(**saved_arguments(header))
        arguments = Arguments.of(estimator)
        estimator.fitted_ = FittedFunction.from_file(header, arrays, arguments, cls._targets)
        return estimator

    @property
    def network_active_(self) -> bool:
        """False if the network predicts no better than a constant, as far as this was tested.

        That is, no epoch was better than the random start, or the risk of held-out samples is not
        below that of the best constant (``validation_skill_`` of 0 or less).
        """
        return not self.inactive_networks_

    @property
    def inactive_networks_(self) -> dict[int, str]:
        """Reason why the network contributes nothing, with key 1; empty if it contributes."""
        reason = reason_of_inactivity(self._function)
        return {} if reason is None else {1: reason}

    def block_shares_(self) -> list[np.ndarray] | None:
        """Return the share of the network's output variance by block, one array per layer.

        It is computed on a part of the training samples, see `tsrnn.recurrence_features`. None if
        the layers have no blocks.

        Raises
        ------
        tsrnn.interpret.UninformativeNetworkError
            If the network contributes nothing.
        """
        function = self._function
        active_networks(self, "block_shares_")
        if not isinstance(function.network.rnn, CellStack):
            return None
        return [share.numpy() for share in block_shares(function.network, function.sample)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def with_shared_docstring(cls: Class) -> Class:
    """Replace {parameters} and {attributes} in the docstring of a class by those of the base."""
    if cls.__doc__ and SequenceEstimator.__doc__:  # python -OO has none
        shared = inspect.cleandoc(SequenceEstimator.__doc__)
        _, parameters, attributes = re.split(r"\n*\w+\n-{10}\n", shared)
        document = inspect.cleandoc(cls.__doc__)
        document = document.replace("{parameters}", parameters)
        cls.__doc__ = document.replace("{attributes}", attributes)
    return cls
