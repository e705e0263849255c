//! The stack of open brackets of a JSON text.

/// A stack of open brackets, of which a bit marks objects; up to 64 levels for each of `WORDS`.
#[derive(Clone, Debug)]
pub(crate) struct BracketStack<const WORDS: usize> {
    objects: [u64; WORDS],
    depth: usize,
}

impl<const WORDS: usize> BracketStack<WORDS> {
    pub fn new() -> Self {
        BracketStack {
            objects: [0; WORDS],
            depth: 0,
        }
    }

    /// Opens a bracket; none if the stack is full.
    pub fn push(&mut self, is_object: bool) -> Option<()> {
        let word = self.objects.get_mut(self.depth / 64)?;
        let bit = self.depth % 64;
        *word = *word & !(1 << bit) | u64::from(is_object) << bit;
        self.depth += 1;
        Some(())
    }

    pub fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns whether the innermost open bracket is an object's.
    pub fn in_object(&self) -> bool {
        let last = self.depth.wrapping_sub(1);
        let word = self.objects.get(last / 64);
        word.is_some_and(|word| word >> (last % 64) & 1 == 1)
    }
}
