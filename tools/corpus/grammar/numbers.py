"""Whole numbers in words, 0 to 100, in both languages."""


def _words(text: str) -> list[str]:
    return text.split()


_ONES_EN = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TENS_EN = _words("_ ten twenty thirty forty fifty sixty seventy eighty ninety")
_ONES_FR = _words(
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze "
    "seize dix-sept dix-huit dix-neuf"
)
_TENS_FR = _words(
    "_ dix vingt trente quarante cinquante soixante soixante quatre-vingt quatre-vingt"
)


def number_en(n: int) -> str:
    """An English number of 0 to 100.

    >>> number_en(7), number_en(40), number_en(91)
    ('seven', 'forty', 'ninety-one')
    """
    if n == 100:
        return "one hundred"
    if n < 20:
        return _ONES_EN[n]
    tens, ones = divmod(n, 10)
    return _TENS_EN[tens] + (f"-{_ONES_EN[ones]}" if ones else "")


def number_fr(n: int, *, female: bool = False) -> str:
    """A French number of 0 to 100, in the traditional spelling; "un" agrees with what it counts.

    >>> [number_fr(n) for n in (21, 71, 80, 91, 100)]
    ['vingt et un', 'soixante et onze', 'quatre-vingts', 'quatre-vingt-onze', 'cent']
    >>> number_fr(31, female=True)
    'trente et une'
    """
    if n == 100:
        return "cent"
    tens, ones = divmod(n, 10)
    if n < 20:
        text = _ONES_FR[n]
    else:
        stem = _TENS_FR[tens]
        if tens in (7, 9):
            ones += 10
        if n == 80:
            text = "quatre-vingts"
        elif not ones:
            text = stem
        elif ones in (1, 11) and tens < 8:
            text = f"{stem} et {_ONES_FR[ones]}"
        else:
            text = f"{stem}-{_ONES_FR[ones]}"
    is_one = text == "un" or text.endswith((" un", "-un"))
    return text + "e" if female and is_one else text
