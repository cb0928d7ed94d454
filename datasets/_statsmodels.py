"""Time series that ship inside statsmodels; nothing is downloaded."""

import numpy as np
import pandas as pd

from tsrnn.datasets._record import Record, month_starts, quarter_starts, tidy

_CO2 = Record(
    name="co2",
    title="Atmospheric CO2 at Mauna Loa, 1958-2001",
    units={"co2": "parts per million by volume"},
    frequency="W-SAT",
    source="C. D. Keeling and T. P. Whorf (2004), Carbon Dioxide Information Analysis Center",
    license="public domain",
    shipped_by="statsmodels",
    rows=2284,
    columns=1,
    notes="59 weeks are missing (NaN), most of them before 1965.",
)
_SUNSPOTS = Record(
    name="sunspots",
    title="Mean number of sunspots a year, 1700-2008",
    units={"sunspots": "sunspot number"},
    frequency="YS",
    source="National Geophysical Data Center, NOAA",
    license="public domain",
    shipped_by="statsmodels",
    rows=309,
    columns=1,
    notes="Years are stamped on 1 January.",
)
_NILE = Record(
    name="nile",
    title="Annual flow of the Nile at Aswan, 1871-1970",
    units={"volume": "10^8 cubic metres"},
    frequency="YS",
    source="G. W. Cobb (1978), Biometrika 65, 243-251",
    license="public domain",
    shipped_by="statsmodels",
    rows=100,
    columns=1,
    notes="Years are stamped on 1 January. The mean falls about 1898.",
)
_CHAINED = "billions of chained 2005 US dollars, annual rate"
_MACRODATA = Record(
    name="macrodata",
    title="United States macroeconomic data, 1959Q1-2009Q3",
    units={
        "realgdp": _CHAINED,
        "realcons": _CHAINED,
        "realinv": _CHAINED,
        "realgovt": _CHAINED,
        "realdpi": _CHAINED,
        "cpi": "index, 1982-84 = 100",
        "m1": "billions of US dollars",
        "tbilrate": "percent a year",
        "unemp": "percent of the labour force",
        "pop": "millions",
        "infl": "percent a year",
        "realint": "percent a year",
    },
    frequency="QS",
    source="FRED, Federal Reserve Bank of St. Louis; unemployment: Bureau of Labor Statistics",
    license="public domain",
    shipped_by="statsmodels",
    rows=203,
    columns=12,
    notes=(
        "Quarters are stamped on their first day; cpi and m1 are values at the end of the "
        "quarter. infl is 400 times the log difference of cpi, its first value is set to 0."
    ),
)
_INTEREST_INFLATION = Record(
    name="interest_inflation",
    title="German long-term interest rate and inflation, 1972Q2-1998Q4",
    units={
        "Dp": "log change of the GDP deflator in a quarter",
        "R": "nominal rate a year, as a fraction",
    },
    frequency="QS",
    source="H. Luetkepohl and M. Kraetzig (eds), Applied Time Series Econometrics: JMulTi, E6",
    license="not stated",
    shipped_by="statsmodels",
    rows=107,
    columns=2,
    notes="Quarters are stamped on their first day. Not seasonally adjusted; until 1990 the West.",
)
_DANISH_DATA = Record(
    name="danish_data",
    title="Danish money demand, 1974Q1-1987Q3",
    units={
        "lrm": "log of real money (M2)",
        "lry": "log of real income",
        "lpy": "log of prices",
        "ibo": "bond rate a year, as a fraction",
        "ide": "deposit rate a year, as a fraction",
    },
    frequency="QS",
    source=(
        "S. Johansen and K. Juselius (1990), Oxford Bulletin of Economics and Statistics 52, "
        "169-210"
    ),
    license="public domain",
    shipped_by="statsmodels",
    rows=55,
    columns=5,
    notes="Quarters are stamped on their first day.",
)
_ELEC_EQUIP = Record(
    name="elec_equip",
    title="Turnover of electrical equipment manufacturing, euro area, 1995-2016",
    units={"turnover": "index, 2010 = 100"},
    frequency="MS",
    source="Eurostat, series STS.M.I7.W.TOVT.NS0016.4.000",
    license="public domain",
    shipped_by="statsmodels",
    rows=257,
    columns=1,
    notes="Months are stamped on their first day. Adjusted for working days, not for the season.",
)
_ELNINO = Record(
    name="elnino",
    title="Sea surface temperature in the eastern Pacific (Nino 1+2), 1950-2010",
    units={"temperature": "degrees Celsius"},
    frequency="MS",
    source="National Weather Service, NOAA: ERSST.V3B",
    license="public domain",
    shipped_by="statsmodels",
    rows=732,
    columns=1,
    notes="Months are stamped on their first day.",
)
_FERTILITY = Record(
    name="fertility",
    title="Total fertility rate of 219 countries and regions, 1960-2013",
    units="births per woman",
    frequency="YS",
    source="World Bank, World Development Indicators, SP.DYN.TFRT.IN",
    license="World Bank terms of use",
    shipped_by="statsmodels",
    rows=54,
    columns=219,
    notes=(
        "Years are stamped on 1 January; a column a country. 2012 and 2013 are missing (NaN) for "
        "all, 9 countries have no value at all and 18 more have gaps before 2012."
    ),
)

RECORDS = (
    _CO2,
    _SUNSPOTS,
    _NILE,
    _MACRODATA,
    _INTEREST_INFLATION,
    _DANISH_DATA,
    _ELEC_EQUIP,
    _ELNINO,
    _FERTILITY,
)


def load_co2() -> pd.DataFrame:
    """Load the weekly concentration of CO2 at Mauna Loa, 29 March 1958 to 29 December 2001.

    Returns
    -------
    DataFrame, shape (2284, 1)
        Column ``co2`` in parts per million by volume; index ``ds``, Saturdays (``W-SAT``).

    Notes
    -----
    59 weeks are missing and are NaN. Keeling and Whorf (2004), Carbon Dioxide Information
    Analysis Center; public domain.

    Examples
    --------
    >>> from tsrnn.datasets import load_co2
    >>> co2 = load_co2()
    >>> int(co2["co2"].isna().sum())
    59
    >>> monthly = co2["co2"].resample("MS").mean().interpolate()
    """
    from statsmodels.datasets import co2

    return tidy(_CO2, co2.load_pandas().data)


def load_sunspots() -> pd.DataFrame:
    """Load the yearly mean number of sunspots, 1700 to 2008.

    Returns
    -------
    DataFrame, shape (309, 1)
        Column ``sunspots``; index ``ds``, years stamped on 1 January (``YS``).

    Notes
    -----
    No value is missing. National Geophysical Data Center, NOAA; public domain.

    Examples
    --------
    >>> from tsrnn.datasets import load_sunspots
    >>> load_sunspots()["sunspots"].idxmax().year
    1957
    """
    from statsmodels.datasets import sunspots

    frame = sunspots.load_pandas().data.rename(columns={"SUNACTIVITY": "sunspots"})
    return tidy(_SUNSPOTS, frame.set_axis(month_starts(frame["YEAR"])))


def load_nile() -> pd.DataFrame:
    """Load the annual flow of the Nile at Aswan, 1871 to 1970.

    Returns
    -------
    DataFrame, shape (100, 1)
        Column ``volume`` in 10^8 cubic metres; index ``ds``, years stamped on 1 January (``YS``).

    Notes
    -----
    No value is missing. The mean falls about 1898 (Cobb 1978, Biometrika 65, 243-251). Public
    domain.

    Examples
    --------
    >>> from tsrnn.datasets import load_nile
    >>> float(load_nile()["volume"].iloc[0])
    1120.0
    """
    from statsmodels.datasets import nile

    frame = nile.load_pandas().data
    return tidy(_NILE, frame.set_axis(month_starts(frame["year"])))


def load_macrodata() -> pd.DataFrame:
    """Load quarterly macroeconomic data of the United States, 1959Q1 to 2009Q3.

    Returns
    -------
    DataFrame, shape (203, 12)
        Columns ``realgdp, realcons, realinv, realgovt, realdpi`` (billions of chained 2005 US
        dollars at annual rates, seasonally adjusted), ``cpi`` (1982-84 = 100), ``m1`` (billions
        of US dollars), ``tbilrate, unemp, infl, realint`` (percent) and ``pop`` (millions);
        index ``ds``, quarters stamped on their first day (``QS``).

    Notes
    -----
    No value is missing, but the first ``infl`` and ``realint`` are set to 0 because they need
    the quarter before. FRED and Bureau of Labor Statistics, read in December 2009; public
    domain.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.datasets import load_macrodata
    >>> growth = 100 * np.log(load_macrodata()["realgdp"]).diff().dropna()
    >>> len(growth)
    202
    """
    from statsmodels.datasets import macrodata

    frame = macrodata.load_pandas().data
    return tidy(_MACRODATA, frame.set_axis(quarter_starts(frame)))


def load_interest_inflation() -> pd.DataFrame:
    """Load the German interest and inflation rates, 1972Q2 to 1998Q4.

    Returns
    -------
    DataFrame, shape (107, 2)
        Columns ``Dp`` (log change of the GDP deflator in a quarter) and ``R`` (nominal long-term
        rate a year, as a fraction); index ``ds``, quarters stamped on their first day (``QS``).

    Notes
    -----
    No value is missing. Not seasonally adjusted. Data set E6 of JMulTi (Luetkepohl and Kraetzig,
    Applied Time Series Econometrics, 2004).

    Examples
    --------
    >>> from tsrnn.datasets import load_interest_inflation
    >>> list(load_interest_inflation().columns)
    ['Dp', 'R']
    """
    from statsmodels.datasets import interest_inflation

    frame = interest_inflation.load_pandas().data
    return tidy(_INTEREST_INFLATION, frame.set_axis(quarter_starts(frame)))


def load_danish_data() -> pd.DataFrame:
    """Load the Danish data on money demand, 1974Q1 to 1987Q3.

    Returns
    -------
    DataFrame, shape (55, 5)
        Columns ``lrm, lry, lpy`` (logs of real money, real income and prices), ``ibo, ide``
        (bond and deposit rates a year, as fractions); index ``ds``, quarters stamped on their
        first day (``QS``).

    Notes
    -----
    No value is missing. Johansen and Juselius (1990), Oxford Bulletin of Economics and
    Statistics 52, 169-210; public domain.

    Examples
    --------
    >>> from tsrnn.datasets import load_danish_data
    >>> load_danish_data().shape
    (55, 5)
    """
    from statsmodels.datasets import danish_data

    return tidy(_DANISH_DATA, danish_data.load_pandas().data)


def load_elec_equip() -> pd.DataFrame:
    """Load the monthly turnover of electrical equipment makers, January 1995 to May 2016.

    Returns
    -------
    DataFrame, shape (257, 1)
        Column ``turnover``, an index with 2010 = 100; index ``ds``, months stamped on their
        first day (``MS``).

    Notes
    -----
    No value is missing. Euro area of 18 countries, adjusted for working days, not for the
    season. Eurostat; public domain.

    Examples
    --------
    >>> from tsrnn.datasets import load_elec_equip
    >>> load_elec_equip().index.freqstr
    'MS'
    """
    from statsmodels.datasets import elec_equip

    code = "STS.M.I7.W.TOVT.NS0016.4.000"
    return tidy(_ELEC_EQUIP, elec_equip.load_pandas().data.rename(columns={code: "turnover"}))


def load_elnino() -> pd.DataFrame:
    """Load the monthly sea surface temperature of the region Nino 1+2, 1950 to 2010.

    Returns
    -------
    DataFrame, shape (732, 1)
        Column ``temperature`` in degrees Celsius; index ``ds``, months stamped on their first
        day (``MS``).

    Notes
    -----
    No value is missing. National Weather Service, NOAA (ERSST.V3B); public domain.

    Examples
    --------
    >>> from tsrnn.datasets import load_elnino
    >>> load_elnino()["temperature"].idxmax().year
    1998
    """
    from statsmodels.datasets import elnino

    years = elnino.load_pandas().data.set_index("YEAR")
    index = month_starts(np.repeat(years.index, 12), np.tile(np.arange(1, 13), len(years)))
    return tidy(_ELNINO, pd.DataFrame({"temperature": years.to_numpy().ravel()}, index=index))


def load_fertility() -> pd.DataFrame:
    """Load the total fertility rate of 219 countries and regions, 1960 to 2013.

    Returns
    -------
    DataFrame, shape (54, 219)
        A column a country (its English name), births per woman; index ``ds``, years stamped on
        1 January (``YS``).

    Notes
    -----
    2012 and 2013 are NaN for every country, 9 countries have no value at all, 18 more have gaps
    before 2012. World Bank, World Development Indicators (SP.DYN.TFRT.IN), under its terms of
    use.

    Examples
    --------
    >>> from tsrnn.datasets import load_fertility
    >>> complete = load_fertility().loc[:"2011"].dropna(axis="columns")
    >>> complete.shape
    (52, 192)
    """
    from statsmodels.datasets import fertility

    countries = fertility.load_pandas().data.set_index("Country Name")
    frame = countries.filter(regex=r"^\d{4}$").T
    return tidy(_FERTILITY, frame.set_axis(month_starts(frame.index.astype("int64"))))
