/// How many brackets may be open at once.
pub const DEEPEST: usize = 512;

/// The brackets that are open: whether each is an object's.
#[derive(Clone, Debug, Default)]
pub struct Open {
    objects: [u64; DEEPEST / 64],
    depth: usize,
}

impl Open {
    /// Opens one more, if there is room.
    pub fn push(&mut self, object: bool) -> Option<()> {
        let word = self.objects.get_mut(self.depth / 64)?;
        let bit = 1 << (self.depth % 64);
        match object {
            true => *word |= bit,
            false => *word &= !bit,
        }
        self.depth += 1;
        Some(())
    }

    /// Closes the last one.
    pub fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// How many there are.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Says whether the last one is an object's.
    pub fn in_object(&self) -> bool {
        let last = self.depth.wrapping_sub(1);
        let word = self.objects.get(last / 64);
        word.is_some_and(|word| word >> (last % 64) & 1 == 1)
    }
}
