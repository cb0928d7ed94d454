"""Regression functions of sequences, estimated by a network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from tsrnn.contract import Kind, choice, integer, listed, refuse, with_shared_arguments
from tsrnn.erm._estimator import LARGEST, SequenceEstimator
from tsrnn.erm._sequences import Sequences
from tsrnn.erm._targets import numeric
from tsrnn.erm._training import fitted_scaler, from_moments

LOSSES = ("squared_error", "absolute_error")


@with_shared_arguments
class ParaRNNRegressor(RegressorMixin, SequenceEstimator):
    r"""Regression function of sequences, estimated by empirical risk minimisation.

    .. math:: \hat f = \arg\min_{\phi \in \mathcal F} \frac1N \sum_{i=1}^N
        [\phi(X_{i}) - z_i]^2, \qquad X_i = (x_{i,1}, \dots, x_{i,T_i}),

    an estimate of :math:`f_0(X_T) = E[z_T \mid x_1, \dots, x_T]`, section 4 of Cai et al. (2026).
    The class :math:`\mathcal F` are networks
    :math:`\phi = Q \circ F \circ R_L \circ \dots \circ R_1`, read at the last step: L layers R
    of K = d / d_s small recurrent networks, the aggregation F(h) = max(0, W h + b), and the output
    map Q. The function class of the theorems is
    ``ParaRNNRegressor(nonlinearity="relu", input_projection=True, bound=U)``.

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
        the theorems, or the mean or maximum over steps. Where the relevant steps may lie anywhere
        in a long sequence, "max" and "mean" can be better.
    bound : float, optional
        U: predictions are truncated to [-U, U], in the unit of the targets. Training lowers the
        risk of the network before truncation, which lowers it further for targets within
        [-U, U]. By default there is no bound.
    standardize : bool, default True
        Whether each input and target is centred and divided by its standard deviation, both from
        all steps of the training part.
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
    loss : {"squared_error", "absolute_error"}, default "squared_error"
        With "absolute_error" the conditional median of z given the sequence is estimated.

    Attributes
    ----------
    network_ : tsrnn.layers.RecurrentNetwork
    history_ : list of dict
        Losses, on standardised targets, and learning rate of every epoch.
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
    target_scaler_ : sklearn.preprocessing.StandardScaler

    See Also
    --------
    tsrnn.erm.select_architecture : Choice of d_s, d and L.
    tsrnn.erm.excess_risk : Distance to a known f0.
    tsrnn.erm.prediction_bound : Theorem 5.

    Notes
    -----
    The minimisation is by stochastic gradients and finds no global minimum: a fit depends on
    `random_state`, see `tsrnn.erm.deep_ensemble`. Layers compute in float32, so that a prediction
    may depend on the samples beside it in the seventh digit; with one layer of blocks and at most 8
    inputs it does not. Predictions carry no intervals; for bands around
    functionals of the estimate see `tsrnn.erm.block_bootstrap`.

    A sample may have any number of steps, in `fit` and in `predict`. A two-dimensional X, or a
    list of lists of equal lengths, is a table whose rows are series of one input; as everywhere in
    scikit-learn, later tables must have as many columns. Sequences of other lengths are given as a
    list of arrays or as (N, T, 1).

    A fit that fails leaves the estimator as it was.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN: An Interpretable and Parallelizable Recurrent Neural
    Network for Time-Dependent Data, Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn import ParaRNNRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 20, 1))
    >>> z = X[:, -1, 0] + 0.5 * X[:, -2, 0] + 0.1 * rng.normal(size=300)
    >>> model = ParaRNNRegressor(max_epochs=5, random_state=0).fit(X[:200], z[:200])
    >>> bool(model.score(X[200:], z[200:]) > 0.9)
    True
    """

    _target_shape: tuple[int, ...]

    def __init__(
        self, hidden_size: int = 64, *, loss: str = "squared_error", **shared: Any
    ) -> None:
        super().__init__(hidden_size, **shared)
        self.loss = loss

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> ParaRNNRegressor:
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
        self._partial_fit(X, y, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """Estimate of f0 at X.

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
        sequences, outputs = self._outputs(X)
        values = self._scaler().inverse_transform(outputs)
        bound = self.arguments_.bound
        if bound is not None:  # against rounding
            values = values.clip(-bound, bound)
        values = values.reshape(-1, *self._target_shape)
        return self._in_shape(sequences, values)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination of `predict(X)`, over all steps with `many_to_many`.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        float
            Mean over the columns of y, see `sklearn.metrics.r2_score`.
        """
        targets, predictions, weights = self._scored(X, y, sample_weight)
        return float(r2_score(targets, predictions, sample_weight=weights))

    def _check_settings(self) -> None:
        super()._check_settings()
        choice("loss", self.arguments_.loss, LOSSES)

    @property
    def _loss(self) -> str:
        return choice("loss", self.arguments_.loss, LOSSES)

    def _targets(self, y: np.ndarray, sequences: Sequences, *, reset: bool) -> np.ndarray:
        values = numeric(y, sequences, self.arguments_.many_to_many)
        if reset:
            self._target_shape = y.shape[1:]
        elif y.shape[1:] != self._target_shape:
            raise ValueError(
                f"a target of y must have shape {self._target_shape}, as in the first fit; got "
                f"{y.shape[1:]}"
            )
        return values

    def _fit_targets(self, targets: np.ndarray, weights: np.ndarray | None) -> None:
        if self.arguments_.standardize:
            self.target_scaler_ = fitted_scaler("y", targets, weights)
        else:
            k = targets.shape[1]
            self.target_scaler_ = from_moments(np.zeros(k), np.ones(k))

    def _encoded(self, targets: np.ndarray, counted: np.ndarray | bool = True) -> Tensor:
        scaled = self._scaler().transform(targets)
        too_large = (np.abs(scaled) > LARGEST).any(1) & counted
        if too_large.any():
            raise ValueError(
                f"y is too large for the network, whose numbers end at {LARGEST:.3g}: its largest "
                f"absolute value is {np.abs(targets[too_large]).max():.3g}. Change its unit, or "
                "set standardize=True"
            )
        return torch.from_numpy(scaled.clip(-LARGEST, LARGEST).astype(np.float32))

    def _scaler(self) -> StandardScaler:
        assert self.target_scaler_ is not None  # a regressor has one
        return self.target_scaler_

    def _original(self, targets: np.ndarray) -> np.ndarray:
        return targets.reshape(-1, *self._target_shape)

    @classmethod
    def _target_kinds(cls) -> dict[str, Kind]:
        return {"target_shape": listed(integer(1))}

    def _target_header(self) -> dict[str, Any]:
        return {"target_shape": list(self._target_shape)}

    def _set_targets(self, fitted: dict[str, Any]) -> None:
        if self.target_scaler_ is None:
            raise refuse("the array 'target_mean'", "there", None)
        shape, n = fitted["target_shape"], self._n_outputs()
        if len(shape) > 1 or math.prod(shape) != n:
            raise refuse("fitted.target_shape", f"of the {n} targets of the scaler", shape)
        self._target_shape = tuple(shape)

    def _n_outputs(self) -> int:
        return int(self._scaler().n_features_in_)

    def _output_bounds(self, bound: float) -> tuple[Tensor, Tensor]:
        ends = np.full((2, self._n_outputs()), bound) * [[-1.0], [1.0]]
        least, largest = torch.from_numpy(self._scaler().transform(ends).astype(np.float32))
        return least, largest

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
