//! Finds the point at which Gemini CLI splits a conversation.

use infold_wire::{Json, js};

/// The reason that there is no split point.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SplitError {
    /// The fraction is not strictly between 0 and 1. The text is Gemini CLI's.
    #[error("Fraction must be between 0 and 1")]
    Fraction {
        /// The requested fraction.
        fraction: f64,
    },
}

/// Returns the point at which Gemini CLI splits a conversation: the part before it is condensed.
///
/// It splits before a user entry that answers no function call, the first one with at least `fraction` of the weight
/// before it. If there is none, all is condensed if the last entry is the model's and has no call, else the part before
/// the last such user entry.
pub fn split_point(contents: &[Json<'_>], fraction: f64) -> Result<usize, SplitError> {
    if fraction <= 0.0 || fraction >= 1.0 {
        return Err(SplitError::Fraction { fraction });
    }
    let weights: Vec<usize> = contents.iter().copied().map(js::weight).collect();
    let target = weights.iter().sum::<usize>() as f64 * fraction;
    let (mut before, mut last) = (0, 0);
    for (at, &entry) in contents.iter().enumerate() {
        if has_role(entry, "user") && !has_part(entry, "functionResponse") {
            if before as f64 >= target {
                return Ok(at);
            }
            last = at;
        }
        before += weights[at];
    }
    let is_finished =
        |entry: &Json<'_>| has_role(*entry, "model") && !has_part(*entry, "functionCall");
    Ok(if contents.last().is_some_and(is_finished) {
        contents.len()
    } else {
        last
    })
}

fn has_role(entry: Json<'_>, role: &str) -> bool {
    entry.get("role").is_some_and(|found| found.is(role))
}

fn has_part(entry: Json<'_>, name: &str) -> bool {
    let mut parts = entry.get("parts").into_iter().flat_map(Json::elements);
    parts.any(|part| part.get(name).is_some_and(js::is_truthy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(contents: &str, fraction: f64) -> Result<usize, SplitError> {
        let contents = Json::parse(contents.as_bytes()).unwrap();
        split_point(&contents.elements().collect::<Vec<_>>(), fraction)
    }

    #[test]
    fn weights_are_of_what_javascript_prints_not_of_what_was_written() {
        // Three entries of equal weight, however they are spelt.
        let contents = r#"[{"role":"user","n":10}, {"role" : "user", "n":1.0e1},
            {"n":7,"role":"us\u0065r","n":1e1}]"#;
        assert_eq!(split(contents, 0.34), Ok(2));
        assert_eq!(split(contents, 0.33), Ok(1));
    }

    #[test]
    fn a_fraction_lies_strictly_between_none_and_all() {
        for fraction in [0.0, 1.0, -0.5, f64::INFINITY] {
            assert!(split("[]", fraction).is_err(), "{fraction}");
        }
        assert_eq!(split("[]", 0.5), Ok(0));
    }
}
