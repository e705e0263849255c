"""What a stay costs."""

from datetime import timedelta

# Euros per metre and night.
PER_METRE = 2.35
# Euros per night for a berth with shore power.
POWER = 4.10
# Boats below this length pay for this length.
SHORTEST = 6.0


def night_price(boat, berth):
    """Returns the price of one night."""
    price = max(boat.length, SHORTEST) * PER_METRE
    if berth.has_power:
        price += POWER
    return price


def stay_price(boat, berth, arrive, leave):
    """Returns the price of a stay and what each night adds to it."""
    nights = []
    day = arrive
    while day < leave:
        nights.append((day, night_price(boat, berth)))
        day += timedelta(days=1)
    return sum(price for _, price in nights), nights


def in_words(price):
    """Returns a price as it stands in mails."""
    return f"EUR {price:.2f}"
