//! Compiled JSON Schemas, bounded in number and size.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A longer schema is not compiled.
pub const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// The compiled schemas that are kept have at most so many bytes together.
const MAX_CACHED_BYTES: usize = 4 << 20;
/// How often an expression may be tried again from an earlier place.
const MAX_BACKTRACKS: usize = 100_000;
/// The size of a compiled expression.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is too long.
    #[error("the schema has {bytes} bytes, and at most {MAX_SCHEMA_BYTES} are read")]
    TooLong {
        /// Its size.
        bytes: usize,
    },
    /// It is not JSON, or no schema.
    #[error("not a JSON Schema: {reason}")]
    NotASchema {
        /// The reason.
        reason: String,
    },
}

/// Compiles a schema. References to other documents are errors: nothing is fetched.
pub(crate) fn compile(schema: &str) -> Result<Validator, SchemaError> {
    if schema.len() > MAX_SCHEMA_BYTES {
        let bytes = schema.len();
        return Err(SchemaError::TooLong { bytes });
    }
    let not = |reason: String| SchemaError::NotASchema { reason };
    let value: Value = serde_json::from_str(schema).map_err(|error| not(error.to_string()))?;
    if !value.is_object() {
        return Err(not("it is no object".to_owned()));
    }
    if Expansion::of(&value) > MAX_EXPANDED_VALUES {
        return Err(not("its references lead to too many others".to_owned()));
    }
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKS)
        .size_limit(MAX_PATTERN_BYTES);
    let options = jsonschema::options()
        .offline()
        .with_pattern_options(patterns);
    options.build(&value).map_err(|error| {
        let mut reason = error.to_string();
        if reason.chars().count() > MAX_REASON_CHARS {
            reason = reason.chars().take(MAX_REASON_CHARS).collect();
            reason.push('…');
        }
        not(reason)
    })
}

const MAX_REASON_CHARS: usize = 300;
/// The most values of a schema once its references are expanded: all of them may be tried on one argument.
const MAX_EXPANDED_VALUES: u64 = 1_000_000;

/// Counts the values of a schema with its references replaced; one that leads back to itself counts once.
struct Expansion<'a> {
    root: &'a Value,
    /// The counts of referenced schemas; none while one is being counted.
    known: HashMap<&'a str, Option<u64>>,
}

impl Expansion<'_> {
    fn of(schema: &Value) -> u64 {
        let mut expansion = Expansion {
            root: schema,
            known: HashMap::new(),
        };
        expansion.count(schema)
    }
}

impl<'a> Expansion<'a> {
    fn count(&mut self, value: &'a Value) -> u64 {
        let inside = match value {
            Value::Object(members) => {
                let named = members.get("$ref").and_then(Value::as_str);
                let named = named.map_or(0, |named| self.named(named));
                members
                    .values()
                    .fold(named, |sum, value| sum.saturating_add(self.count(value)))
            }
            Value::Array(values) => values
                .iter()
                .fold(0, |sum: u64, value| sum.saturating_add(self.count(value))),
            _ => 0,
        };
        inside.saturating_add(1)
    }

    fn named(&mut self, reference: &'a str) -> u64 {
        if let Some(known) = self.known.get(reference) {
            return known.unwrap_or(1);
        }
        let target = reference.strip_prefix('#');
        let Some(target) = target.and_then(|pointer| self.root.pointer(pointer)) else {
            return 1;
        };
        self.known.insert(reference, None);
        let count = self.count(target);
        self.known.insert(reference, Some(count));
        count
    }
}

/// Compiled schemas, kept for the next call.
#[derive(Debug, Default)]
pub struct Validators {
    cached: Mutex<Cached>,
}

#[derive(Debug, Default)]
struct Cached {
    bytes: usize,
    compiled: HashMap<Arc<str>, Compiled>,
}

type Compiled = Result<Arc<Validator>, SchemaError>;

impl Validators {
    /// Returns a schema compiled, or why it cannot be.
    pub fn get(&self, schema: &str) -> Result<Arc<Validator>, SchemaError> {
        if schema.len() > MAX_SCHEMA_BYTES {
            let bytes = schema.len();
            return Err(SchemaError::TooLong { bytes });
        }
        {
            let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(compiled) = cached.compiled.get(schema) {
                return compiled.clone();
            }
        }
        let compiled: Compiled = compile(schema).map(Arc::new);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.bytes + schema.len() > MAX_CACHED_BYTES {
            *cached = Cached::default();
        }
        cached.bytes += schema.len();
        cached.compiled.insert(schema.into(), compiled.clone());
        compiled
    }

    /// The bytes of the schemas that are kept compiled.
    pub fn cached_bytes(&self) -> usize {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached.bytes
    }
}
