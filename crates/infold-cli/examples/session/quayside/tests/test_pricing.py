from quayside.berths import berth
from quayside.pricing import in_words, night_price, stay_price
from harbour import JUNE, PETREL, WIDGEON, harbour


def test_night_by_the_metre():
    assert round(night_price(PETREL, berth(harbour(), "B-07")), 2) == 21.62


def test_short_boats_pay_for_six_metres():
    assert round(night_price(WIDGEON, berth(harbour(), "A-01")), 2) == 14.10


def test_power_costs_extra():
    db = harbour()
    with_power = night_price(PETREL, berth(db, "B-06"))
    assert round(with_power - night_price(PETREL, berth(db, "B-07")), 2) == 4.10


def test_stay_adds_up_its_nights():
    total, nights = stay_price(PETREL, berth(harbour(), "B-07"), *JUNE)
    assert len(nights) == 3
    assert round(total, 2) == 64.86


def test_price_in_words():
    assert in_words(64.859999) == "EUR 64.86"
