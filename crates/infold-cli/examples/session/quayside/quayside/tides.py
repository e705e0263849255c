"""A coarse tide table: the height of low water by the age of the moon."""

from datetime import date, timedelta

NEW_MOON = date(2025, 1, 29)
LUNATION = 29.530588

# Low water above chart datum, in metres, by eighth of the lunation. Springs
# (new and full moon) fall lowest.
LOW_WATER = (0.2, 0.5, 0.9, 0.6, 0.2, 0.4, 0.9, 0.6)


def low_water(day):
    """Returns the height of low water on a day."""
    age = (day - NEW_MOON).days % LUNATION
    return LOW_WATER[int(age / LUNATION * 8) % 8]


def lowest_water(arrive, leave):
    """Returns the lowest low water between arrival and departure."""
    days = max((leave - arrive).days, 1)
    return min(low_water(arrive + timedelta(days=n)) for n in range(days))
