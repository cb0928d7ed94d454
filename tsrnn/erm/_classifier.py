"""Classes of sequences, their probabilities estimated by a network."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from tsrnn.contract import (
    Kind,
    anything,
    as_saved,
    listed,
    plain,
    refuse,
    text,
    with_shared_arguments,
)
from tsrnn.erm._estimator import SequenceEstimator
from tsrnn.erm._sequences import Sequences
from tsrnn.erm._targets import check_labels, codes

LABELS = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|U\d{1,5})|\|O")  # dtypes as numpy writes them


@with_shared_arguments
class ParaRNNClassifier(ClassifierMixin, SequenceEstimator):
    r"""Classes of sequences by their probabilities, estimated by empirical risk minimisation.

    .. math:: \hat f = \arg\min_{\phi \in \mathcal F} -\frac1N \sum_{i=1}^N
        \log \frac{\exp \phi_{z_i}(X_i)}{\sum_c \exp \phi_c(X_i)}

    over the networks of `ParaRNNRegressor`, with one output per class. The theorems of section 4
    of Cai et al. (2026) are for squared error, with z the indicator of a class; the loss here is
    the negative log-likelihood.

    Parameters
    ----------
    hidden_size : int, default 64
        Width d of the network.
    cell : {"rnn", "gru", "lstm", "attention", "lem", "lru", "newton-gru", "newton-lstm"} or Cell
        Recurrent layers, by the names of `tsrnn.layers.CELLS`: blocks of Elman networks, of gated
        recurrent units or of long short-term memory; block-recurrent attention; long expressive
        memory; linear recurrent units; the diagonal cells of Danieli et al. (2025); or your own
        `tsrnn.kernels.Cell`.
    block_size : int, optional
        d_s, a divisor of `hidden_size`. By default 2, and for "lem" full matrices. With
        ``block_size=hidden_size`` it is the ordinary network; "lru" and the cells of Danieli et
        al. have no blocks.
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
        the theorems, or the mean or maximum over steps. Where the steps that tell classes apart
        may lie anywhere in a long sequence, "max" and "mean" are better by far; where the order of
        the last steps decides, "last" is. Choose by cross-validation.
    bound : float, optional
        U: outputs, the logarithms of odds up to a constant, are truncated to [-U, U], so that
        no probability is 0. By default there is no bound.
    standardize : bool, default True
        Whether each input is centred and divided by its standard deviation, both from all steps of
        the training part.
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
    classes_ : ndarray of shape (n_classes,)
        Labels in order.
    network_ : tsrnn.layers.RecurrentNetwork
    history_ : list of dict
        Losses, and learning rate of every epoch.
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
        Samples in either part; after `partial_fit` the number of samples seen.
    n_features_in_ : int
        Inputs per step; with a table its columns, which are steps.
    input_scaler_ : sklearn.preprocessing.StandardScaler or None

    Notes
    -----
    A random validation part keeps the shares of the classes where each has enough samples. See
    `ParaRNNRegressor` for the forms of X and the limits of the estimates.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN: An Interpretable and Parallelizable Recurrent Neural
    Network for Time-Dependent Data, Sections 4 and 6.3.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn import ParaRNNClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(length, 2)) for length in rng.integers(5, 20, size=300)]
    >>> y = np.where([x[-1, 0] + x[-2, 1] > 0 for x in X], "up", "down")
    >>> model = ParaRNNClassifier(max_epochs=5, random_state=0).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.85)
    True
    """

    classes_: np.ndarray

    def __init__(self, hidden_size: int = 64, **shared: Any) -> None:
        super().__init__(hidden_size, **shared)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> ParaRNNClassifier:
        """Go on with one epoch over these samples, at `learning_rate`, without validation.

        The first call, where there was no fit, learns the classes, how inputs are standardised,
        and draws the network. The optimiser's state is carried on from call to call, not to
        files. An epoch is one pass over the samples given; only ratios of weights within a call
        matter. `history_` is empty afterwards.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array of shape (n_classes,), optional
            All labels there will be, at the first call; those of y by default.

        Returns
        -------
        self
        """
        first = not hasattr(self, "network_")
        if classes is not None:
            try:
                given = np.unique(np.asarray(classes))
            except (TypeError, ValueError) as error:
                raise TypeError(f"classes must be labels of one type; got {classes!r}") from error
            if not first and not np.array_equal(given, self.classes_):
                raise ValueError(
                    f"classes must be those of the first call, {self.classes_.tolist()}; got "
                    f"{given.tolist()}"
                )
            self._given_classes = given
        try:
            self._partial_fit(X, y, sample_weight)
        finally:
            self._given_classes = None
        return self

    def predict(self, X: Any) -> Any:
        """Most probable class.

        Parameters
        ----------
        X : as in `fit`
            Sequences of any lengths; tables have as many columns as in `fit`.

        Returns
        -------
        ndarray of shape (N,)
            With `many_to_many` of shape (N, T); for a list a list of arrays (T_i,).

        Raises
        ------
        ValueError
            If X is of another form or not finite; the message names the sample, step and input.
        FloatingPointError
            If the network gives no finite number.
        """
        sequences, outputs = self._outputs(X)
        return self._in_shape(sequences, self.classes_[outputs.argmax(1)])

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, in the order of `classes_`.

        They are the network's: consistent for the conditional probabilities as the sample and the
        network grow, not calibrated beyond the loss.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        ndarray of shape (N, n_classes)
            With `many_to_many` of shape (N, T, n_classes), or a list of arrays.
        """
        sequences, outputs = self._outputs(X)
        return self._in_shape(sequences, softmax(outputs, axis=1))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`, without loss where those are small."""
        sequences, outputs = self._outputs(X)
        return self._in_shape(sequences, log_softmax(outputs, axis=1))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of right labels, over all steps with `many_to_many`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        float
        """
        targets, predictions, weights = self._scored(X, y, sample_weight)
        return float(accuracy_score(targets, predictions, sample_weight=weights))

    _given_classes: np.ndarray | None = None

    @property
    def _loss(self) -> str:
        return "log_loss"

    def _targets(self, y: np.ndarray, sequences: Sequences, *, reset: bool) -> np.ndarray:
        labels = column_or_1d(y, warn=True)
        check_labels(labels, sequences, self.arguments_.many_to_many)
        check_classification_targets(labels)
        if reset:
            given = self._given_classes
            self.classes_ = _sorted_labels(labels) if given is None else given
            if len(self.classes_) < 2:
                raise ValueError(
                    f"{type(self).__name__} needs samples of at least 2 classes; got "
                    f"{len(self.classes_)} class: {self.classes_.tolist()}"
                )
        return codes(labels, self.classes_, sequences, self.arguments_.many_to_many)

    def _fit_targets(self, targets: np.ndarray, weights: np.ndarray | None) -> None:
        self.target_scaler_ = None

    def _encoded(self, targets: np.ndarray, counted: np.ndarray | bool = True) -> Tensor:
        return torch.from_numpy(targets)

    def _strata(self, targets: np.ndarray) -> np.ndarray | None:
        return None if self.arguments_.many_to_many else targets

    def _original(self, targets: np.ndarray) -> np.ndarray:
        return self.classes_[targets]

    @classmethod
    def _target_kinds(cls) -> dict[str, Kind]:
        return {"classes": listed(anything), "label_dtype": text}

    def _target_header(self) -> dict[str, Any]:
        return {"classes": plain(self.classes_, "labels"), "label_dtype": self.classes_.dtype.str}

    def _set_targets(self, fitted: dict[str, Any]) -> None:
        if self.target_scaler_ is not None:
            raise refuse("the array 'target_mean'", "absent, as classes have no scale", "it")
        labels, dtype = fitted["classes"], fitted["label_dtype"]
        if not LABELS.fullmatch(dtype):
            raise refuse("fitted.label_dtype", "the type of labels in numpy", dtype)
        with as_saved("fitted.classes and fitted.label_dtype"):
            self.classes_ = np.array(labels, dtype=dtype)
            rising = self.classes_.ndim == 1 and np.array_equal(
                _sorted_labels(self.classes_), self.classes_
            )
        if not rising or plain(self.classes_, "labels") != labels:
            raise refuse("fitted.classes", f"labels of type {dtype}, each once, sorted", labels)

    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _output_bounds(self, bound: float) -> tuple[Tensor, Tensor]:
        ends = torch.full((2, self._n_outputs()), float(bound))
        ends[0] *= -1
        return ends[0], ends[1]


def _sorted_labels(labels: np.ndarray) -> np.ndarray:
    try:
        return np.unique(labels)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(f"y must hold labels of one type; it has {' and '.join(kinds)}") from error
