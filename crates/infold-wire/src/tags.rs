//! Messages that carry folds as tags, and the conversion between tags and folds.
//!
//! Roo Code's transcripts hold such messages; what agents do to whole arrays of them is in `infold-tags`.
//!
//! ```
//! use infold_wire::tags::{Fold, TagId, Tagged};
//!
//! let mut message = Tagged::parse(br#"{"role": "user", "content": "hello"}"#)?;
//! message.tag(Fold::Window, &TagId::new("t1"));
//! assert_eq!(
//!     message.bytes(),
//!     br#"{"role": "user", "content": "hello","truncationParent":"t1"}"#.as_slice()
//! );
//! # Ok::<(), infold_wire::tags::TaggedError>(())
//! ```

mod time;
mod id;
mod splice;
mod tagged;
mod convert;
pub use convert::{FromTags, TagFold, from_tags, to_tags};
pub use id::TagId;
pub use tagged::{Fold, Role, Tagged, TaggedError};
pub use time::{Millis, Ts};
