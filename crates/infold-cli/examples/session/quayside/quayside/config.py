"""Settings of the service; every one can be overridden from the environment."""

import os
from datetime import date

PORT = int(os.environ.get("QUAYSIDE_PORT", "8417"))
DATABASE = os.environ.get("QUAYSIDE_DB", "var/quayside.sqlite3")

# A hold keeps a berth while the skipper fills in the form.
HOLD_MINUTES = int(os.environ.get("QUAYSIDE_HOLD_MINUTES", "20"))

# Nobody may lie alongside for longer than this in one booking.
MAX_NIGHTS = 28

# Shown in mails and on the notice board.
HARBOUR_NAME = "Kestrel Harbour"
HARBOUR_MASTER = "harbour-office@kestrel.example"
VHF_CHANNEL = 12

SEASON_OPENS = date(2025, 4, 12)
SEASON_CLOSES = date(2025, 10, 19)
