"""The texts of the mails that skippers get."""

from . import config
from .pricing import in_words

CONFIRMED = """\
Dear {skipper},

berth {berth} in {harbour} is yours from {arrive} to {leave} ({nights} nights).
The stay comes to {price}; please pay at the harbour office.

Call us on VHF channel {channel} when you pass the breakwater.

{office}
"""


def confirmation(booking, price):
    """Returns subject and text of the mail that confirms a booking."""
    subject = f"Berth {booking.berth_id} from {booking.arrive:%d %b %Y}"
    text = CONFIRMED.format(
        skipper=booking.skipper,
        berth=booking.berth_id,
        harbour=config.HARBOUR_NAME,
        arrive=booking.arrive,
        leave=booking.leave,
        nights=booking.nights,
        price=in_words(price),
        channel=config.VHF_CHANNEL,
        office=config.HARBOUR_MASTER,
    )
    return subject, text
