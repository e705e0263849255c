//! The example session played through the real proxy: every request is answered, and the figures hang together.

#[path = "../examples/live/measure/mod.rs"]
#[allow(
    dead_code,
    unused_imports,
    reason = "the program prints what is not looked at here"
)]
mod measure;

use std::path::Path;

use infold::models;
use infold_eval::{DEFAULT_MODEL, RecordedSession};
use measure::{Figures, Setting, Share, measure};

const BUNDLED: &str = include_str!("../../../examples/long-session.jsonl");

fn played(window: u64) -> Figures {
    let lines = BUNDLED.lines().map(|line| line.as_bytes().to_vec());
    let session = RecordedSession {
        messages: lines.collect(),
        ..RecordedSession::default()
    };
    let setting = Setting {
        infold: Path::new(env!("CARGO_BIN_EXE_infold")),
        model: DEFAULT_MODEL,
        prices: models::find(DEFAULT_MODEL).and_then(|model| model.prices),
        window,
        max_tokens: window / 4,
    };
    measure(&session, &setting)
        .expect("the session is played")
        .figures
}

fn is_partial(share: Share) -> bool {
    0 < share.kept && share.kept < share.wanted
}

#[test]
fn a_session_of_many_windows_is_played_to_its_end() {
    let figures = played(16_000);
    assert_eq!((figures.messages, figures.requests), (450, 224));
    assert_eq!(
        (figures.refused, figures.failed, figures.folds.tasks),
        (0, 0, 1)
    );
    assert!(figures.folds.summaries > 0);
    assert!(
        figures.breaks > 0 && figures.breaks <= figures.folds.passes,
        "only folds change what was sent before: {figures:?}"
    );
    assert!(is_partial(figures.recall.references) && is_partial(figures.recall.words));
    assert!(
        figures
            .after_folds
            .iter()
            .all(|fill| (0.05..0.9).contains(fill))
    );
    assert!(figures.cached < figures.tokens && figures.cached > figures.tokens / 2);
    assert!(figures.cost > 0.0);
    let percents: Vec<u64> = figures.points.iter().map(|point| point.percent).collect();
    assert_eq!(percents, [60, 80, 100]);
    for point in &figures.points[..2] {
        for view in [point.live, point.one_go] {
            assert_eq!(view.requests, 1);
            assert!(0 < view.stand_in_tokens && view.stand_in_tokens < view.tokens);
            assert!(view.tokens < 16_000);
            assert!(is_partial(view.there.references) && view.verbatim.kept > 0);
        }
        let (live, one_go) = (point.live.there, point.one_go.there);
        assert_eq!(
            (live.references.wanted, live.words.wanted),
            (one_go.references.wanted, one_go.words.wanted),
            "both are asked for the same"
        );
    }
}

#[test]
fn nothing_is_missing_while_all_fits() {
    let figures = played(1_000_000);
    assert_eq!(
        (figures.requests, figures.refused, figures.failed),
        (224, 0, 0)
    );
    assert_eq!((figures.folds.passes, figures.breaks), (0, 0));
    assert_eq!(figures.recall, Default::default());
    for point in &figures.points {
        assert_eq!(point.live.stand_in_tokens, 0);
        for view in [point.live, point.one_go] {
            assert_eq!(view.there.references.kept, view.there.references.wanted);
            assert_eq!(view.there.words.kept, view.there.words.wanted);
            assert_eq!(view.verbatim.kept, view.verbatim.wanted);
            assert_eq!(view.recall, Default::default());
        }
    }
}
