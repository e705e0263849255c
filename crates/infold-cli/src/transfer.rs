use clap::Args;
use infold_store::Contexts;

use crate::failure::{Failure, Kind};
use crate::out::Out;

/// What `infold import` takes.
#[derive(Debug, Args)]
pub struct ImportArgs {}

/// What `infold export` takes.
#[derive(Debug, Args)]
pub struct ExportArgs {}

/// `infold import`
pub fn import(_: &Contexts, _: &ImportArgs, _: &mut Out) -> Result<(), Failure> {
    Err(Failure::new(Kind::Usage, "not built"))
}

/// `infold export`
pub fn export(_: &Contexts, _: &ExportArgs, _: &mut Out) -> Result<(), Failure> {
    Err(Failure::new(Kind::Usage, "not built"))
}
