"""An independent implementation of cron that steps minute by minute and shares no code with the crate.

Reads lines of "zone TAB expression" and answers each with lines of "zone TAB expression TAB from TAB to TAB times", the
times being all the Unix seconds in [from, to) at which the expression is due. Zone data is what PYTHONTZPATH points to.
"""
import calendar
import random
import sys
from datetime import datetime, timedelta, timezone
from itertools import groupby
from zoneinfo import ZoneInfo

DAY = 86400
MONTHS = ["", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
SHORT = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
         "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}


def number(text, names):
    return names.index(text.upper()) if text.upper() in names else int(text)


def holds(field, value, low, high, names=()):
    """Whether a field of plain values, ranges and steps holds the value."""
    for item in field.split(","):
        item, _, step = item.partition("/")
        if item in ("*", "?"):
            first, last = low, high
        elif "-" in item:
            first, last = (number(part, names) for part in item.split("-"))
            if first > last == 0:
                last = 7
        else:
            first = number(item, names)
            last = high if step else first
        if first <= value <= last and (value - first) % int(step or 1) == 0:
            return True
    return False


def workday_near(year, month, day):
    """The day of Monday to Friday in this month that is nearest to a day."""
    days = [d for d in range(1, calendar.monthrange(year, month)[1] + 1) if calendar.weekday(year, month, d) < 5]
    return min(days, key=lambda d: abs(d - day))


def holds_date(field, year, month, day):
    last = calendar.monthrange(year, month)[1]
    for item in field.upper().split(","):
        if item == "L":
            found = day == last
        elif item == "LW":
            found = day == workday_near(year, month, last)
        elif item.startswith("L-"):
            found = day == last - int(item[2:])
        elif item.endswith("W"):
            found = int(item[:-1]) <= last and day == workday_near(year, month, int(item[:-1]))
        else:
            found = holds(item, day, 1, 31)
        if found:
            return True
    return False


def holds_weekday(field, year, month, day):
    weekday = (calendar.weekday(year, month, day) + 1) % 7
    last = calendar.monthrange(year, month)[1]
    for item in field.upper().split(","):
        if "#" in item:
            name, nth = item.split("#")
            found = number(name, WEEKDAYS) % 7 == weekday and (day + 6) // 7 == int(nth)
        elif item.endswith("L"):
            found = number(item[:-1], WEEKDAYS) % 7 == weekday and day + 7 > last
        else:
            found = holds(item, weekday, 0, 6, WEEKDAYS) or (weekday == 0 and item != "*" and "*/" not in item
                                                             and holds(item, 7, 0, 6, WEEKDAYS))
        if found:
            return True
    return False


class Expression:
    def __init__(self, text):
        fields = SHORT.get(text, text).split()
        if len(fields) == 5:
            fields = ["0", *fields]
        second, minute, hour, self.date, month, self.weekday = fields
        self.seconds = [v for v in range(60) if holds(second, v, 0, 59)]
        self.minutes = {v for v in range(60) if holds(minute, v, 0, 59)}
        self.hours = {v for v in range(24) if holds(hour, v, 0, 23)}
        self.months = {v for v in range(1, 13) if holds(month, v, 1, 12, MONTHS)}
        self.real_time = minute[0] == "*" or hour[0] == "*"
        self.known_days = {}

    def day(self, year, month, day):
        key = (year, month, day)
        if key not in self.known_days:
            by_date = holds_date(self.date, *key)
            by_weekday = holds_weekday(self.weekday, *key)
            either = self.date[0] not in "*?" and self.weekday[0] not in "*?"
            self.known_days[key] = month in self.months and (by_date or by_weekday if either else by_date and by_weekday)
        return self.known_days[key]

    def among(self, hours):
        """The matching minutes of some hours. An hour is its date, its number and a list of (minute, value)."""
        for (year, month, day, hour), minutes in hours:
            if hour in self.hours and self.day(year, month, day):
                yield from [it for minute, it in minutes if minute in self.minutes]


class Zone:
    def __init__(self, name):
        self.zone = ZoneInfo(name)
        self.known = {}

    def local(self, second):
        return datetime.fromtimestamp(second, self.zone)

    def exists(self, naive):
        there = naive.replace(tzinfo=self.zone).astimezone(timezone.utc)
        return there.astimezone(self.zone).replace(tzinfo=None) == naive

    def instant(self, naive):
        """The first instant at which a clock shows this minute; if none does, the first after the gap. True if in a gap."""
        if naive not in self.known:
            gap, later = False, naive
            while not self.exists(later):
                gap, later = True, later + timedelta(minutes=1)
            self.known[naive] = (int(later.replace(tzinfo=self.zone, fold=0).timestamp()), gap)
        return self.known[naive]

    def changes(self, first, last):
        before = None
        for second in range(first, last, 3600):
            offset = self.local(second).utcoffset()
            if before is not None and offset != before:
                yield second
            before = offset


def by_hour(minutes):
    """Groups pairs of wall-clock time and value by consecutive wall-clock hour."""
    def hour(pair):
        return pair[0].year, pair[0].month, pair[0].day, pair[0].hour
    return [(key, [(time.minute, it) for time, it in group]) for key, group in groupby(minutes, hour)]


class Window:
    """The seconds [first, last), and the wall-clock times in it."""

    def __init__(self, zone, first, last):
        self.zone, self.first, self.last = zone, first, last
        self.shown = by_hour((zone.local(second), second) for second in range(first, last, 60))
        # Twelve hours more on both sides, to include the effects of a skipped or repeated hour.
        begin = zone.local(first).replace(tzinfo=None) - timedelta(hours=12)
        named = (begin + timedelta(minutes=index) for index in range((last - first) // 60 + 24 * 60))
        self.named = by_hour((naive, naive) for naive in named)

    def due(self, expression):
        if expression.real_time:
            return [minute + second for minute in expression.among(self.shown) for second in expression.seconds]
        times = set()
        for naive in expression.among(self.named):
            times.update(at_minute(self.zone, expression, naive))
        return sorted(time for time in times if self.first <= time < self.last)


def at_minute(zone, expression, naive):
    instant, gap = zone.instant(naive)
    return [instant] if gap else [instant + second for second in expression.seconds]


def ten_years(zone, expression, first, last):
    """Every day of the whole range, for fixed expressions with one time a day."""
    times = set()
    day = datetime(2019, 12, 30)
    while day < datetime(2030, 1, 3):
        if expression.day(day.year, day.month, day.day):
            for hour in expression.hours:
                for minute in expression.minutes:
                    times.update(at_minute(zone, expression, day.replace(hour=hour, minute=minute)))
        day += timedelta(days=1)
    return sorted(time for time in times if first <= time < last)


def windows(zone, first, last):
    for change in zone.changes(first, last):
        yield change - 2 * DAY, change + 2 * DAY
    for year, month, day in [(2020, 2, 29), (2024, 2, 29), (2028, 2, 29), (2021, 3, 1), (2022, 12, 31), (2025, 5, 31)]:
        noon = int(datetime(year, month, day, 12, tzinfo=timezone.utc).timestamp())
        yield noon - 2 * DAY, noon + 2 * DAY
    chance = random.Random(20200101)
    for _ in range(4):
        begin = chance.randrange(first // DAY, last // DAY - 7) * DAY
        yield begin, begin + 7 * DAY


def main():
    first = int(datetime(2020, 1, 1, tzinfo=timezone.utc).timestamp())
    last = int(datetime(2030, 1, 1, tzinfo=timezone.utc).timestamp())
    cases, known = {}, {}
    for line in sys.stdin:
        zone, text = line.rstrip("\n").split("\t")
        cases.setdefault(zone, []).append((text, known.setdefault(text, Expression(text))))
    for name, expressions in cases.items():
        zone = Zone(name)

        def answer(text, begin, end, times):
            print(name, text, begin, end, " ".join(map(str, times)), sep="\t")

        for begin, end in windows(zone, first, last):
            window = Window(zone, begin, end)
            for text, expression in expressions:
                answer(text, begin, end, window.due(expression))
        for text, expression in expressions:
            if not expression.real_time and len(expression.hours) * len(expression.minutes) == 1:
                answer(text, first, last, ten_years(zone, expression, first, last))


main()
