"""Classification of sequences by a network."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from tsrnn.contract import with_shared_arguments
from tsrnn.erm._estimator import SequenceEstimator, of_fit, with_shared_docstring
from tsrnn.erm._targets import ClassTargets, label_array


@with_shared_docstring
@with_shared_arguments
class ParaRNNClassifier(ClassifierMixin, SequenceEstimator):
    r"""Classifier of sequences, by probabilities from empirical risk minimisation.

    .. math:: \hat f = \arg\min_{\phi \in \mathcal F} -\frac1N \sum_{i=1}^N
        \log \frac{\exp \phi_{z_i}(X_i)}{\sum_c \exp \phi_c(X_i)}

    over the networks of `ParaRNNRegressor`, with one output per class. The theorems of section 4
    of Cai et al. (2026) are for squared error, with z the indicator of a class; the loss here is
    the negative log-likelihood.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    {attributes}

    Notes
    -----
    A random validation part is stratified if each class has enough samples. See
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

    _targets = ClassTargets
    classes_ = of_fit(lambda f: copy.copy(f.targets.classes), "Labels in order.")

    def __init__(self, hidden_size: int = 64, **shared: Any) -> None:
        super().__init__(hidden_size, **shared)

    def partial_fit(  # type: ignore[override]  # as in scikit-learn, where classes come third
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Train one more epoch on these samples, at `learning_rate`, without validation.

        As `ParaRNNRegressor.partial_fit`; the first call also sets the classes.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array of shape (n_classes,), optional
            All labels, at the first call; by default those of y.

        Returns
        -------
        self
        """
        if classes is not None:
            classes = label_array("classes", classes)
            if hasattr(self, "fitted_") and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"classes must be those of the first call, {self.classes_.tolist()}; got "
                    f"{classes.tolist()}"
                )
        return self._go_on(X, y, sample_weight, classes)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, in the order of `classes_`.

        They are consistent for the conditional probabilities as sample and network grow, but not
        calibrated further.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        ndarray of shape (N, n_classes)
            Probabilities; with `many_to_many` of shape (N, T, n_classes), or a list of arrays.
        """
        function = self._function
        return function.outputs(X, lambda outputs: function.targets.estimates(outputs, None))

    def predict_log_proba(self, X: Any) -> Any:
        """Return logarithms of `predict_proba`, accurate for small probabilities."""
        return self._function.outputs(X, lambda outputs: log_softmax(outputs, axis=1))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy, with `many_to_many` over all steps.

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
