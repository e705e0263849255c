//! A redacted text does not come back when a client sends its own copy in another form, and nothing else is taken for a
//! copy.

#[path = "../office/mod.rs"]
mod office;
mod said;
mod messages;
mod beside;
