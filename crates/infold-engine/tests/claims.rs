//! The claims of a summary about the user are checked sentence by sentence: paraphrases stay, inventions are removed.

#[path = "claims/mod.rs"]
mod made_up;

use infold::claims::ClaimChecker;
use made_up::{Case, cases, mutated};

fn all() -> Vec<Case> {
    cases(include_str!("claims/cases.txt"))
}

/// Says whether a claim is kept.
fn stays(case: &Case, claim: &str) -> bool {
    why_dropped(case, claim).is_none()
}

/// Returns the reason that a claim is dropped.
fn why_dropped(case: &Case, claim: &str) -> Option<String> {
    let mut claims = ClaimChecker::new(claim);
    for (user, said) in &case.said {
        if *user {
            claims.read_user(None, said)
        } else {
            claims.read_assistant(said)
        }
    }
    let checked = claims.finish();
    let why = checked.dropped.first().map(|dropped| dropped.why.clone());
    assert_eq!(why.is_none(), checked.text == claim);
    why
}

#[test]
fn what_the_user_said_in_other_words_stays() {
    let mut gone = Vec::new();
    let mut count = 0;
    for case in all() {
        count += case.true_claims.len();
        for claim in &case.true_claims {
            gone.extend(why_dropped(&case, claim).map(|why| format!("{claim} ({why})")));
        }
    }
    assert!(count >= 80, "{count}");
    assert!(
        gone.is_empty(),
        "{} of {count}:\n{}",
        gone.len(),
        gone.join("\n")
    );
}

#[test]
fn what_the_user_never_said_goes() {
    let mut left = Vec::new();
    let mut count = 0;
    for case in all() {
        count += case.false_claims.len();
        left.extend(
            case.false_claims
                .iter()
                .filter(|claim| stays(&case, claim))
                .cloned(),
        );
    }
    assert!(count >= 80, "{count}");
    assert!(
        left.is_empty(),
        "{} of {count}:\n{}",
        left.len(),
        left.join("\n")
    );
}

#[test]
fn a_true_claim_that_is_changed_goes() {
    let mut left = Vec::new();
    let mut count = 0;
    for case in all()
        .iter()
        .filter(|case| case.said.iter().any(|(_, said)| said != "hello"))
    {
        for claim in &case.true_claims {
            for (how, changed) in mutated(claim) {
                // A verb of saying that was changed leaves no claim.
                if !ClaimChecker::new(&changed).has_claims() {
                    continue;
                }
                count += 1;
                if stays(case, &changed) {
                    left.push(format!("{how}: {changed}"));
                }
            }
        }
    }
    assert!(count >= 500, "{count}");
    assert!(
        left.is_empty(),
        "{} of {count}:\n{}",
        left.len(),
        left.join("\n")
    );
}

#[test]
fn what_is_invented_goes_from_every_conversation() {
    let invented = include_str!("claims/invented.txt");
    assert!(invented.lines().count() >= 60);
    let mut left = Vec::new();
    for case in all() {
        left.extend(invented.lines().filter(|claim| stays(&case, claim)));
    }
    assert!(left.is_empty(), "{}:\n{}", left.len(), left.join("\n"));
}
