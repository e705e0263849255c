"""A small harbour for tests: three pontoons, seven berths."""

from datetime import date, datetime

from quayside import db
from quayside.models import Boat

NOON = datetime(2025, 6, 14, 12, 0)
JUNE = (date(2025, 6, 14), date(2025, 6, 17))

PETREL = Boat("Petrel", 9.2, 3.1, 1.6)
WIDGEON = Boat("Widgeon", 5.4, 2.0, 0.7)
TWINSET = Boat("Twinset", 11.6, 6.4, 1.1, "multi")

BERTHS = [
    ("A-01", 8.0, 3.2, 1.8, 0),
    ("A-02", 8.0, 3.2, 1.8, 1),
    ("A-03", 10.0, 3.8, 2.4, 1),
    ("B-06", 12.0, 4.4, 2.6, 1),
    ("B-07", 12.0, 4.4, 2.8, 0),
    ("C-01", 16.0, 7.2, 3.1, 1),
    ("C-02", 16.0, 7.2, 3.1, 1),
]


def harbour():
    """Opens a fresh database in memory with the berths above."""
    base = db.connect(":memory:")
    base.executemany("INSERT INTO berths VALUES (?, ?, ?, ?, ?)", BERTHS)
    return base
