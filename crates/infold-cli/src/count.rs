use clap::Args;
use infold_store::Contexts;

use crate::failure::{Failure, Kind};
use crate::out::Out;

/// What `infold count` takes.
#[derive(Debug, Args)]
pub struct CountArgs {}

/// `infold count`
pub fn run(_: &Contexts, _: &CountArgs, _: &mut Out) -> Result<(), Failure> {
    Err(Failure::new(Kind::Usage, "not built"))
}
