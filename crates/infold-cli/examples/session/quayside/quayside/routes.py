"""The HTTP interface: a table of routes and a handler for each."""

import re
from datetime import date

from . import berths, bookings, mail, pricing
from .models import Boat, Refused


def boat_of(body):
    """Reads the boat out of a request, or refuses with 422."""
    try:
        return Boat(
            str(body["boat"]),
            float(body["length"]),
            float(body["beam"]),
            float(body["draught"]),
            str(body.get("hull", "mono")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(422, f"the boat is not described in full: {error}") from error


def dates_of(body):
    try:
        return date.fromisoformat(body["arrive"]), date.fromisoformat(body["leave"])
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(422, f"arrive and leave are dates such as 2025-06-14: {error}") from error


def list_free(db, body, now):
    boat, (arrive, leave) = boat_of(body), dates_of(body)
    free = berths.find_free(db, boat, arrive, leave)
    return 200, {"berths": [one.id for one in free]}


def book(db, body, now):
    boat, (arrive, leave) = boat_of(body), dates_of(body)
    held = bookings.hold(db, boat, body["skipper"], arrive, leave, now, body.get("berth"))
    berth = berths.berth(db, held.berth_id)
    price, _ = pricing.stay_price(boat, berth, arrive, leave)
    return 201, {
        "id": held.id,
        "berth": held.berth_id,
        "held_until": held.held_until.isoformat(),
        "price": price,
    }


def confirm(db, body, now, booking_id):
    done = bookings.confirm(db, int(booking_id), now)
    subject, text = mail.confirmation(done, float(body["price"]))
    return 200, {"id": done.id, "state": done.state, "mail": {"subject": subject, "text": text}}


def cancel(db, body, now, booking_id):
    done = bookings.cancel(db, int(booking_id))
    return 200, {"id": done.id, "state": done.state}


ROUTES = [
    ("POST", r"/api/free", list_free),
    ("POST", r"/api/book", book),
    ("POST", r"/api/book/(\d+)/confirm", confirm),
    ("POST", r"/api/book/(\d+)/cancel", cancel),
]


def answer(db, method, path, body, now):
    """Finds the handler of a request and returns status and JSON body."""
    for verb, pattern, handler in ROUTES:
        match = re.fullmatch(pattern, path)
        if match and verb == method:
            try:
                return handler(db, body, now, *match.groups())
            except Refused as refused:
                return refused.status, {"error": refused.reason}
    return 404, {"error": f"no route {method} {path}"}
