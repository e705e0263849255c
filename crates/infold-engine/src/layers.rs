//! The layered state of a task: read from its log, derived from its messages, changed by people and models.

mod state_log;
mod derived;
mod state_file;
mod vectors;
mod context;
mod change_json;
mod situation;

pub use change_json::{built_json, item_line, read_changes, state_json};
pub use context::{
    ContextError, ContextRequest, RequestContext, build_context, build_context_with, condense_text,
    request_context, request_context_with, show_changing, shows_context,
};
pub use derived::fill;
pub use infold_layers as model;
pub use situation::task_situation;
pub use state_file::{StateFileError, read_state_file};
pub use state_log::{StateError, change_state, keep_state, read_state, state_in_force};
pub use vectors::{Embed, VectorSource};

/// Returns the field whose name looks most like `name`, if any looks like it at all.
pub fn nearest_field(name: &str) -> Option<infold_layers::Field> {
    let names = infold_layers::Field::all().map(infold_layers::Field::name);
    let found = crate::config::problem::nearest(name, names)?;
    infold_layers::Field::find(&found)
}

/// Describes why a change cannot be made, with the nearest valid name.
pub fn explain_change(error: &infold_layers::ChangeError) -> String {
    use infold_layers::{ChangeError, ENVIRONMENTS, Field, PHASES, status_names};
    let near = match error {
        ChangeError::Value { field, value, .. } => match field {
            Field::Phase => crate::config::problem::nearest(value, PHASES),
            Field::Environment => {
                let names = ENVIRONMENTS.into_iter().chain(["production"]);
                crate::config::problem::nearest(value, names)
            }
            Field::Plan => crate::config::problem::nearest(value, status_names()),
            _ => None,
        },
        _ => None,
    };
    match near {
        Some(near) => format!("{error}; did you mean `{near}`?"),
        None => error.to_string(),
    }
}
