use clap::Args;
use infold_store::Contexts;

use crate::failure::{Failure, Kind};
use crate::out::Out;

/// What `infold eval` takes.
#[derive(Debug, Args)]
pub struct EvalArgs {}

/// `infold eval`
pub fn run(_: &Contexts, _: &EvalArgs, _: &mut Out) -> Result<(), Failure> {
    Err(Failure::new(Kind::Usage, "not built"))
}
