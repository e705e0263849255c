//! Hides the oldest rounds behind a marker.

use infold_log::{Cause, Role, Span, View, plan};
use infold_wire::stand_in::window_marker;

use super::{Executor, MARKER_TOKENS, ManageError, Pass};
use crate::PassAction;

impl Pass<'_> {
    /// Hides the oldest rounds until the view fits; if nothing is condensed, until it has its target size.
    pub(super) fn truncate(&mut self, executor: &mut Executor<'_>) -> Result<(), ManageError> {
        let (aim, scale, log) = (self.aim, self.scale, executor.log());
        let target = self.outcome.target;
        let fits = |view: &View| {
            let size = scale.view(log, view, aim)?;
            let is_small = aim.strategy.condenses || size.within(target);
            Ok(is_small && aim.budget.fits(size))
        };
        let covers = plan::to_hide(executor.state(), MARKER_TOKENS, fits, log)?;
        let mut folds = Vec::new();
        let mut hidden = 0;
        let mut span: Option<Span> = None;
        for cover in covers {
            let stand_in = vec![(
                Role::User,
                window_marker(cover.span, cover.messages, aim.recall_tool.as_deref()),
            )];
            folds.extend(executor.fold(Cause::Window, &cover, self.aim.trigger, stand_in)?);
            hidden += cover.messages;
            let from = span.map_or(cover.span.from(), |span| span.from().min(cover.span.from()));
            let to = span.map_or(cover.span.to(), |span| span.to().max(cover.span.to()));
            span = Span::new(from, to);
        }
        let Some(span) = span else {
            return Ok(());
        };
        self.add_step(executor, PassAction::Truncated, folds, hidden, span)
    }
}
