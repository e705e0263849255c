use clap::Args;
use infold_store::Contexts;

use crate::failure::{Failure, Kind};
use crate::out::Out;

/// What `infold fold` takes.
#[derive(Debug, Args)]
pub struct FoldArgs {}

/// `infold fold`
pub fn run(_: &Contexts, _: &FoldArgs, _: &mut Out) -> Result<(), Failure> {
    Err(Failure::new(Kind::Usage, "not built"))
}
