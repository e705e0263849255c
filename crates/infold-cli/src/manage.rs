use clap::Args;
use infold_store::Contexts;

use crate::failure::{Failure, Kind};
use crate::out::Out;

/// What `infold manage` takes.
#[derive(Debug, Args)]
pub struct ManageArgs {}

/// `infold manage`
pub fn run(_: &Contexts, _: &ManageArgs, _: &mut Out) -> Result<(), Failure> {
    Err(Failure::new(Kind::Usage, "not built"))
}
