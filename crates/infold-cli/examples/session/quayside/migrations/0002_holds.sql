ALTER TABLE bookings ADD COLUMN held_until TEXT;
