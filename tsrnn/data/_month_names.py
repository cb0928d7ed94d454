"""Names of months in the languages of Western Europe."""

from __future__ import annotations

# January to December; short names without the point that may follow them.
_LISTS = (
    # English
    "january february march april may june july august september october november december",
    "jan feb mar apr may jun jul aug sep oct nov dec",
    # German, with the names of Austria and without umlauts
    "januar februar märz april mai juni juli august september oktober november dezember",
    "jänner feber maerz apr mai jun jul aug sep okt nov dez",
    "jän feb mär apr mai jun jul aug sep okt nov dez",
    "jan febr mrz apr mai jun jul aug sept okt nov dez",
    # French, also without accents
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "janv févr mars avr mai juin juil août sept oct nov déc",
    "janv fevrier mars avr mai juin juil aout sept oct nov decembre",
    "jan fév mar avr mai jui juil aoû sep oct nov déc",
    "jan fevr mar avr mai juin juil aou sep oct nov dec",
    # Spanish
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "ene feb mar abr may jun jul ago sept oct nov dic",
    "ene feb mar abr may jun jul ago setiembre oct nov dic",
    # Italian
    "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "gen feb mar apr mag giu lug ago set ott nov dic",
    # Portuguese
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "jan fev mar abr mai jun jul ago set out nov dez",
    "jan fev marco abr mai jun jul ago set out nov dez",
    # Dutch
    "januari februari maart april mei juni juli augustus september oktober november december",
    "jan feb mrt apr mei jun jul aug sep okt nov dec",
)
MONTH_NAMES = {
    name: number for names in _LISTS for number, name in enumerate(names.split(), start=1)
}
# French "jui" abbreviates both June and July.
del MONTH_NAMES["jui"]


def month_number(text: str) -> int | None:
    """Return the number of a month by its name, None for other text.

    The name is long or short, in any case, with or without a final point.
    """
    return MONTH_NAMES.get(text.strip().lower().removesuffix("."))
