"""Conditional quantiles of a later value, calibrated out of block."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import flag, positive_integer, seed_of
from tsrnn.data import quote
from tsrnn.inference._history import History, check_length, read_columns, whole_number
from tsrnn.inference._nuisance import checked_model, left_out_residuals, seeded, takes_sequences


class ConditionalQuantiles(BaseEstimator):
    r"""Quantiles of a value h periods ahead given the history, with calibrated probabilities.

    .. math:: \tilde q_\tau(H_t) = \hat q_\tau(H_t) + Q_\tau\big(\{y_{s+h} -
        \hat q_\tau^{(-k(s))}(H_s)\}_s\big),

    where :math:`\hat q_\tau` is fitted to all rows, :math:`\hat q_\tau^{(-k)}` without block k and
    `gap` rows on either side, and :math:`Q_\tau` is the empirical quantile of the out-of-block
    errors: conformalised quantile regression in its two-sided form (Romano, Patterson and Candès
    2019), with cross-fitting in place of a split.

    Parameters
    ----------
    model : regressor or None
        Regressor with a parameter ``quantile``, such as scikit-learn's ``QuantileRegressor``, or
        ``GradientBoostingRegressor(loss="quantile")``; None takes the latter. A regressor without
        this parameter, such as a `tsrnn.erm.ParaRNNRegressor`, predicts the mean or median, and
        quantiles of its errors are added: their distances do not depend on the history.
    quantiles : sequence of float, default (0.025, 0.5, 0.975)
        Probabilities between 0 and 1, increasing.
    horizon : int, default 1
        h, at least 1.
    n_lags : int, default 4
        Lags of y and controls; the first is the row at the forecast's origin.
    n_folds : int, default 5
        Number of blocks, at least 2.
    gap : int, optional
        By default `n_lags` + h - 1, so that training rows share no data with the block.
    calibrate : bool, default True
        False returns the model's quantiles without shifts.
    random_state : int, numpy random generator or None
    n_jobs : int, optional

    Attributes
    ----------
    shifts_ : Series
        Shift that is added to each quantile.
    coverage_ : Series
        Share of out-of-block values at or below each quantile before calibration.
    nobs_ : int

    Raises
    ------
    TypeError, ValueError
        In `fit`, if an argument is not legal, data are missing or constant, or there are too few
        rows for the quantiles.

    Notes
    -----
    With exchangeable rows and a fit that does not depend on one block, a value would be below the
    upper quantile with probability at least tau. Time series are not exchangeable, and there is no
    finite-sample guarantee. The probability converges to tau, on average over histories, if the
    series is stationary and weakly dependent, so that the empirical distribution of errors
    converges, and if fits with and without a block converge to the same function, which need not be
    the true quantile (Chernozhukov, Wüthrich and Zhu 2018). The probability need not be tau given a
    history, and is not after a break. Crossing quantiles are sorted.

    References
    ----------
    Chernozhukov, V., Wüthrich, K. and Zhu, Y. (2018). Exact and robust conformal inference methods
    for predictive machine learning with dependent data. Proceedings of Machine Learning Research
    75, 732-749.

    Romano, Y., Patterson, E. and Candès, E. J. (2019). Conformalized quantile regression. Advances
    in Neural Information Processing Systems 32.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import QuantileRegressor
    >>> from tsrnn.inference import ConditionalQuantiles
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> linear = QuantileRegressor(alpha=0)
    >>> model = ConditionalQuantiles(linear, quantiles=[0.1, 0.9], n_lags=1).fit(y)
    >>> model.predict().round(1).to_numpy().tolist()
    [[-1.3, 1.4]]
    """

    def __init__(
        self,
        model: Any = None,
        *,
        quantiles: Any = (0.025, 0.5, 0.975),
        horizon: int = 1,
        n_lags: int = 4,
        n_folds: int = 5,
        gap: int | None = None,
        calibrate: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.quantiles = quantiles
        self.horizon = horizon
        self.n_lags = n_lags
        self.n_folds = n_folds
        self.gap = gap
        self.calibrate = calibrate
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, y: Any, controls: Any = None) -> Self:
        """Estimate and calibrate the quantiles.

        Parameters
        ----------
        y : Series or array of shape (T,)
            In time order, a row for each period.
        controls : Series, DataFrame or array, optional
            Further variables of the history.

        Returns
        -------
        self
        """
        levels = checked_quantiles(self.quantiles)
        ahead = positive_integer("horizon", self.horizon) - 1
        n_lags = positive_integer("n_lags", self.n_lags)
        n_folds = whole_number("n_folds", self.n_folds, 2)
        gap = n_lags + ahead if self.gap is None else whole_number("gap", self.gap, 0)
        calibrate = flag("calibrate", self.calibrate)
        if isinstance(self.model, list | tuple):
            raise TypeError("model must be one regressor; got several")
        # Few, shallow trees, as short series have few values in the tails.
        model = (
            GradientBoostingRegressor(
                loss="quantile", n_estimators=60, max_depth=2, subsample=0.5, min_samples_leaf=5
            )
            if self.model is None
            else checked_model(self.model)
        )
        seed = seed_of(self.random_state) % 2**31
        frame = variables(y, controls)
        # Fewest rows n for which all ranks (n + 1) tau are within 1, ..., n.
        least = int(np.ceil(1 / min(levels.min(), 1 - levels.max()) - 1e-9)) - 1 if calibrate else 1
        check_length(len(frame), n_lags, ahead, n_folds, gap, 1)
        if len(frame) - n_lags - ahead < least:
            raise ValueError(
                f"quantiles of {levels.min():g} and {levels.max():g} are calibrated with at least "
                f"{least} rows beside n_lags and horizon; got {len(frame) - n_lags - ahead}. Take "
                "quantiles nearer the median, a longer series, or calibrate=False"
            )
        history = History.of(frame, n_lags, ahead)
        target = frame.iloc[:, 0].to_numpy()[history.rows + ahead]

        models, shifts, below = [], [], []
        for level in levels:
            of_level = at_quantile(model, level)
            errors = left_out_residuals(
                of_level, history.windows, target, n_folds=n_folds, gap=gap, random_state=seed,
                n_jobs=self.n_jobs,
            )  # fmt: skip
            samples = history.windows if takes_sequences(model) else history.table
            models.append(seeded(of_level, seed).fit(samples, target))
            shifts.append(conformal_shift(errors, level) if calibrate else 0.0)
            below.append(float((errors <= 0).mean()))
        index = pd.Index(levels, name="quantile")
        self.shifts_ = pd.Series(shifts, index, name="shift")
        self.coverage_ = pd.Series(below, index, name="coverage")
        self.nobs_ = len(history)
        self._models, self._frame = models, frame
        return self

    def predict(self, y: Any = None, controls: Any = None) -> pd.DataFrame:
        """Quantiles of the value `horizon` periods after each row with a history.

        Parameters
        ----------
        y, controls : as in `fit`, optional
            By default the quantiles after the last row of the fit.

        Returns
        -------
        DataFrame
            A row for each origin, which are the rows of y from the `n_lags`-th on; a column for
            each quantile.

        Raises
        ------
        ValueError
            If the columns differ from the fit's, or there are fewer than `n_lags` rows.
        """
        check_is_fitted(self, "shifts_")
        if y is None:
            if controls is not None:
                raise ValueError("controls need y; give both, or neither for the last row")
            frame = self._frame.iloc[-self.n_lags :]
        else:
            frame = variables(y, controls, vary=False)
            if list(frame) != list(self._frame):
                raise ValueError(
                    f"columns must be those of the fit, {quote(list(self._frame))}; got "
                    f"{quote(list(frame))}"
                )
        if len(frame) < self.n_lags:
            raise ValueError(f"at least {self.n_lags} rows are needed, n_lags; got {len(frame)}")
        # The history of an origin includes the origin itself.
        places = np.arange(self.n_lags, len(frame) + 1)[:, None] - np.arange(self.n_lags, 0, -1)
        windows = frame.to_numpy()[places]
        samples = windows
        if not takes_sequences(self._models[0]):
            samples = windows.reshape(len(windows), -1)
        columns = [np.asarray(model.predict(samples), float).ravel() for model in self._models]
        values = np.sort(np.column_stack(columns) + self.shifts_.to_numpy(), axis=1)
        return pd.DataFrame(values, frame.index[self.n_lags - 1 :], self.shifts_.index)


def conformal_shift(errors: np.ndarray, level: float) -> float:
    """Empirical quantile of errors at rank (n + 1) tau, rounded away from the median."""
    n = len(errors)
    # 1e-9 absorbs rounding of products such as 0.95 * 100.
    rank = (n + 1) * level
    rank = np.ceil(rank - 1e-9) if level > 0.5 else np.floor(rank + 1e-9)
    return float(np.sort(errors)[int(rank) - 1])


def at_quantile(model: Any, level: float) -> Any:
    """Set a model's parameter for the quantile; a model without such a parameter is returned."""
    params = model.get_params(deep=True)
    if isinstance(model, GradientBoostingRegressor):
        if params["loss"] != "quantile":
            return model
        return clone(model).set_params(alpha=level)
    names = [name for name in params if name.rpartition("__")[2] == "quantile"]
    # Boosted trees inside a pipeline have their own parameter.
    names += [
        f"{name}__alpha"
        for name, part in params.items()
        if isinstance(part, GradientBoostingRegressor) and part.loss == "quantile"
    ]
    return clone(model).set_params(**dict.fromkeys(names, level))


def checked_quantiles(quantiles: Any) -> np.ndarray:
    """Check probabilities and convert them to an array."""
    try:
        levels = np.atleast_1d(np.asarray(quantiles, dtype=float))
    except (TypeError, ValueError) as error:
        raise TypeError(f"quantiles must be numbers between 0 and 1; got {quantiles!r}") from error
    legal = levels.ndim == 1 and len(levels) and ((levels > 0) & (levels < 1)).all()
    if not legal or (np.diff(levels) <= 0).any():
        raise ValueError(f"quantiles must lie between 0 and 1 and increase; got {quantiles!r}")
    return levels


def variables(y: Any, controls: Any, vary: bool = True) -> pd.DataFrame:
    """Columns of y and controls, which may be constant in a prediction."""
    outcome = read_columns("y", y, "y", vary=vary)
    if outcome.shape[1] != 1:
        raise ValueError(f"y must have one column; got {quote(list(outcome.columns))}")
    if controls is None:
        return outcome
    others = read_columns("controls", controls, "control", outcome.index, vary=vary)
    frame = pd.concat([outcome, others], axis=1)
    if frame.columns.has_duplicates:
        raise ValueError(f"columns of y and controls must differ; got {quote(list(frame.columns))}")
    return frame
