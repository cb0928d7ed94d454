"""Complex exponential smoothing: the estimator."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np

from tsrnn.contract import Arguments, FittedData, choice, with_shared_arguments
from tsrnn.linear._arguments import check_season, season_length
from tsrnn.linear._chosen import ChosenModels
from tsrnn.linear._family import Family
from tsrnn.linear._regressors import check_names
from tsrnn.linear.ces._family import CESFamily
from tsrnn.linear.ces._specification import SEASONS, candidates

LONGEST_SEASON = 24  # rows of an implied season: the kernel unrolls a season


@with_shared_arguments
class CES(ChosenModels):
    r"""Complex exponential smoothing, one series or many.

    .. math::

        y_t &= l_{t-1} + e_t, \qquad e_t \sim N(0, \sigma^2) \\
        l_t &= l_{t-1} - (1 - \alpha_1) c_{t-1} + (\alpha_0 - \alpha_1) e_t \\
        c_t &= l_{t-1} + (1 - \alpha_0) c_{t-1} + (\alpha_0 + \alpha_1) e_t

    with a level and an information potential, the parts of a complex state with the smoothing
    parameter :math:`\alpha_0 + i \alpha_1` (Svetunkov, Kourentzes and Ord, 2022). There is no
    trend to choose: with :math:`\alpha_1` near one forecasts are level or grow, below one they
    return to zero. A season is

    - "simple": the same pair, taken from one season ago;
    - "partial": one more state for each row of a season, with the weight :math:`\beta_0`;
    - "full": one more pair for each, with :math:`\beta_0 + i \beta_1`, which may grow.

    The default takes the one of these and "none" with the lowest corrected criterion of Akaike, for
    each series and target by itself.

    Parameters
    ----------
    seasonal : {"auto", "none", "simple", "partial", "full"}
        "auto" tries a season of up to 24 rows if the series has two of them.
    season_length : int, optional
        Rows of a season; by frequency where it is None, 1 for none.
    cov_type : {"hessian", "opg", "information", "robust"}
        Kind of standard errors.
    parameter_uncertainty, outliers, intervals
        As in `ARMA`.
    horizon, target, known_ahead, static, calendar, holidays, id_col, time_col, freq
        As in all linear models. Exogenous columns are regressors; to forecast, name them all in
        `known_ahead`.
    missing, strict, support
        As in all linear models.
    random_state, verbose
        As in all forecasters.

    Notes
    -----
    Each pair lies in the region where it forgets,
    :math:`(\alpha_0 - \frac32)^2 + (\alpha_1 - \frac12)^2 < \frac32`,
    :math:`(\alpha_0 - \frac12)^2 + (\alpha_1 - 1)^2 > \frac14` and
    :math:`(\alpha_0 - \frac52)^2 + \alpha_1^2 > \frac54`, with
    :math:`0.6 \le \alpha_1 \le 1.3`. States before the first row are backcast. The criterion
    counts them as a level, a potential, and a season less its mean. A missing observation has error
    zero. The :math:`\sigma^2` of intervals has the degrees of freedom that the criterion leaves.
    `candidates_` has the criterion of all models.

    With exogenous columns :math:`x_t` the model is of :math:`y_t - (x_t - \bar x)' \beta`, with
    their means :math:`\bar x` over the rows fitted to. At given smoothing parameters the filter is
    linear in the rows, and :math:`\beta` is the regression of the errors of y on the errors of the
    columns. All parameters are estimated jointly, and counted by the criterion. Columns that are
    constant, or collinear with others or with a candidate season in the rows fitted to, are left
    out with a warning.

    References
    ----------
    Svetunkov, I., Kourentzes, N., Ord, J. K. (2022). Complex exponential smoothing. Naval Research
    Logistics 69, 1108-1123.

    Examples
    --------
    >>> from tsrnn.linear import CES
    >>> from tsrnn.datasets import load_nile
    >>> model = CES().fit(load_nile())
    >>> model.models_.tolist()
    ['CES(none)']
    """

    column_name: ClassVar[str] = "CES"
    family_class: ClassVar[type[Family]] = CESFamily
    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

    def __init__(
        self, seasonal: str = "auto", season_length: int | None = None, **shared: Any
    ) -> None:
        super().__init__(**shared)
        self.seasonal = seasonal
        self.season_length = season_length

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of the fitted units, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            For each model in use, such as "partial transition", (U, q, q): the matrices F of the
            forecasts, with a season as frequencies on the unit circle; and "partial discount", the
            recurrent matrices D = F - g w' of `to_rnn`, which determine the memory of the model.
        """
        family, fitted = cast(CESFamily, self.fitted_.family), self.fitted_
        numbers, blocks = fitted.constants["model"], {}
        for number, model in enumerate(family.models):
            params = fitted.estimates.params[numbers == number, : len(model.names)]
            params = np.nan_to_num(params)
            params = np.pad(params, ((0, 0), (0, 4 - params.shape[1])))
            if len(params):
                blocks[f"{model.seasonal} transition"] = model.transition(params)
                blocks[f"{model.seasonal} discount"] = model.discount(params)
        return [blocks]

    def _family(self, arguments: Arguments, data: FittedData) -> CESFamily:
        seasonal = choice("seasonal", arguments.seasonal, ("auto", *SEASONS))
        length = arguments.season_length
        period = season_length(length, data, LONGEST_SEASON)
        if seasonal not in ("auto", "none"):
            check_season(seasonal, period, length, data)
        models = candidates(seasonal, period)
        regressors = check_names(data.exog_names, CESFamily(models).names)
        return CESFamily(models, data.n_targets, regressors)
