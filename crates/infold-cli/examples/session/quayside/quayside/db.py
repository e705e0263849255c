"""The database: one SQLite file, brought up to date from migrations/."""

import sqlite3
from pathlib import Path

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"


def connect(path):
    """Opens the database and applies the migrations it has not seen."""
    db = sqlite3.connect(path, isolation_level=None)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA foreign_keys = ON")
    migrate(db)
    return db


def migrate(db):
    """Applies each file of migrations/ once, in the order of their names."""
    db.execute("CREATE TABLE IF NOT EXISTS applied (name TEXT PRIMARY KEY)")
    seen = {row["name"] for row in db.execute("SELECT name FROM applied")}
    for file in sorted(MIGRATIONS.glob("*.sql")):
        if file.name in seen:
            continue
        db.executescript(file.read_text())
        db.execute("INSERT INTO applied (name) VALUES (?)", (file.name,))
