//! The layered state of a task, and the document with it that a model is sent, within a budget.
//!
//! Pure: a state is changed by values, and a document is a function of the state, the limit and the time.
//!
//! ```
//! use infold_layers::{Author, BuildRequest, Change, Field, LayerItem, LayerState, build};
//!
//! let mut state = LayerState::default();
//! let goal = Change::Set(Field::Goal, vec![LayerItem::new("migrate the users table")]);
//! state.apply(&goal, Author::Person)?;
//! let fact = Change::Add(Field::Facts, LayerItem::new("the users table has 40 million rows"));
//! state.apply(&fact, Author::Model)?;
//! // A model may add facts, but not change its goal.
//! assert!(state.apply(&goal, Author::Model).is_err());
//!
//! let built = build(&state, &BuildRequest::new(1_000))?;
//! assert!(built.document().contains("<goal>migrate the users table</goal>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod field;
mod item;
mod status;
mod state;
mod change;
mod codec;
mod xml;
mod relevance;
mod share;
mod element;
mod rank;
mod build;
pub use build::{BuildError, BuildRequest, BuiltDocument, Condense, Decision, Verdict, build};
pub use change::{Author, Change, ChangeError, Transitions};
pub use codec::{decode_changes, encode_changes};
pub use field::{Field, FieldForm, Layer, Writers};
pub use item::{Attribute, LayerItem};
pub use relevance::relevance;
pub use share::{DocumentPart, Priority, ShareError, Shares};
pub use state::{ENVIRONMENTS, LayerState, PHASES};
pub use status::{STATUSES, status_names, step_status};
pub use xml::{escape_attribute, escape_text, needs_marking, unescape};
