"""Holding, confirming and cancelling berths."""

from datetime import date, datetime, timedelta

from . import config
from .berths import find_free
from .models import Booking, Refused


def booking_of(row):
    until = row["held_until"]
    return Booking(
        row["id"],
        row["berth_id"],
        row["boat"],
        row["skipper"],
        date.fromisoformat(row["arrive"]),
        date.fromisoformat(row["leave"]),
        row["state"],
        datetime.fromisoformat(until) if until else None,
    )


def booking(db, booking_id):
    """Returns one booking, or refuses with 404."""
    row = db.execute("SELECT * FROM bookings WHERE id = ?", (booking_id,)).fetchone()
    if row is None:
        raise Refused(404, f"no booking {booking_id}")
    return booking_of(row)


def check_dates(arrive, leave):
    """Refuses stays that end before they begin."""
    if leave <= arrive:
        raise Refused(422, "a stay needs at least one night")


def hold(db, boat, skipper, arrive, leave, now, berth_id=None):
    """Holds a berth for a skipper, the asked-for one or the first that fits."""
    check_dates(arrive, leave)
    free = find_free(db, boat, arrive, leave)
    if berth_id is not None:
        free = [one for one in free if one.id == berth_id]
    if not free:
        raise Refused(409, "no free berth fits this boat")
    until = now + timedelta(minutes=config.HOLD_MINUTES)
    done = db.execute(
        "INSERT INTO bookings (berth_id, boat, skipper, arrive, leave, state, held_until)"
        " VALUES (?, ?, ?, ?, ?, 'held', ?)",
        (free[0].id, boat.name, skipper, arrive.isoformat(), leave.isoformat(), until.isoformat()),
    )
    return booking(db, done.lastrowid)


def confirm(db, booking_id, now):
    """Turns a hold into a booking, unless the hold has run out."""
    held = booking(db, booking_id)
    if held.state != "held":
        raise Refused(409, f"booking {booking_id} is {held.state}")
    if held.held_until < now:
        raise Refused(410, f"the hold ended at {held.held_until:%H:%M}")
    db.execute(
        "UPDATE bookings SET state = 'confirmed', held_until = NULL WHERE id = ?",
        (booking_id,),
    )
    return booking(db, booking_id)


def cancel(db, booking_id):
    """Gives a berth back. Cancelling twice is no mistake."""
    booking(db, booking_id)
    db.execute("UPDATE bookings SET state = 'cancelled' WHERE id = ?", (booking_id,))
    return booking(db, booking_id)
