//! Combines the rules of a directory with those of the directories above it.

use std::rc::Rc;

use crate::rules::IgnoreRules;

/// The rules that hold in a directory: its own, and those of the directories above it.
///
/// A repository within another begins with an empty chain, because the rules of a repository end at its directory. A
/// chain is a linked list from the strongest rules to the weakest, immutable and cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct RuleChain(Option<Rc<RuleLink>>);

/// The rules of one directory.
#[derive(Debug)]
struct RuleLink {
    /// The length of the path of the directory, including the slash at its end: the rules match the rest of a path.
    base_bytes: usize,
    rules: IgnoreRules,
    /// The rules that hold where these say nothing.
    weaker: RuleChain,
}

impl RuleChain {
    /// Returns this chain with the rules of a directory added, which are stronger than those in the chain.
    ///
    /// `base_bytes` is the length of the directory's path, including the slash at its end, and 0 for the top directory.
    pub fn with(&self, base_bytes: usize, rules: IgnoreRules) -> RuleChain {
        if rules.is_empty() {
            return self.clone();
        }
        RuleChain(Some(Rc::new(RuleLink {
            base_bytes,
            rules,
            weaker: self.clone(),
        })))
    }

    /// Says whether the rules ignore a path. It must not lie in an ignored directory, which the caller has to check
    /// first: git never looks into such a directory, so the rules cannot include any of its entries again.
    pub fn is_ignored(&self, path: &[u8], is_directory: bool) -> bool {
        let mut chain = self;
        while let Some(link) = &chain.0 {
            let below = path.get(link.base_bytes..);
            if let Some(verdict) = below.and_then(|path| link.rules.verdict(path, is_directory)) {
                return verdict;
            }
            chain = &link.weaker;
        }
        false
    }
}
