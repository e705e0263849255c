use clap::Args;
use infold_store::Contexts;

use crate::failure::{Failure, Kind};
use crate::out::Out;

/// What `infold models` takes.
#[derive(Debug, Args)]
pub struct ModelsArgs {}

/// `infold models`
pub fn run(_: &Contexts, _: &ModelsArgs, _: &mut Out) -> Result<(), Failure> {
    Err(Failure::new(Kind::Usage, "not built"))
}
