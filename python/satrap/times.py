"""Times of columns as training reads them: whole milliseconds since 1970 in UTC, of the years 1 to 9999."""
import datetime
import functools
import math
import re
import zoneinfo

DATE = re.compile(r"(?:([0-9]{4})([-/])([0-9]{1,2})\2([0-9]{1,2})|([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4}))")
CLOCK = re.compile(r"(?:[Tt]| +)([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
                   r"(?: *(?:Z|z|UTC|GMT|([+-])([0-9]{2})(?::?([0-9]{2}))?))?")
EPOCH = datetime.datetime(1970, 1, 1)
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
UNITS_MS = {"s": 1e3, "min": 60e3, "h": 3600e3, "d": 86400e3}


class NoTime(ValueError):
    """A value that is no time."""


def ms_of_text(text):
    """The time of a text; None for 0000-00-00. Throws NoTime."""
    date = DATE.match(text)
    clock = CLOCK.fullmatch(text, date.end()) if date else None
    if not date or (not clock and date.end() < len(text)):
        raise NoTime
    year, _, month, day = date.groups()[:4] if date.group(1) else (date.group(7), "", date.group(6), date.group(5))
    of_day = ms_of_clock(clock) if clock else 0
    if int(year) == int(month) == int(day) == 0:
        return None
    return ms_of_date(int(year), int(month), int(day), of_day)


def ms_of_clock(clock):
    hour, minute, second, fraction, sign, hours, minutes = clock.groups()
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 60 or int(hours or 0) > 23 or int(minutes or 0) > 59:
        raise NoTime
    ms = ((int(hour) * 60 + int(minute)) * 60 + int(second or 0)) * 1000 + int(((fraction or "") + "000")[:3])
    ahead = (int(hours or 0) * 60 + int(minutes or 0)) * 60_000
    return ms + ahead if sign == "-" else ms - ahead


def ms_of_date(year, month, day, of_day):
    try:
        days = datetime.date(year, month, day).toordinal() - EPOCH.toordinal()
    except ValueError:
        raise NoTime from None
    return in_years(days * 86_400_000 + of_day)


def in_years(ms):
    if not FIRST_MS <= ms <= LAST_MS:
        raise NoTime
    return ms


def ms_of_number(number):
    """The time that a float counts from 1970, in a unit that its size tells, or writes as yyyymmdd."""
    try:
        return ms_of_digits(number)
    except NoTime:
        pass
    size = abs(number)
    if size >= 1e21:
        raise NoTime
    ms = (round(number * 1e6) / 1e3 if size < 1e11 else number if size < 1e14 else
          number / 1e3 if size < 1e17 else round(number / 1e3) / 1e3)
    return in_years(math.floor(ms))


def ms_of_digits(number):
    if number != math.trunc(number):
        raise NoTime
    digits = int(number)
    if 19_000_101 <= digits <= 21_001_231:
        digits *= 1_000_000
    elif not 19_000_101_000_000 <= digits < 21_001_232_000_000:
        raise NoTime
    date, clock = divmod(digits, 1_000_000)
    hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
    if hour > 23 or minute > 59 or second > 60:
        raise NoTime
    return ms_of_date(date // 10_000, date // 100 % 100, date % 100, ((hour * 60 + minute) * 60 + second) * 1000)


def ms_of_value(value):
    """The time of a datetime or a date; one without a zone is in UTC."""
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    ahead = value.utcoffset() or datetime.timedelta()
    return in_years((value.replace(tzinfo=None) - EPOCH - ahead) // datetime.timedelta(milliseconds=1))


def id_of_part(part, zone, ms):
    """The hour, the day of the week from Monday, 0, or the day of the month, on the clocks of a zone."""
    day, second = divmod(ms // 1000 + offset_at(zone, ms // 1000), 86_400)
    if part == "hour":
        return second // 3600
    if part == "weekday":
        return (day + 3) % 7  # 1970 began with a Thursday
    return (datetime.date(2000, 3, 1) + datetime.timedelta(days=(day - 11_017) % 146_097)).day  # the calendar repeats


def offset_at(zone, second):
    """Seconds ahead of UTC. Python has no times in zones where the year would be 0 or 10000."""
    second = min(max(second, FIRST_MS // 1000 + 86_400), LAST_MS // 1000 - 86_400)
    utc = (EPOCH + datetime.timedelta(seconds=second)).replace(tzinfo=datetime.timezone.utc)
    return int(utc.astimezone(zone_of(zone)).utcoffset().total_seconds())


@functools.cache
def zone_of(name):
    if name == "UTC":
        return datetime.timezone.utc
    try:
        return zoneinfo.ZoneInfo(name)
    except zoneinfo.ZoneInfoNotFoundError:
        raise LookupError(f"this machine has no time zone '{name}': install its package tzdata, or pip install tzdata")
