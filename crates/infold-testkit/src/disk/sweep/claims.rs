//! Reads from the error of a command what it claims to have changed.

/// The claim of a failed command about its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectClaim {
    /// Nothing was changed.
    Nothing,
    /// The command, or a part of it, is done.
    Done,
    /// The command may be done.
    Unsure,
    /// The error says nothing about its effect.
    Silent,
}

/// Phrases that say that nothing was changed.
const NOTHING_CHANGED_PHRASES: &str = "\
    nothing was changed|nothing was kept|nothing was stored|nothing was created|\
    nothing was deleted|nothing of it was kept|nothing was pinned|nothing was made|\
    none of it was kept";

/// Phrases that say that the command, or a part of it, is done in spite of the error.
const DONE_PHRASES: &str = "\
    took effect|all the same|is kept|are kept|was kept|were kept|is marked|is recorded|\
    was recorded|was appended|were appended|was made|was created|were created|is stored|\
    are stored|was deleted|deleted so far|so far stay|is done|has ended|in the log|was removed|\
    were removed|was folded|were folded|stands";

/// Phrases that say that the effect is unknown.
const UNSURE_PHRASES: &str = "may have taken effect|may be kept";

impl EffectClaim {
    /// Reads an error and its hint.
    pub(crate) fn of(error: &str, hint: &str) -> EffectClaim {
        let text = format!("{error}; {hint}").to_lowercase();
        let says = |phrases: &str| phrases.split('|').any(|phrase| text.contains(phrase));
        // This comes first, because "nothing of it was kept" contains a phrase for "done" as well.
        if says(NOTHING_CHANGED_PHRASES) {
            EffectClaim::Nothing
        } else if says(UNSURE_PHRASES) {
            EffectClaim::Unsure
        } else if says(DONE_PHRASES) {
            EffectClaim::Done
        } else {
            EffectClaim::Silent
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EffectClaim;

    #[test]
    fn hints_are_read_as_people_read_them() {
        let claim = |hint: &str| EffectClaim::of("no space left for messages.jsonl", hint);
        assert_eq!(claim("nothing of it was kept"), EffectClaim::Nothing);
        assert_eq!(
            claim("what was said is kept; `infold ask T` asks again"),
            EffectClaim::Done
        );
        assert_eq!(
            claim("it may have taken effect: `infold log T` tells"),
            EffectClaim::Unsure
        );
        let free = "free some space and do it again; nothing that was acknowledged is lost";
        assert_eq!(claim(free), EffectClaim::Silent);
    }
}
