"""What the service talks about: boats, berths and bookings."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Optional


@dataclass(frozen=True)
class Boat:
    name: str
    length: float  # metres over all
    beam: float
    draught: float
    hull: str = "mono"  # "mono" or "multi"


@dataclass(frozen=True)
class Berth:
    id: str  # pontoon and number, such as "B-07"
    length: float
    width: float
    depth: Optional[float]  # at chart datum; None where nobody has sounded
    has_power: bool


@dataclass(frozen=True)
class Booking:
    id: int
    berth_id: str
    boat: str
    skipper: str
    arrive: date
    leave: date
    state: str  # "held", "confirmed" or "cancelled"
    held_until: Optional[datetime]

    @property
    def nights(self):
        return (self.leave - self.arrive).days


class Refused(Exception):
    """A request that cannot be granted, with the HTTP status that says so."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status = status
        self.reason = reason
