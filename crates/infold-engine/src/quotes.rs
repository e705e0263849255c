//! Checks that what a summary says of the user was really said.
