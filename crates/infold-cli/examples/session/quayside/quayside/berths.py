"""Which berths there are, and which of them a boat can have."""

from .models import Berth, Refused
from .tides import lowest_water

# Room for fenders on both sides, in metres.
FENDER_ROOM = 0.6
# Water that must stay under the keel at the lowest tide, in metres.
UNDER_KEEL = 0.3


def all_berths(db):
    """Returns every berth, in the order of the pontoons."""
    rows = db.execute("SELECT * FROM berths ORDER BY id")
    return [berth_of(row) for row in rows]


def berth(db, berth_id):
    """Returns one berth, or refuses with 404."""
    row = db.execute("SELECT * FROM berths WHERE id = ?", (berth_id,)).fetchone()
    if row is None:
        raise Refused(404, f"no berth {berth_id}")
    return berth_of(row)


def berth_of(row):
    return Berth(row["id"], row["length"], row["width"], row["depth"], bool(row["has_power"]))


def fits(berth, boat, arrive, leave):
    """Tells whether a boat can lie in a berth at the lowest water of its stay."""
    if boat.length > berth.length:
        return False
    if boat.beam + FENDER_ROOM > berth.width:
        return False
    water = berth.depth + lowest_water(arrive, leave)
    return boat.draught + UNDER_KEEL < water


def find_free(db, boat, arrive, leave):
    """Returns the berths that fit a boat and are free on all its nights."""
    taken = {
        row["berth_id"]
        for row in db.execute(
            "SELECT berth_id FROM bookings"
            " WHERE state != 'cancelled' AND arrive <= ? AND leave >= ?",
            (leave.isoformat(), arrive.isoformat()),
        )
    }
    free = [one for one in all_berths(db) if one.id not in taken]
    return [one for one in free if fits(one, boat, arrive, leave)]
