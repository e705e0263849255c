//! `embeddings.bin`: vectors of texts of a task's state, derived from them, so it may go at any time.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write as _;

use crate::{Log, file};

const NAME: &str = "embeddings.bin";
const NEW_NAME: &str = "embeddings.tmp";
/// The first bytes of the file; then a checksum of the rest, and the vectors.
const MAGIC: &[u8] = b"infold embeddings 1\n";
/// A larger file was not written by us.
const MAX_BYTES: u64 = 64 << 20;
/// From this size on only vectors that were used last are kept.
const FULL_BYTES: usize = 32 << 20;

type VectorKey = [u8; 32];

/// Vectors of texts, each by a hash of the model and the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextVectors {
    vectors: HashMap<VectorKey, Vec<f32>>,
    used: HashSet<VectorKey>,
}

impl TextVectors {
    /// Returns the vector that a model gave for a text.
    pub fn get(&mut self, model: &str, text: &str) -> Option<&[f32]> {
        let key = key(model, text);
        let vector = self.vectors.get(&key)?;
        self.used.insert(key);
        Some(vector)
    }

    /// Keeps the vector that a model gave for a text.
    pub fn insert(&mut self, model: &str, text: &str, vector: Vec<f32>) {
        let key = key(model, text);
        self.used.insert(key);
        self.vectors.insert(key, vector);
    }

    fn encode(&self) -> Vec<u8> {
        let size = |vector: &Vec<f32>| size_of::<VectorKey>() + 4 + 4 * vector.len();
        let total: usize = self.vectors.values().map(size).sum();
        let keeps_all = total <= FULL_BYTES;
        let mut out = Vec::with_capacity(total);
        let kept = self.vectors.iter();
        for (key, vector) in kept.filter(|(key, _)| keeps_all || self.used.contains(*key)) {
            out.extend_from_slice(key);
            out.extend_from_slice(&(vector.len() as u32).to_le_bytes());
            out.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        }
        out
    }

    fn decode(mut bytes: &[u8]) -> Option<TextVectors> {
        let mut vectors = HashMap::new();
        while !bytes.is_empty() {
            let (key, rest) = bytes.split_first_chunk::<32>()?;
            let (len, rest) = rest.split_first_chunk::<4>()?;
            let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
            let (numbers, rest) = rest.split_at_checked(len.checked_mul(4)?)?;
            let numbers = numbers.as_chunks::<4>().0.iter();
            let vector = numbers.map(|one| f32::from_le_bytes(*one)).collect();
            vectors.insert(*key, vector);
            bytes = rest;
        }
        Some(TextVectors {
            vectors,
            used: HashSet::new(),
        })
    }
}

fn key(model: &str, text: &str) -> VectorKey {
    let mut hasher = blake3::Hasher::new();
    hasher.update(model.as_bytes());
    hasher.update(b"\0");
    hasher.update(text.as_bytes());
    *hasher.finalize().as_bytes()
}

impl Log {
    /// Returns the vectors that were kept of texts of this task; none if they cannot be read.
    pub fn text_vectors(&self) -> TextVectors {
        let read = || {
            let path = self.dir().join(NAME);
            let size = fs::metadata(&path).ok()?.len();
            let bytes = (size <= MAX_BYTES).then(|| fs::read(path).ok())??;
            let rest = bytes.strip_prefix(MAGIC)?;
            let (sum, rest) = rest.split_first_chunk::<4>()?;
            let is_whole = crc32fast::hash(rest) == u32::from_le_bytes(*sum);
            is_whole.then(|| TextVectors::decode(rest))?
        };
        read().unwrap_or_default()
    }

    /// Keeps vectors instead of those before. Where they cannot be written, they are asked for again.
    pub fn keep_text_vectors(&self, vectors: &TextVectors) {
        let (new, path) = (self.dir().join(NEW_NAME), self.dir().join(NAME));
        let bytes = vectors.encode();
        let written = file::create(&new).is_ok_and(|mut made| {
            let sum = crc32fast::hash(&bytes).to_le_bytes();
            let parts = [MAGIC, &sum, &bytes];
            parts.into_iter().all(|part| made.write_all(part).is_ok())
        });
        if !written || fs::rename(&new, &path).is_err() {
            let _ = fs::remove_file(&new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_found_by_model_and_text() {
        let mut vectors = TextVectors::default();
        vectors.insert("m", "a", vec![1.0, -0.5]);
        vectors.insert("m", "b", Vec::new());
        let mut read = TextVectors::decode(&vectors.encode()).expect("what was written");
        assert_eq!(read.get("m", "a"), Some(&[1.0, -0.5][..]));
        assert_eq!(read.get("m", "b"), Some(&[][..]));
        assert_eq!(read.get("n", "a"), None);
        assert_eq!(read.get("m", "c"), None);
    }

    #[test]
    fn a_file_that_was_cut_is_not_read() {
        let mut vectors = TextVectors::default();
        vectors.insert("m", "a", vec![1.0, -0.5]);
        let bytes = vectors.encode();
        for len in 1..bytes.len() {
            assert_eq!(TextVectors::decode(&bytes[..len]), None, "{len}");
        }
    }

    #[test]
    fn of_many_vectors_those_in_use_are_kept() {
        let mut vectors = TextVectors::default();
        for at in 0..3 {
            vectors.insert("m", &at.to_string(), vec![0.0; FULL_BYTES / 8]);
        }
        vectors.used.clear();
        assert!(vectors.get("m", "1").is_some());
        let mut read = TextVectors::decode(&vectors.encode()).expect("what was written");
        assert!(read.get("m", "0").is_none() && read.get("m", "1").is_some());
    }
}
