CREATE TABLE berths (
    id TEXT PRIMARY KEY,
    length REAL NOT NULL,
    width REAL NOT NULL,
    depth REAL,
    has_power INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE bookings (
    id INTEGER PRIMARY KEY,
    berth_id TEXT NOT NULL REFERENCES berths (id),
    boat TEXT NOT NULL,
    skipper TEXT NOT NULL,
    arrive TEXT NOT NULL,
    leave TEXT NOT NULL,
    state TEXT NOT NULL
);

CREATE INDEX bookings_by_berth ON bookings (berth_id, arrive);
