//! Which runs are wanted, by their names.

use std::convert::Infallible;
use std::str::FromStr;

/// All runs, or those whose names begin with one of some: `push`, `push:12`, `push:12:eio`, `push::kill`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialFilter(Vec<String>);

/// Names with commas between them; nothing for all.
impl FromStr for TrialFilter {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<TrialFilter, Infallible> {
        let names = text.split(',').filter(|name| !name.is_empty());
        Ok(TrialFilter(names.map(str::to_owned).collect()))
    }
}

impl TrialFilter {
    /// Returns whether a run is wanted.
    pub(crate) fn takes(&self, run: &str) -> bool {
        let is_begun = |name: &String| is_beginning(name, run);
        self.0.is_empty() || self.0.iter().any(is_begun)
    }

    /// Returns whether any run may be wanted whose name begins so.
    pub(crate) fn may_take(&self, beginning: &str) -> bool {
        let is_begun =
            |name: &String| is_beginning(name, beginning) || is_beginning(beginning, name);
        self.0.is_empty() || self.0.iter().any(is_begun)
    }
}

/// Names begin with whole parts: `push` is no beginning of `push-long:3`. A part that is left out may be any.
fn is_beginning(name: &str, of: &str) -> bool {
    let mut parts = of.split(':');
    name.split(':').all(|wanted| {
        let part = parts.next();
        part.is_some_and(|part| wanted.is_empty() || wanted == part)
    })
}

#[cfg(test)]
mod tests {
    use super::TrialFilter;

    #[test]
    fn runs_are_taken_by_whole_parts_of_their_names() {
        let only: TrialFilter = "push:12,view".parse().unwrap();
        for run in ["push:12", "push:12:eio", "view:3:kill"] {
            assert!(only.takes(run), "{run}");
        }
        for run in [
            "push:1:eio",
            "push:123:eio",
            "push-long:12:eio",
            "view-at:1:eio",
        ] {
            assert!(!only.takes(run), "{run}");
        }
        assert!(only.may_take("push") && only.may_take("view") && !only.may_take("fork"));
        let kills: TrialFilter = "push::kill".parse().unwrap();
        assert!(kills.takes("push:3:kill") && kills.may_take("push"));
        assert!(!kills.takes("push:3:eio") && !kills.takes("push:3:kill-half"));
        assert!(
            TrialFilter::default().takes("fork:1:eio") && TrialFilter::default().may_take("fork")
        );
    }
}
