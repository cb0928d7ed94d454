"""Base of the linear models: fit by maximum likelihood, estimates and tests as frames by unit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd

from tsrnn.contract import (
    Arguments,
    Classical,
    ClassicalModel,
    ConformalIntervals,
    FittedData,
    as_saved,
    check_is_fitted,
    flag,
    unit_index,
    unit_number,
    with_shared_arguments,
)
from tsrnn.data import Panel, quote
from tsrnn.linear._as_rnn import AsRNN
from tsrnn.linear._diagnostics import InSample
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import Arrays, Family
from tsrnn.linear._fitted import (
    GIVEN,
    FittedLinear,
    LazyState,
    LinearState,
    estimate,
    estimate_each,
)
from tsrnn.linear._frames import by_parameter, by_unit, given_params
from tsrnn.linear._hypotheses import (
    check_same_data,
    check_same_likelihood,
    check_same_sample,
    limited,
    restriction_matrix,
    restriction_values,
)
from tsrnn.linear._inference import (
    check_kind,
    confidence_intervals,
    criteria,
    likelihood_ratio_test,
    linear_restrictions_test,
    one_level,
    standard_errors,
    z_values,
)
from tsrnn.linear._outliers import without_gross_errors
from tsrnn.linear._summary import LinearSummary, summarise
from tsrnn.prior import Outliers, check_outliers


@with_shared_arguments
class LinearForecaster(InSample, AsRNN, Classical[LinearState]):
    """Base of the models fitted by maximum likelihood.

    `_family` of a subclass returns the `Family` of models that its arguments describe. `cov_type`
    is one of `KINDS`; all other arguments are those of `CommonArguments`.

    Frames of results have a row a unit: an id of a long frame, a column of a wide one. Units are
    numbered series by series, within a series target by target. A parameter on a boundary, not
    identified or imposed has NaN for its standard error, and for tests and intervals.
    """

    offers: ClassVar[frozenset[str]] = frozenset({"sample_paths"})
    family_class: ClassVar[type[Family]]
    fitted_: FittedLinear

    def __init__(self, *, cov_type: str = "hessian", **shared: Any) -> None:
        super().__init__(**shared)
        self.cov_type = cov_type

    @abstractmethod
    def _family(self, arguments: Arguments, data: FittedData) -> Family:
        """Family at the orders of the arguments, for the columns of the data.

        A TypeError or ValueError refuses arguments that are not legal.
        """

    def filter(self, df: Any, params: Any) -> Self:
        """Run over data at given parameters, in place of `fit`.

        Parameters
        ----------
        df : frame
            As for `fit`.
        params : DataFrame, Series, dict or array_like
            In the shape of `params_`, a row a unit; or one set for all units.

        Returns
        -------
        self
            Fitted, without standard errors.

        Raises
        ------
        TypeError, ValueError
            If data, parameters or an argument cannot be used; the message says what to do.
        """
        arguments = Arguments.of(self)
        panel = self._read_training(df, arguments)
        return self._fit_to(panel, arguments, params)

    def summary(self, unit: Any = None, cov_type: str | None = None) -> LinearSummary:
        """Summary of one unit, or a table of many; print the result.

        Parameters
        ----------
        unit : label, optional
            One of `units_`; by default the only one, or all in a table.
        cov_type : str, optional
            Kind of standard errors; that of the constructor by default.
        """
        return summarise(self, unit, cov_type)

    @property
    def estimates_(self) -> Estimates:
        """Estimates of all units, with the matrices of their likelihoods."""
        check_is_fitted(self)
        return self.fitted_.estimates

    @property
    def units_(self) -> pd.Index:
        """Labels of the fitted units."""
        check_is_fitted(self)
        data = self.fitted_.data
        return unit_index(data.layout, data.ids, self.fitted_.family.multivariate)

    @property
    def params_(self) -> pd.DataFrame:
        """Estimated parameters; NaN for a unit that could not be fitted."""
        return self._by_unit(self.estimates_.params)

    @property
    def bse_(self) -> pd.DataFrame:
        """Standard errors, of the kind `cov_type`."""
        return self._by_unit(self._errors(None))

    @property
    def tvalues_(self) -> pd.DataFrame:
        """Parameters over their standard errors, compared with the normal distribution."""
        return self._by_unit(z_values(self.estimates_.params, self._errors(None))[0])

    @property
    def pvalues_(self) -> pd.DataFrame:
        """Two-sided normal p-values of the hypotheses that a parameter is zero."""
        return self._by_unit(z_values(self.estimates_.params, self._errors(None))[1])

    @property
    def loglik_(self) -> pd.Series:
        """Log-likelihood at the estimates."""
        return self._series(self.estimates_.loglik, "loglik")

    @property
    def aic_(self) -> pd.Series:
        """Akaike's information criterion."""
        return self._series(criteria(self.estimates_).aic, "aic")

    @property
    def aicc_(self) -> pd.Series:
        """Akaike's information criterion, corrected for few observations."""
        return self._series(criteria(self.estimates_).aicc, "aicc")

    @property
    def bic_(self) -> pd.Series:
        """Schwarz' Bayesian information criterion."""
        return self._series(criteria(self.estimates_).bic, "bic")

    @property
    def hqic_(self) -> pd.Series:
        """Information criterion of Hannan and Quinn."""
        return self._series(criteria(self.estimates_).hqic, "hqic")

    @property
    def nobs_(self) -> pd.Series:
        """Observations in the likelihood."""
        return self._series(self.estimates_.n_obs, "nobs")

    @property
    def sample_length_(self) -> int:
        """Observations in the likelihood of the longest unit."""
        return int(self.estimates_.n_obs.max())

    @property
    def converged_(self) -> pd.Series:
        """Whether the optimiser met its tolerance."""
        return self._series(self.estimates_.converged, "converged")

    @property
    def starts_(self) -> pd.Series:
        """Number of starting values tried; 0 if not counted."""
        return self._series(self._counts(self.estimates_.starts), "starts")

    @property
    def agreement_(self) -> pd.Series:
        """Number of starts that ended within 0.01 of the highest log-likelihood."""
        return self._series(self._counts(self.estimates_.agreement), "agreement")

    @property
    def messages_(self) -> pd.Series:
        """Tuple of warnings of each unit."""
        messages = np.empty(len(self.units_), object)
        messages[:] = self.estimates_.messages
        return self._series(messages, "messages")

    def conf_int(self, level: float = 95, cov_type: str | None = None) -> pd.DataFrame:
        """Normal confidence intervals of the parameters.

        They hold asymptotically, inside the parameter space.

        Parameters
        ----------
        level : float
            Coverage in percent.
        cov_type : str, optional
            Kind of standard error; that of the constructor by default.

        Returns
        -------
        DataFrame
            A row a unit and parameter, columns ``lower`` and ``upper``.
        """
        level = one_level(level)
        ends = confidence_intervals(self.estimates_.params, self._errors(cov_type), level)
        columns = dict(zip(("lower", "upper"), ends, strict=True))
        return by_parameter(self.units_, self.estimates_.names, columns)

    def cov_params(self, unit: Any = None, cov_type: str | None = None) -> pd.DataFrame:
        """Covariance matrix of the estimated parameters.

        Parameters
        ----------
        unit : label, optional
            One of `units_`. By default the only one, or all, one below the other.
        cov_type : str, optional
            Kind of standard errors; that of the constructor by default.
        """
        cov, names = self._covariance(cov_type), self.estimates_.names
        if unit is None and len(cov) > 1:
            columns = {name: cov[:, :, j] for j, name in enumerate(names)}
            return by_parameter(self.units_, names, columns)
        return pd.DataFrame(cov[self._unit_number(unit)], index=list(names), columns=list(names))

    def wald_test(
        self, restrictions: Any, values: Any = 0.0, cov_type: str | None = None
    ) -> pd.DataFrame:
        r"""Test linear restrictions on the parameters, unit by unit.

        .. math:: W = (R \theta - r)' (R C R')^{-1} (R \theta - r) \to \chi^2(J)

        Parameters
        ----------
        restrictions : str, list of str or array of shape (J, k)
            Names of parameters, or the matrix R with a column a parameter.
        values : float or array of shape (J,), default 0
            r.
        cov_type : str, optional
            Kind of the covariance C; that of the constructor by default.

        Returns
        -------
        DataFrame
            Columns ``statistic``, ``df``, ``p_value``; NaN where a parameter tested has no
            standard error.

        Raises
        ------
        ValueError
            If a name is unknown, or R or r does not fit.
        """
        matrix = restriction_matrix(restrictions, self.estimates_.names)
        test = linear_restrictions_test(
            self.estimates_.params,
            self._covariance(cov_type),
            matrix,
            restriction_values(values, len(matrix)),
        )
        columns = {"statistic": test.statistic, "df": test.df, "p_value": test.p_value}
        return pd.DataFrame(columns, index=self.units_)

    def lr_test(self, restricted: LinearForecaster) -> pd.DataFrame:
        r"""Likelihood-ratio test of a model nested in this one, unit by unit.

        .. math:: LR = 2 (\ell_u - \ell_r) \to \chi^2(k_u - k_r)

        With one of the restricted parameters on a boundary (alpha, beta or 1 / nu at zero) the
        limit is the mixture :math:`\tfrac12 \chi^2(k_u - k_r - 1) + \tfrac12 \chi^2(k_u -
        k_r)`. With several there, where the larger model is not identified under the smaller one
        (one more lag on both sides, a DCC against a CCC) and for models that are estimated in
        steps no limit is known, and the p-value is NaN.

        Parameters
        ----------
        restricted : LinearForecaster
            Fitted to the same data, and nested in this model.

        Returns
        -------
        DataFrame
            Columns ``statistic``, ``df``, ``p_value`` and ``limit``: the distribution that the
            p-value is taken from, or the reason for none.

        Raises
        ------
        TypeError
            If the other is no linear model.
        ValueError
            If the other model is not nested in this one or was fitted to other data, the
            likelihoods are not of the same observations or of another kind, or the statistic is
            negative.
        """
        if not isinstance(restricted, LinearForecaster):
            raise TypeError(
                "restricted must be a fitted model of tsrnn.linear; got a "
                f"{type(restricted).__name__}"
            )
        check_is_fitted(self)
        check_is_fitted(restricted)
        large, small = self.fitted_, restricted.fitted_
        check_same_data(self.units_, restricted.units_, large.digest, small.digest)
        check_same_sample(self.units_, large.estimates, small.estimates)
        check_same_likelihood(large.family.conventions, small.family.conventions)
        for model, size in ((large, "larger"), (small, "smaller")):
            if any(GIVEN in texts for texts in model.estimates.messages):
                raise ValueError(
                    f"the {size} model was given its parameters by filter; a likelihood ratio "
                    "is of maxima. Fit it"
                )
        test = likelihood_ratio_test(small.estimates, large.estimates)
        restriction = large.family.restriction_to(small.family, large.estimates.params)
        if restriction is None:
            raise ValueError(
                f"the smaller model must be nested in the larger one; {restricted!r} is no "
                f"special case of {self!r}. Compare them by aic_ or bic_"
            )
        return limited(self.units_, test, restriction, small.estimates)

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        super()._check(arguments, panel)
        family = self._family(arguments, FittedData.of(panel, arguments))
        check_kind(arguments.cov_type, kinds=family.cov_kinds)

    def _fit_panel(
        self, arguments: Arguments, data: FittedData, panel: Panel, params: Any = None
    ) -> tuple[FittedLinear, LinearState]:
        family, given = self._family(arguments, data), None
        if params is not None:
            units = unit_index(data.layout, data.ids, family.multivariate)
            given = given_params(params, units, family.names)
        skipped = without_gross_errors(arguments, panel)
        estimates = estimate(family, skipped[0], given, arguments.verbose)
        return self._fitted(arguments, data, family, *skipped, *estimates)

    def _fit_panels(
        self, fits: Sequence[tuple[Arguments, FittedData, Panel]]
    ) -> list[tuple[FittedLinear, LinearState]]:
        families = [self._family(arguments, data) for arguments, data, _ in fits]
        columns = [(data.layout, data.exog_names) for _, data, _ in fits]
        if any(family != families[0] for family in families) or len(set(columns)) > 1:
            return [self._fit_panel(*fit) for fit in fits]
        skipped = [without_gross_errors(arguments, panel) for arguments, _, panel in fits]
        estimates = estimate_each(families[0], [panel for panel, _ in skipped], fits[0][0].verbose)
        return [
            self._fitted(arguments, data, family, *of_panel, *estimated)
            for (arguments, data, _), family, of_panel, estimated in zip(
                fits, families, skipped, estimates, strict=True
            )
        ]

    def _fits_together(self) -> int:
        return 256  # series of a batch; larger batches are hardly faster per series

    def _fitted(
        self,
        arguments: Arguments,
        data: FittedData,
        family: Family,
        panel: Panel,
        outliers: Outliers,
        estimates: Estimates,
        constants: Arrays,
    ) -> tuple[FittedLinear, LinearState]:
        """Fitted model with the estimates of a panel, and the state after its rows."""
        horizon = self._horizon(arguments, data.layout)
        fitted = FittedLinear.of(
            arguments, data, horizon, family, panel, outliers, estimates, constants
        )
        # Families written by users filter at the fit, so that their errors are raised there.
        if family.filters_at_fit:
            return fitted, fitted.state_after(panel)
        return fitted, LazyState(fitted, panel)

    def _from_file(
        self,
        arguments: Arguments,
        data: FittedData,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        last_times: np.ndarray,
    ) -> tuple[FittedLinear, LinearState]:
        fitted, state = FittedLinear.from_file(
            partial(self._family, arguments, data), arguments, data, header, arrays, last_times
        )
        with as_saved("params"):
            check_kind(arguments.cov_type, fitted.estimates, fitted.family.cov_kinds)
        return fitted, state

    def _counts(self, counts: np.ndarray | None) -> np.ndarray:
        return np.zeros(len(self.units_), dtype=np.int64) if counts is None else counts

    def _covariance(self, cov_type: str | None) -> np.ndarray:
        check_is_fitted(self)
        return self.fitted_.covariance(cov_type)

    def _errors(self, cov_type: str | None) -> np.ndarray:
        return standard_errors(self._covariance(cov_type))

    def _by_unit(self, values: np.ndarray) -> pd.DataFrame:
        return by_unit(self.units_, self.estimates_.names, values)

    def _series(self, values: np.ndarray, name: str) -> pd.Series:
        return pd.Series(values, index=self.units_, name=name, copy=True)

    def _unit_number(self, unit: Any) -> int:
        units = self.units_
        if unit is None and len(units) == 1:
            return 0
        example = units[:1].tolist()[0]
        if unit is None:
            raise ValueError(f"name one of {len(units)} units, such as unit={quote(example)}")
        number = unit_number(units, unit)
        if number < 0:
            raise ValueError(
                f"unit must be one of the {len(units)} fitted, such as {quote(example)}; got "
                f"{quote(unit)}"
            )
        return number


@with_shared_arguments
class MeanForecaster(LinearForecaster):
    """Base of the models of the mean of one variable.

    With `parameter_uncertainty` intervals account for the estimation of parameters (`widening`);
    ``outliers="pulse"`` takes gross errors of single rows as missing (`without_gross_errors`).
    """

    def __init__(
        self, *, parameter_uncertainty: bool = True, outliers: str | None = None, **shared: Any
    ) -> None:
        super().__init__(**shared)
        self.parameter_uncertainty = parameter_uncertainty
        self.outliers = outliers

    @property
    def outliers_(self) -> pd.DataFrame:
        """Gross errors and level shifts in the rows fitted to; empty unless `outliers` is set.

        Columns: id and time as in the data, ``target`` where there are several, ``kind`` ("error"
        or "shift"), ``size``, the value less its expectation given all other rows, or the change
        of the level, and the posterior ``probability``.
        """
        check_is_fitted(self)
        return self.fitted_.outlier_table()

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        flag("parameter_uncertainty", arguments.parameter_uncertainty)
        check_outliers(arguments.outliers)
        super()._check(arguments, panel)

    def _conformal(
        self,
        fit: tuple[Arguments, FittedData, Panel],
        fitted: ClassicalModel[LinearState],
        target_scale: np.ndarray,
        *given: Any,
    ) -> ConformalIntervals:
        arguments, data, _ = fit
        # Without gross errors, which would dominate the scale of the others.
        panel = cast(FittedLinear, fitted).panel
        assert panel is not None
        return super()._conformal((arguments, data, panel), fitted, target_scale, *given)

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        super()._update_header(header)
        header["params"].setdefault("parameter_uncertainty", False)
        header["params"].setdefault("outliers", None)
