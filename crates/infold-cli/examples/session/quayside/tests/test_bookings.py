from datetime import date, timedelta

import pytest

from quayside.bookings import booking, cancel, confirm, hold
from quayside.models import Refused
from harbour import JUNE, NOON, PETREL, TWINSET, harbour


def test_hold_takes_the_first_berth_that_fits():
    assert hold(harbour(), PETREL, "Ida", *JUNE, NOON).berth_id == "A-03"


def test_hold_takes_the_berth_asked_for():
    assert hold(harbour(), PETREL, "Ida", *JUNE, NOON, "B-06").berth_id == "B-06"


def test_hold_runs_out():
    db = harbour()
    held = hold(db, PETREL, "Ida", *JUNE, NOON)
    with pytest.raises(Refused) as refused:
        confirm(db, held.id, NOON + timedelta(minutes=21))
    assert refused.value.status == 410


def test_confirmed_in_time():
    db = harbour()
    held = hold(db, PETREL, "Ida", *JUNE, NOON)
    assert confirm(db, held.id, NOON + timedelta(minutes=19)).state == "confirmed"


def test_confirming_twice_is_refused():
    db = harbour()
    held = hold(db, PETREL, "Ida", *JUNE, NOON)
    confirm(db, held.id, NOON)
    with pytest.raises(Refused) as refused:
        confirm(db, held.id, NOON)
    assert refused.value.status == 409


def test_stay_needs_a_night():
    with pytest.raises(Refused) as refused:
        hold(harbour(), PETREL, "Ida", JUNE[0], JUNE[0], NOON)
    assert refused.value.status == 422


def test_full_harbour_refuses():
    db = harbour()
    hold(db, TWINSET, "Ida", *JUNE, NOON)
    hold(db, TWINSET, "Jon", *JUNE, NOON)
    with pytest.raises(Refused) as refused:
        hold(db, TWINSET, "Kai", *JUNE, NOON)
    assert refused.value.status == 409


def test_cancelling_twice_is_no_mistake():
    db = harbour()
    held = hold(db, PETREL, "Ida", *JUNE, NOON)
    cancel(db, held.id)
    assert cancel(db, held.id).state == "cancelled"


def test_unknown_booking_is_404():
    with pytest.raises(Refused) as refused:
        booking(harbour(), 4711)
    assert refused.value.status == 404
