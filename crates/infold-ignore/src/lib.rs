//! Decides which paths git's ignore rules exclude.
//!
//! The rules of one `.gitignore` are [`IgnoreRules`]; those of a whole walk, with the directories above and the
//! global files, are a [`RuleChain`]. The results are those of `git check-ignore`, byte for byte, for any
//! pattern. Matching takes time proportional to the length of the pattern times that of the path; a backtracking matcher
//! would take exponential time for some patterns, and a repository from elsewhere may contain one.
//!
//! ```
//! use infold_ignore::IgnoreRules;
//!
//! // `Some(true)`: ignored. `Some(false)`: included again by a rule with `!`. `None`: no rule matches the path.
//! let rules = IgnoreRules::parse(b"*.log\n!keep.log\n/build/\n");
//! assert_eq!(rules.verdict(b"deep/x.log", false), Some(true));
//! assert_eq!(rules.verdict(b"keep.log", false), Some(false));
//! // `/build/` matches only a directory, and this path is a file.
//! assert_eq!(rules.verdict(b"build", false), None);
//! ```

mod pattern;
mod rules;
mod chain;
pub use chain::RuleChain;
pub use rules::IgnoreRules;
