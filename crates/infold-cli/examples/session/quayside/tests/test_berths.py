from datetime import date

from quayside.berths import all_berths, find_free, fits
from quayside.bookings import cancel, hold
from harbour import JUNE, NOON, PETREL, TWINSET, WIDGEON, harbour


def ids(berths):
    return [one.id for one in berths]


def test_berths_come_by_pontoon():
    assert ids(all_berths(harbour()))[:3] == ["A-01", "A-02", "A-03"]


def test_small_boat_fits_everywhere():
    assert len(find_free(harbour(), WIDGEON, *JUNE)) == 7


def test_long_boat_needs_a_long_berth():
    assert ids(find_free(harbour(), PETREL, *JUNE)) == ["A-03", "B-06", "B-07", "C-01", "C-02"]


def test_wide_boat_needs_room_for_fenders():
    assert ids(find_free(harbour(), TWINSET, *JUNE)) == ["C-01", "C-02"]


def test_held_berth_is_not_free():
    db = harbour()
    taken = hold(db, PETREL, "Ida", *JUNE, NOON)
    assert taken.berth_id not in ids(find_free(db, PETREL, *JUNE))


def test_cancelled_berth_is_free_again():
    db = harbour()
    taken = hold(db, PETREL, "Ida", *JUNE, NOON)
    cancel(db, taken.id)
    assert taken.berth_id in ids(find_free(db, PETREL, *JUNE))


def test_keel_needs_water_at_springs():
    shallow = all_berths(harbour())[0]
    assert fits(shallow, WIDGEON, date(2025, 6, 25), date(2025, 6, 27))
