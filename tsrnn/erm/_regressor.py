"""Regression functions of sequences, estimated by a network."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from tsrnn.contract import with_shared_arguments
from tsrnn.erm._estimator import SequenceEstimator, of_fit, with_shared_docstring
from tsrnn.erm._targets import RegressionTargets


@with_shared_docstring
@with_shared_arguments
class ParaRNNRegressor(RegressorMixin, SequenceEstimator):
    r"""Regression function of sequences, estimated by empirical risk minimisation.

    .. math:: \hat f = \arg\min_{\phi \in \mathcal F} \frac1N \sum_{i=1}^N
        [\phi(X_{i}) - z_i]^2, \qquad X_i = (x_{i,1}, \dots, x_{i,T_i}),

    an estimate of :math:`f_0(X_T) = E[z_T \mid x_1, \dots, x_T]`, section 4 of Cai et al. (2026).
    The class :math:`\mathcal F` consists of networks
    :math:`\phi = Q \circ F \circ R_L \circ \dots \circ R_1`, evaluated at the last step: L layers R
    of K = d / d_s small recurrent networks, the aggregation F(h) = max(0, W h + b), and the output
    map Q. The function class of the theorems is
    ``ParaRNNRegressor(nonlinearity="relu", input_projection=True, bound=U)``.

    Parameters
    ----------
    {parameters}
    loss : {"squared_error", "absolute_error"}, default "squared_error"
        "absolute_error" estimates the conditional median of z given the sequence.

    Attributes
    ----------
    {attributes}
    target_scaler_ : sklearn.preprocessing.StandardScaler

    See Also
    --------
    tsrnn.erm.select_architecture : Choice of d_s, d and L.
    tsrnn.erm.excess_risk : Distance to a known f0.
    tsrnn.erm.prediction_bound : Theorem 5.

    Notes
    -----
    Stochastic gradients do not find a global minimum: a fit depends on `random_state`, see
    `tsrnn.erm.deep_ensemble`. Layers compute in float32. A prediction may depend on other samples
    of the call in the seventh digit, except with one layer of blocks and at most 8 inputs.
    Predictions have no intervals; for bands around functionals of the estimate see
    `tsrnn.erm.block_bootstrap`.

    A sample may have any number of steps, in `fit` and in `predict`. A two-dimensional X, or a
    list of lists of equal lengths, is a table with rows that are series of one input; as in
    scikit-learn, later tables must have as many columns. Give sequences of other lengths as a list
    of arrays or as (N, T, 1).

    A failed fit does not change the estimator.

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

    _targets = RegressionTargets
    target_scaler_ = of_fit("targets.scaler", "Scaler of the targets.")

    def __init__(
        self, hidden_size: int = 64, *, loss: str = "squared_error", **shared: Any
    ) -> None:
        super().__init__(hidden_size, **shared)
        self.loss = loss

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, with `many_to_many` over all steps.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
