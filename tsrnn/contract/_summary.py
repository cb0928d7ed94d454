"""Summary page of a fitted model."""

import html
from abc import ABC, abstractmethod


class Summary(ABC):
    """Summary page of a fitted model, as text or HTML; notebooks show the HTML.

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
        """Return the page as text."""

    def as_html(self) -> str:
        """Return the page as HTML."""
        return f"<pre>{html.escape(self.as_text())}</pre>"

    def __str__(self) -> str:
        return self.as_text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.as_html()
