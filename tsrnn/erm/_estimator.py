"""Estimator of functions of sequences: arguments, the fit, and what is asked of its result."""

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
    """Property of an estimator that reads its fitted function, by path or by a function."""
    value: Callable[[FittedFunction], Any] = attrgetter(read) if isinstance(read, str) else read
    return property(lambda estimator: value(estimator._function), doc=doc)


class SequenceEstimator(BaseEstimator):
    """Base of the estimators of functions of sequences; not to be used by itself.

    A subclass names the kind of its targets (`_targets`).

    Parameters
    ----------
    hidden_size : int, default 64
        Width d of the network.
    cell : {"rnn", "gru", "lstm", "attention", "lem", "lru", "newton-gru", "newton-lstm"} or Cell
        Recurrent layers, by the names of `tsrnn.layers.CELLS`: blocks of Elman networks, of gated
        recurrent units or of long short-term memory; block-recurrent attention; long expressive
        memory; linear recurrent units; the diagonal cells of Danieli et al. (2025); or your own
        `tsrnn.kernels.Cell`.
    block_size : int or sequence of int, optional
        d_s, a divisor of `hidden_size`. By default 2, and for "lem" full matrices. With
        ``block_size=hidden_size`` it is the ordinary network; "lru" and the cells of Danieli et
        al. have no blocks. Of "rnn", "gru" and "lstm" also several sizes, such as (2, 2, 4), whose
        sum divides `hidden_size`.
    n_layers : int, default 1
        L, the number of recurrent layers.
    nonlinearity : {"tanh", "relu", "identity"}, optional
        Activation of ``cell="rnn"``, "tanh" by default. The theorems assume "relu".
    init : str, optional
        Initialisation, one of those that the layer offers.
    n_states, window, n_heads : int, optional
        State vectors, steps of a window and heads of ``cell="attention"``, 16, 16 and 4; `n_heads`,
        which divides `hidden_size`, also of the cells of Danieli et al., 1. Table S.1 of Cai et al.
        has 3 to 5 layers, 32 or 128 states and 8 heads.
    engine : str, default "auto"
        Engine of `tsrnn.kernels.recurrence` that runs the layers, in training as in predictions:
        in time order, "sequential" or, for blocks above 8, "dense"; parallel in time, "shooting",
        "newton" or, for linear recurrences, "scan"; "reference", a loop in torch. Predictions
        agree to rounding. Attention has "auto" alone.
    layer_options : dict, optional
        Further arguments of the layer, such as ``{"dt": 0.5}`` for "lem", or for "attention"
        ``{"recurrent_layer": "all"}``.
    aggregation : {"fc", "linear", "ffn"}, default "fc"
        F, see `tsrnn.layers.RecurrentNetwork`. The theorems assume "fc"; with "linear" outputs are
        a sum over blocks.
    input_projection : bool, default False
        Whether a matrix P maps the inputs before they enter the first layer.
    many_to_many : bool, default False
        Whether there is a target for every step, E[z_t | x_1, ..., x_t], rather than one per
        sample.
    pooling : {"last", "mean", "max"}, default "last"
        State of the last layer that is read where there is one target per sample: the last, as in
        the theorems, or the mean or maximum over steps. Where the steps that matter, such as those
        that tell classes apart, may lie anywhere in a long sequence, "max" and "mean" can be better
        by far; where the order of the last steps decides, "last" is. Choose by cross-validation.
    bound : float, optional
        U: predictions are truncated to [-U, U], in the unit of the targets; of a classifier its
        outputs are, the logarithms of odds up to a constant, so that no probability is 0. Training
        lowers the risk of the network before truncation, which lowers it further for targets
        within [-U, U]. By default there is no bound.
    standardize : bool, default True
        Whether each input, and each target of a regressor, is centred and divided by its standard
        deviation, both from all steps of the training part.
    learning_rate : float, default 0.002
        Learning rate of Adam, halved when the validation risk has not improved for three epochs.
        Training ends below 1e-6. Gradients are clipped at norm 1.
    weight_decay : float, default 0
        Decoupled weight decay.
    batch_size : int, optional
        Samples per step of the optimiser: by default 64, or a 200th of the training part if that
        is more, at most 1024. An epoch is one pass over the training part, or several where one
        would take fewer than 20 steps.
    max_epochs : int, default 100
    early_stopping : bool, default True
        Whether part of the samples is held out. Its risk then decides which epoch's parameters are
        kept, when the learning rate is halved and when training ends. Otherwise the empirical risk
        of all samples decides, and training goes on to `max_epochs` or the least learning rate:
        empirical risk minimisation as in the theorems.
    validation_fraction : float, default 0.1
        Fraction of the samples that is held out, at most a half.
    validation_split : {"random", "last"}, default "random"
        Samples that are held out. With samples in time order, such as windows of one series, take
        the last; the first of these still overlap with the last windows of the training part.
    patience : int or None, default 10
        Epochs without improvement of the validation risk before training stops.
    device : str, default "cpu"
        Where to train, such as "cuda". Predictions are computed on the CPU.
    callbacks : list of lightning.pytorch.Callback, optional
        Passed to Lightning's trainer, such as `tsrnn.interpret.FeatureHistory`.
    random_state : int, numpy random generator or None
        The same integer gives the same estimate on the same machine. None gives a new one.
    verbose : int, default 0
        1 shows a progress bar over epochs.

    Attributes
    ----------
    fitted_ : SequenceFunction
        Fitted function, of which all others are parts.
    arguments_ : tsrnn.contract.Arguments
        Constructor arguments of the fit; as they stand before one.
    network_ : tsrnn.layers.RecurrentNetwork
    history_ : list of dict
        Losses, in the scale of training, and learning rate of every epoch.
    best_epoch_ : int
        Epoch whose parameters are kept; 0 is the random start.
    validation_skill_ : float or None
        Relative reduction of the held-out risk against the best constant, :math:`1 - R / R_0`, in
        the scale of training: 1 is perfect, 0 as good as the constant. None where no samples were
        held out.
    network_active_ : bool
        False where no epoch was better than the random start or `validation_skill_` is not above
        0. Functions that read networks, such as `tsrnn.recurrence_features`, then raise
        `tsrnn.interpret.UninformativeNetworkError`.
    inactive_networks_ : dict of int to str
        Reason why the network contributes nothing, under its number, 1; else empty.
    sample_length_ : int
        Steps of the longest sequence.
    training_risk_, validation_risk_ : Risk
        Mean loss over the training samples and over those held out, or over all their steps,
        weighted where there are weights, in the unit of the data; the second is None where no
        samples were held out. The validation risk chose the epoch and is therefore a little too
        small. With several outputs it is their mean; in training each is divided by its variance
        where they are standardised.
    n_train_, n_validation_ : int
        Samples in either part; after `partial_fit` all that were trained on, and 0.
    n_features_in_ : int
        Inputs per step; with a table its columns, which are steps.
    feature_names_in_ : ndarray of str
        Columns of a table, where all have names.
    sample_ : Tensor of shape (n, T, d_in)
        Inputs of the training part as the network sees them, by which blocks are judged.
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
        """Constructor arguments of the last fit; as they stand where there was none."""
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
        self.fitted_ = self._fit_samples(X, y, sample_weight)
        return self

    def _fit_samples(self, *data: Any) -> FittedFunction:
        return minimise_risk(type(self).__name__, self._targets, Arguments.of(self), *data)

    def _can_be_fitted_together(self) -> bool:
        """Admissibility of fits like this one for training in one pass."""
        cls, arguments = type(self), Arguments.of(self)
        options = arguments.layer_options
        return (
            (cls.fit, cls._fit_samples) == (SequenceEstimator.fit, SequenceEstimator._fit_samples)
            and isinstance(arguments.cell, str)  # code of users may not run under torch.vmap
            and not arguments.callbacks
            and arguments.device == "cpu"
            # Dropout draws for all networks at once: other numbers than one by one.
            and not (isinstance(options, Mapping) and options.get("dropout"))
        )

    @classmethod
    def _fit_together(
        cls,
        estimators: Sequence[Self],
        samples: Sequence[Callable[[], tuple[Any, ...]]],
        names: Sequence[str],
    ) -> None:
        """Fit estimators, each to its samples, as `fit` does to rounding; see `minimise_risks`."""
        arguments = [Arguments.of(estimator) for estimator in estimators]
        functions = minimise_risks(cls.__name__, cls._targets, arguments, samples, names)
        for estimator, function in zip(estimators, functions, strict=True):
            estimator.fitted_ = function

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on with one epoch over these samples, at `learning_rate`, without validation.

        The first call, where there was no fit, learns how inputs and targets are standardised
        and draws the network. The optimiser's state is carried on from call to call, not to
        files. An epoch is one pass over the samples given; only ratios of weights within a call
        matter. `history_` is empty afterwards.

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
        """Estimate of f0 at X; of a classifier the most probable class.

        Parameters
        ----------
        X : as in `fit`
            Sequences of any lengths; tables have as many columns as in `fit`.

        Returns
        -------
        ndarray of shape (N,) or (N, k)
            In the shape of y in `fit`. With `many_to_many` of shape (N, T) or (N, T, k); for a
            list a list of arrays (T_i,) or (T_i, k).

        Raises
        ------
        ValueError
            If X is of another form or not finite; the message names the sample, step and input.
        FloatingPointError
            If the network gives no finite number.
        """
        return self._function.predict(X)

    def _scored(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Targets, predictions and weights of samples, or of the steps of all samples."""
        function, many = self._function, self.arguments_.many_to_many
        sequences = read_sequences(X, function.model, function.inputs)
        y, weights = read_targets(y, sequences, many), read_weights(sample_weight, sequences, many)
        outputs = function.evaluate(sequences)
        return y, function.targets.predictions(outputs, self.arguments_.bound), weights

    def summary(self) -> SequenceSummary:
        """Summary of the fit, its risk and its recurrence features; print the result."""
        function = self._function
        readable = self.network_active_ and function.network.matrix_names
        return summarise(function, recurrence_features(self) if readable else None)

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
        """Whether the network was found to predict better than a constant, if that was judged.

        Not so where no epoch was better than the random start, or where the risk of the held-out
        samples is not below that of the best constant (``validation_skill_`` of 0 or less).
        """
        return not self.inactive_networks_

    @property
    def inactive_networks_(self) -> dict[int, str]:
        """Reason why the network contributes nothing, by its number, 1; empty if it contributes."""
        reason = reason_of_inactivity(self._function)
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
    """Class decorator: {parameters} and {attributes} in its docstring become those of the base."""
    if cls.__doc__ and SequenceEstimator.__doc__:  # python -OO has none
        shared = inspect.cleandoc(SequenceEstimator.__doc__)
        _, parameters, attributes = re.split(r"\n*\w+\n-{10}\n", shared)
        document = inspect.cleandoc(cls.__doc__)
        document = document.replace("{parameters}", parameters)
        cls.__doc__ = document.replace("{attributes}", attributes)
    return cls
