//! Compiles the JSON Schemas of tools and caches them. Schemas come from clients and servers that are not trusted, so
//! their size, the cost of a validation and the cache are bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// The most bytes of a schema; a longer one is not compiled.
pub const MAX_SCHEMA_BYTES: usize = 256 << 10;
/// The most bytes of all schemas in the cache, before they are compiled.
const MAX_CACHED_BYTES: usize = 4 << 20;
/// The most backtracking steps of a regular expression: some expressions would otherwise take exponential time.
const MAX_BACKTRACKS: usize = 100_000;
/// The most bytes of a compiled regular expression.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema is too long.
    #[error("the schema has {bytes} bytes, and at most {MAX_SCHEMA_BYTES} are read")]
    TooLong {
        /// The size of the schema.
        bytes: usize,
    },
    /// The text is not JSON, is no valid schema, or a validation would cost too much.
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

/// The most characters of a reason; the errors of the compiler quote the schema.
const MAX_REASON_CHARS: usize = 300;
/// The most values of a schema once its references are expanded. A validation may try all of them on one argument, and
/// a short schema can have exponentially many.
const MAX_EXPANDED_VALUES: u64 = 1_000_000;

/// The most references that lead from one to the next: counting them recurses.
const MAX_REFERENCE_CHAIN: usize = 256;

/// Counts the values of a schema as if each reference were replaced by its target. A reference within its own target
/// counts as one value.
struct Expansion<'a> {
    root: &'a Value,
    /// The count of each referenced schema; `None` while it is being counted, so that a cycle ends.
    known: HashMap<&'a str, Option<u64>>,
    /// The number of references that lead to the value that is being counted.
    chain: usize,
}

impl Expansion<'_> {
    fn of(schema: &Value) -> u64 {
        let mut expansion = Expansion {
            root: schema,
            known: HashMap::new(),
            chain: 0,
        };
        expansion.count(schema)
    }
}

impl<'a> Expansion<'a> {
    fn count(&mut self, value: &'a Value) -> u64 {
        let inside = match value {
            Value::Object(members) => {
                let reference = members.get("$ref").and_then(Value::as_str);
                let target = reference.map_or(0, |reference| self.count_target(reference));
                members
                    .values()
                    .fold(target, |sum, value| sum.saturating_add(self.count(value)))
            }
            Value::Array(values) => values
                .iter()
                .fold(0, |sum: u64, value| sum.saturating_add(self.count(value))),
            _ => 0,
        };
        inside.saturating_add(1)
    }

    /// Counts the values of the schema to which a reference leads; 1 if it leads out of this document or nowhere.
    fn count_target(&mut self, reference: &'a str) -> u64 {
        if let Some(known) = self.known.get(reference) {
            return known.unwrap_or(1);
        }
        let target = reference.strip_prefix('#');
        let Some(target) = target.and_then(|pointer| self.root.pointer(pointer)) else {
            return 1;
        };
        if self.chain == MAX_REFERENCE_CHAIN {
            return MAX_EXPANDED_VALUES;
        }
        self.known.insert(reference, None);
        self.chain += 1;
        let count = self.count(target);
        self.chain -= 1;
        self.known.insert(reference, Some(count));
        count
    }
}

/// A cache of compiled schemas, shared by all calls. Schemas that cannot be compiled are cached with their error.
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
    /// Returns the compiled schema, from the cache if it is there.
    pub fn get(&self, schema: &str) -> Result<Arc<Validator>, SchemaError> {
        // `compile` checks this too, but its error would be cached with the whole schema as the key.
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
        // The lock is not held here, because compiling may take long; two threads may compile the same schema.
        let compiled: Compiled = compile(schema).map(Arc::new);
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        // A full cache is emptied: the tools of the current requests fill it again at once.
        if cached.bytes + schema.len() > MAX_CACHED_BYTES {
            *cached = Cached::default();
        }
        cached.bytes += schema.len();
        cached.compiled.insert(schema.into(), compiled.clone());
        compiled
    }

    /// Returns the bytes of all schemas in the cache, before they are compiled.
    pub fn cached_bytes(&self) -> usize {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_of_references_is_refused_before_it_exhausts_the_stack() {
        let links: Vec<String> = (0..9_000)
            .map(|at| format!(r##""{at}":{{"$ref":"#/$defs/{}"}}"##, at + 1))
            .collect();
        let chain = |count: usize| {
            let links = links[..count].join(",");
            format!(r##"{{"$ref":"#/$defs/0","$defs":{{{links},"{count}":{{}}}}}}"##)
        };
        let get = |schema: &str| Validators::default().get(schema).map(drop);
        assert!(get(&chain(9_000)).is_err());
        assert!(get(&chain(100)).is_ok());
    }
}
