"""Writes bookings in the fixed-width form of the old berth ledger."""

WIDTHS = (("id", 6), ("berth_id", 5), ("boat", 18), ("arrive", 10), ("leave", 10))


def ledger_line(row):
    """Returns one booking as a line of the ledger."""
    return "".join(str(row[name])[:width].ljust(width) for name, width in WIDTHS)


def export_ledger(db, path):
    """Writes all confirmed bookings to a file, the oldest first."""
    rows = db.execute("SELECT * FROM bookings WHERE state = 'confirmed' ORDER BY arrive")
    with open(path, "w", encoding="latin-1") as out:
        for row in rows:
            out.write(ledger_line(row) + "\r\n")
