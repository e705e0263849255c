from quayside.routes import answer
from harbour import NOON, harbour

ASK = {
    "boat": "Petrel",
    "length": 9.2,
    "beam": 3.1,
    "draught": 1.6,
    "skipper": "Ida",
    "arrive": "2025-06-14",
    "leave": "2025-06-17",
}


def post(db, path, body):
    return answer(db, "POST", path, body, NOON)


def test_free_berths_are_listed():
    status, said = post(harbour(), "/api/free", ASK)
    assert (status, said["berths"][0]) == (200, "A-03")


def test_booking_holds_a_berth():
    status, said = post(harbour(), "/api/book", ASK)
    assert (status, said["berth"]) == (201, "A-03")


def test_booking_is_confirmed_with_a_mail():
    db = harbour()
    _, held = post(db, "/api/book", ASK)
    status, said = post(db, f"/api/book/{held['id']}/confirm", {"price": held["price"]})
    assert status == 200
    assert said["mail"]["subject"] == "Berth A-03 from 14 Jun 2025"


def test_booking_is_cancelled():
    db = harbour()
    _, held = post(db, "/api/book", ASK)
    assert post(db, f"/api/book/{held['id']}/cancel", {})[1]["state"] == "cancelled"


def test_boat_without_beam_is_refused():
    ask = {key: value for key, value in ASK.items() if key != "beam"}
    assert post(harbour(), "/api/book", ask)[0] == 422


def test_unknown_route_is_404():
    assert post(harbour(), "/api/boook", ASK)[0] == 404
