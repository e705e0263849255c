use clap::Args;
use infold_store::Contexts;

use crate::failure::{Failure, Kind};
use crate::out::Out;

/// What `infold config` takes.
#[derive(Debug, Args)]
pub struct ConfigArgs {}

/// `infold config`
pub fn run(_: &Contexts, _: &ConfigArgs, _: &mut Out) -> Result<(), Failure> {
    Err(Failure::new(Kind::Usage, "not built"))
}
