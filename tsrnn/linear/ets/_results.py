"""Results of fitted exponential smoothing: models, criteria, components and recurrences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tsrnn.contract import check_is_fitted
from tsrnn.data import by_row
from tsrnn.linear._chosen import ChosenModels
from tsrnn.linear._summary import LinearSummary
from tsrnn.linear.ets._reduced_form import companion, polynomials

_BEST = 3  # models whose criterion the summary shows
_DIGITS = 4


class ETSResults(ChosenModels):
    """Models, components and recurrences of a fitted `ETS`; a part of it."""

    def components(self, df: Any = None) -> Any:
        """Level, trend and season after every row.

        Parameters
        ----------
        df : frame, optional
            Other data than those fitted to.

        Returns
        -------
        frame
            In the library of the data. A row a unit and time: the id of a long frame, the time,
            ``target`` where there are several, then ``level``, ``trend`` and ``season``. Trend and
            season are terms or, in multiplicative models, factors; NaN if the model of a unit has
            none. With exogenous columns their effect is in ``regression``.

        Examples
        --------
        >>> from tsrnn.linear import ETS
        >>> from tsrnn.datasets import load_elec_equip
        >>> model = ETS("mul", "none", "mul").fit(load_elec_equip())
        >>> list(model.components())
        ['ds', 'level', 'trend', 'season']
        """
        panel, fitted = self._data(df), self.fitted_
        family: Any = fitted.family
        steps = fitted._steps_to(panel.ids, panel.times[panel.indptr[:-1]])
        return by_row(panel, family.components(panel, fitted.units_of(panel.ids), steps))

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of the fitted units, for `tsrnn.recurrence_features`.

        A season of m rows is one real feature and pairs on the unit circle, at the angles
        :math:`2 \pi j / m`.

        Returns
        -------
        list of one dict
            By model: "transition", companion matrices (U, r, r) of the forecasts, and "discount",
            the recurrent matrices of the model as a network, which determine its memory.

        Raises
        ------
        ValueError
            If the models of all units multiply components: their recursions are not linear.
        """
        check_is_fitted(self)
        fitted = self.fitted_
        family: Any = fitted.family
        blocks: dict[str, np.ndarray] = {}
        several = len(family.models) > 1
        for model, _, params, _ in family.groups(fitted.units_of(fitted.data.ids)):
            if model.linear:
                of_model = f", {model.title}" if several else ""
                for name, part in zip(
                    ("transition", "discount"), polynomials(model, params), strict=True
                ):
                    blocks[name + of_model] = companion(part)
        if not blocks:
            raise ValueError(
                f"{self.models_.iloc[0]} multiplies components: its recursion is not linear, and "
                "has no recurrence features. Take trend and seasonal 'none' or 'add'"
            )
        return [blocks]

    def summary(self, unit: Any = None, cov_type: str | None = None) -> LinearSummary:
        """Summary of one unit, or a table of many; print the result.

        One unit adds the states after its last row, and the corrected criteria of the best models
        of an automatic choice.

        Parameters
        ----------
        unit : label, optional
            One of `units_`; by default the only one, or all in a table.
        cov_type : str, optional
            Kind of standard errors; that of the constructor by default.
        """
        page = super().summary(unit, cov_type)
        family: Any = self.fitted_.family
        if unit is None and len(self.units_) > 1:
            if len(family.models) == 1:
                return page
            (title, count), *_ = self.models_.value_counts().items()
            return replace(page, model=page.model | {"Commonest": f"{title}, {count} units"})
        i = self._unit_number(unit)
        number = self.fitted_.constants["model"][i]
        if not np.isfinite(number):
            return page
        notes = list(page.notes)
        if len(family.models) > 1:
            fitted = self.candidates_.iloc[i]
            fitted = fitted[np.isfinite(fitted)]
            best = fitted.nsmallest(_BEST)
            shown = ", ".join(f"{title} {value:.2f}" for title, value in best.items())
            notes.append(f"AICc of the best of {len(fitted)} models: {shown}.")
        notes.append(self._last_states(i, family.models[int(number)]))
        fit: dict[str, object] = {}
        for name, value in page.fit.items():
            fit[name] = value
            if name == "AIC":
                fit["AICc"] = f"{self.aicc_.iloc[i]:.3f}"
        return replace(page, fit=fit, notes=notes)

    def _last_states(self, i: int, model: Any) -> str:
        states = self.state_.arrays["memory"].reshape(len(self.units_), -1)[i]
        parts = [f"level {states[0]:.{_DIGITS}g}"]
        if model.trend != "none":
            parts.append(f"trend {states[1]:.{_DIGITS}g}")
        if model.seasonal != "none":
            season = " ".join(f"{value:.{_DIGITS}g}" for value in states[2 : 2 + model.period])
            parts.append(f"season of the rows that follow {season}")
        return f"States after the last row: {', '.join(parts)}."
