//! Messages that carry folds as tags, and the conversion between tags and folds.
//!
//! Roo Code's transcripts hold such messages. The crate `infold-tags` has the agents' functions on arrays of them.
//!
//! ```
//! use infold_wire::tags::{TagId, TagKind, Tagged};
//!
//! let mut message = Tagged::parse(br#"{"role": "user", "content": "hello"}"#)?;
//! message.tag(TagKind::Window, &TagId::new("t1"));
//! assert_eq!(
//!     message.bytes(),
//!     br#"{"role": "user", "content": "hello","truncationParent":"t1"}"#.as_slice()
//! );
//! # Ok::<(), infold_wire::tags::TaggedError>(())
//! ```

mod timestamp;
mod id;
mod splice;
mod tagged;
mod convert;
pub use convert::{TagFold, UntaggedHistory, from_tags, to_tags};
pub use id::TagId;
pub use tagged::{TagKind, Tagged, TaggedError, TaggedRole};
pub use timestamp::{Millis, Ts};
