//! Moves, and how to draw them.

use std::fmt;

use infold_log::steer::Side;
use infold_log::{Cause, LinkKind, Role};
use proptest::prelude::*;

/// Something that happens in a conversation. Numbers are indices, taken modulo what there is.
#[derive(Clone, Debug)]
pub enum Move {
    Say(Says),
    Step(Step),
    /// Folds that belong together.
    Pass(Vec<Step>),
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub enum Says {
    System,
    Request,
    Empty(Role),
    /// Of the model, with so many calls.
    Reply(usize, [u8; 3]),
    /// One item of an output, with so many calls.
    Item(usize, [u8; 3]),
    /// Results for so many of the calls that wait, the newest first.
    Answer(Carrier, usize),
    /// A result that is waited for, if there is one, and one that may not be.
    Mixed(u8),
    /// A result that may be late, on time or without a call.
    Stray(Carrier, u8),
    /// Something that an id ties to other messages, with so many calls.
    Linked(Role, LinkKind, u8, usize),
}

#[derive(Clone, Copy, Debug)]
pub enum Carrier {
    Tool,
    User,
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Fold(Cause, u16, u16),
    Truncate(u8),
    Mask(u16, u32),
    Unfold(u16),
    UnfoldAny(u16),
    Rewind(Side, Where, u16),
    Undo,
    Redo,
    Pin(u16),
    Unpin(u16),
    Note,
    Unnote(u16),
    /// An excerpt of one of the hidden messages, at the end of what is shown.
    Recall(u16),
    /// A change of the layered state, by a person or not.
    State(bool),
    Fact,
}

/// The kind of target of a rewind.
#[derive(Clone, Copy, Debug)]
pub enum Where {
    Message,
    Event,
    Time,
}

/// Moves one after another; a failing test prints each on a line of its own.
#[derive(Clone)]
pub struct Moves(pub Vec<Move>);

impl fmt::Debug for Moves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|next| write!(f, "\n    {next:?}"))
    }
}

/// A conversation of up to `most` moves.
pub fn any_moves(most: usize) -> impl Strategy<Value = Moves> {
    let opening = prop::collection::vec(any_opening(), 0..4);
    let rest = prop::collection::vec(any_move(), 1..most);
    (opening, rest).prop_map(|(mut opening, rest)| {
        opening.extend(rest);
        Moves(opening)
    })
}

pub fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        12 => any_says().prop_map(Move::Say),
        6 => any_step().prop_map(Move::Step),
        3 => any_reversal().prop_map(Move::Step),
        1 => prop::collection::vec(any_fold(), 2..4).prop_map(Move::Pass),
    ]
}

/// How most conversations begin.
fn any_opening() -> impl Strategy<Value = Move> {
    let says = prop_oneof![
        2 => Just(Says::System),
        4 => Just(Says::Request),
        1 => Just(Says::Empty(Role::User)),
        4 => any_ids().prop_map(|(count, ids)| Says::Reply(count, ids)),
    ];
    says.prop_map(Move::Say)
}

pub fn any_says() -> impl Strategy<Value = Says> {
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant]);
    prop_oneof![
        1 => Just(Says::System),
        6 => Just(Says::Request),
        1 => role.prop_map(Says::Empty),
        8 => any_ids().prop_map(|(count, ids)| Says::Reply(count, ids)),
        8 => any_ids().prop_map(|(count, ids)| Says::Item(count, ids)),
        8 => (any_carrier(), 1..4usize).prop_map(|(carrier, count)| Says::Answer(carrier, count)),
        1 => (0..6u8).prop_map(Says::Mixed),
        2 => (any_carrier(), 0..6u8).prop_map(|(carrier, id)| Says::Stray(carrier, id)),
        5 => any_linked(),
    ]
}

fn any_linked() -> impl Strategy<Value = Says> {
    let role = prop::sample::select(vec![Role::Assistant, Role::Assistant, Role::User]);
    let kind = prop::sample::select(vec![
        LinkKind::Opens,
        LinkKind::Continues,
        LinkKind::Ends,
        LinkKind::Mentions,
    ]);
    (role, kind, 0..6u8, 0..3usize).prop_map(|(role, kind, id, calls)| {
        let calls = if role == Role::Assistant { calls } else { 0 };
        Says::Linked(role, kind, id, calls)
    })
}

/// A step that is neither undo nor redo.
pub fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => any_fold(),
        4 => any::<u16>().prop_map(Step::Unfold),
        1 => any::<u16>().prop_map(Step::UnfoldAny),
        6 => any_rewind(),
        4 => any_pin(),
        4 => any::<u16>().prop_map(Step::Recall),
        2 => any::<bool>().prop_map(Step::State),
        1 => Just(Step::Fact),
    ]
}

pub fn any_reversal() -> impl Strategy<Value = Step> {
    prop_oneof![3 => Just(Step::Undo), 2 => Just(Step::Redo)]
}

/// A fold of any kind.
pub fn any_fold() -> impl Strategy<Value = Step> {
    let mask = (any::<u16>(), 0..2u32).prop_map(|(at, part)| Step::Mask(at, part));
    prop_oneof![
        6 => any_cover(),
        3 => (0..=100u8).prop_map(Step::Truncate),
        2 => mask,
    ]
}

/// A fold over rounds.
pub fn any_cover() -> impl Strategy<Value = Step> {
    let cause = prop::sample::select(vec![Cause::Summary, Cause::Window]);
    (cause, any::<u16>(), any::<u16>()).prop_map(|(cause, a, b)| Step::Fold(cause, a, b))
}

pub fn any_rewind() -> impl Strategy<Value = Step> {
    (any_side(), any_where(), any::<u16>()).prop_map(|(side, to, at)| Step::Rewind(side, to, at))
}

pub fn any_pin() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<u16>().prop_map(Step::Pin),
        2 => any::<u16>().prop_map(Step::Unpin),
        1 => Just(Step::Note),
        1 => any::<u16>().prop_map(Step::Unnote),
    ]
}

pub fn any_side() -> impl Strategy<Value = Side> {
    prop::sample::select(vec![Side::To, Side::Before])
}

pub fn any_where() -> impl Strategy<Value = Where> {
    prop::sample::select(vec![Where::Message, Where::Event, Where::Time])
}

fn any_carrier() -> impl Strategy<Value = Carrier> {
    prop::sample::select(vec![Carrier::Tool, Carrier::User])
}

fn any_ids() -> impl Strategy<Value = (usize, [u8; 3])> {
    (0..4usize, prop::array::uniform3(0..6u8))
}
