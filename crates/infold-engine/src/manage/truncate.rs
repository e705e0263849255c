use infold_log::{Cause, Role, Span, View, plan};
use infold_store::marker;

use super::{Hand, MARKER, ManageError, Pass};
use crate::{Did, Step};

impl Pass<'_> {
    /// Hides the oldest rounds until the view fits; where nothing is condensed, until it is as small as it is to be.
    pub(super) fn truncate(&mut self, hand: &mut Hand<'_>) -> Result<(), ManageError> {
        let (aim, scale, log) = (self.aim, self.scale, hand.log());
        let target = self.outcome.target;
        let fits = |view: &View| {
            let size = scale.view(log, view, aim)?;
            let is_small = aim.strategy.condenses || size.within(target);
            Ok(is_small && aim.budget.fits(size))
        };
        let covers = plan::to_hide(hand.state(), MARKER, fits, log)?;
        let mut folds = Vec::new();
        let mut hidden = 0;
        let mut span: Option<Span> = None;
        for cover in covers {
            let stand_in = vec![(Role::User, marker(&cover))];
            folds.extend(hand.fold(Cause::Window, &cover, self.aim.trigger, stand_in)?);
            hidden += cover.messages;
            let from = span.map_or(cover.span.from(), |span| span.from().min(cover.span.from()));
            let to = span.map_or(cover.span.to(), |span| span.to().max(cover.span.to()));
            span = Span::new(from, to);
        }
        let Some(span) = span else {
            return Ok(());
        };
        let (before, after) = self.measured(hand, Did::Truncated)?;
        self.outcome.steps.push(Step {
            did: Did::Truncated,
            folds,
            hidden,
            span,
            before,
            after,
            summarizer: None,
        });
        Ok(())
    }
}
