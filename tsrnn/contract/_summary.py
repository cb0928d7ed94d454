"""Page about a fitted model."""

import html
from abc import ABC, abstractmethod


class Summary(ABC):
    """Page about a fitted model: print it, or take its text or HTML as of statsmodels' summaries.

    Notebooks show the HTML.

    Examples
    --------
    >>> from tsrnn import ARMA
    >>> from tsrnn.contract import Summary
    >>> from tsrnn.datasets import load_nile
    >>> page = ARMA(order=(1, 0)).fit(load_nile()).summary()
    >>> isinstance(page, Summary), page.as_text() == str(page)
    (True, True)
    """

    @abstractmethod
    def as_text(self) -> str:
        """Page as it is printed."""

    def as_html(self) -> str:
        """Page as HTML."""
        return f"<pre>{html.escape(self.as_text())}</pre>"

    def __str__(self) -> str:
        return self.as_text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.as_html()
