//! Plays recorded sessions through `infold serve`, request by request, and measures what the model was shown.
//!
//! The figures are defined in `docs/EVAL.md`.

mod http;
mod terms;
mod record;
mod reply;
mod upstream;
mod proxy;
mod client;
mod shown;
mod one_go;
mod figures;

use std::path::Path;

use infold::Aim;
use infold::models::Prices;
use infold_eval::RecordedSession;
use infold_wire::{Message, append_plain_text};

use client::Client;
pub use figures::{Figures, Gain, InView, Point, least, mean};
use http::Received;
use proxy::{Folds, Proxy};
use record::Record;
use shown::Shown;
pub use terms::Share;
use upstream::{Request, Upstream};

/// The reason that a session could not be measured.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The settings for playing sessions.
pub struct Setting<'a> {
    /// The command.
    pub infold: &'a Path,
    /// The model that the client asks for.
    pub model: &'a str,
    /// The prices of its replies.
    pub prices: Option<Prices>,
    /// The window that proxy and upstream have.
    pub window: u64,
    /// The length of reply that the client requests.
    pub max_tokens: u64,
}

/// The result of one session.
pub struct Measured {
    /// The figures.
    pub figures: Figures,
    /// The view at each point, and the events of the task, for people to read: a name and the text.
    pub views: Vec<(String, String)>,
}

/// The points of a session, in percent of its requests, at which the view is compared with one go.
const POINTS: [u64; 3] = [60, 80, 100];

/// Typed requests are considered if together they have at most this fraction of the window.
const TYPED_PARTS: u64 = 4;

/// Plays a session, and measures.
pub fn measure(session: &RecordedSession, setting: &Setting<'_>) -> Result<Measured, Failure> {
    let record = Record::of(session)?;
    let upstream = Upstream::start(setting.window)?;
    let proxy = Proxy::start(setting, upstream.address())?;
    let mut run = Run {
        client: Client::new(proxy.address(), &record, setting.model, setting.max_tokens)?,
        record: &record,
        upstream: &upstream,
        setting,
        figures: Figures {
            messages: record.messages.len() as u64,
            ..Figures::default()
        },
        views: Vec::new(),
        aim: None,
    };
    let replies = record.replies();
    let last = replies.len().saturating_sub(1);
    let mut points = POINTS
        .iter()
        .map(|percent| (last as u64 * percent / 100, *percent))
        .peekable();
    for (number, place) in replies.iter().enumerate() {
        let next = replies.get(number + 1).copied();
        let Some(request) = run.turn(*place, next.unwrap_or(record.messages.len()))? else {
            continue;
        };
        // A point whose request failed is taken at the next one that is answered.
        while let Some((_, percent)) = points.next_if(|(at, _)| *at <= number as u64) {
            run.point(percent, *place, &request)?;
        }
    }
    run.figures.gain = proxy.gain()?;
    let (events, tasks) = proxy.events()?;
    run.figures.folds = Folds::of(&events, tasks)?;
    run.views.push(("events".to_owned(), events));
    Ok(Measured {
        figures: run.figures,
        views: run.views,
    })
}

/// A session being played.
struct Run<'a> {
    client: Client<'a>,
    record: &'a Record,
    upstream: &'a Upstream,
    setting: &'a Setting<'a>,
    figures: Figures,
    views: Vec<(String, String)>,
    /// The fold settings of one go, once the tokens of the frame are known.
    aim: Option<Aim>,
}

impl Run<'_> {
    /// Sends the request that the message at a place replies to; returns the request that reached the model, if it
    /// replied.
    fn turn(&mut self, place: usize, next: usize) -> Result<Option<Request>, Failure> {
        self.upstream.will_say(&self.record.messages[place].bytes);
        let reply = self.client.ask(place)?;
        let mut requests = self.upstream.take_requests();
        let figures = &mut self.figures;
        figures.requests += 1;
        figures.refused += requests.iter().filter(|request| request.refused).count() as u64;
        let request = requests.pop().filter(|request| !request.refused);
        let Some(request) = request.filter(|_| reply.status() == 200) else {
            figures.failed += 1;
            return Ok(None);
        };
        self.count(&request, &reply, place);
        let shown = self.shown(&request.messages)?;
        self.figures
            .recall
            .add(shown.recall(self.record, place, next));
        Ok(Some(request))
    }

    fn count(&mut self, request: &Request, reply: &Received, place: usize) {
        let figures = &mut self.figures;
        let (tokens, cached) = (request.tokens(), request.cached_tokens());
        let fill = tokens as f64 / self.setting.window as f64;
        if !request.extends {
            figures.breaks += 1;
            figures.after_folds.push(fill);
        }
        figures.at_end = vec![fill];
        let recorded = Message::parse(&self.record.messages[place].bytes);
        let output = recorded.map_or(0, |reply| infold_wire::tokens::message(&reply));
        figures.tokens += tokens;
        let history: u64 = self.record.messages[..place]
            .iter()
            .map(|said| said.tokens)
            .sum();
        figures.unfolded += request.frame_tokens + history;
        figures.cached += cached;
        figures.output += output;
        if let Some(prices) = self.setting.prices {
            let fresh = (tokens - cached) as f64 * prices.write;
            let dollars = cached as f64 * prices.cached + fresh + output as f64 * prices.output;
            figures.cost += dollars / 1e6;
        }
        let estimate = reply.header("x-infold-tokens-after");
        if let Some(estimate) = estimate.and_then(|tokens| tokens.parse::<f64>().ok()) {
            figures.estimates.push(estimate / tokens as f64);
        }
    }

    fn shown(&self, messages: &[Vec<u8>]) -> Result<Shown, Failure> {
        Shown::of(messages.iter().map(|bytes| &**bytes), self.record)
    }

    /// Measures the view before a message, live and in one go.
    fn point(&mut self, percent: u64, place: usize, request: &Request) -> Result<(), Failure> {
        let aim = match self.aim.take() {
            Some(aim) => aim,
            None => one_go::aim(self.setting, request.frame_tokens)?,
        };
        let one_go = one_go::fold(self.record, place, &aim)?;
        self.aim = Some(aim);
        let mut point = Point {
            percent,
            live: self.in_view(&request.messages, place)?,
            ..Point::default()
        };
        self.keep(format!("live-{percent}"), &request.messages)?;
        if let Some(messages) = one_go {
            point.one_go = self.in_view(&messages, place)?;
            self.keep(format!("one-go-{percent}"), &messages)?;
        }
        self.figures.points.push(point);
        Ok(())
    }

    fn in_view(&self, messages: &[Vec<u8>], place: usize) -> Result<InView, Failure> {
        let shown = self.shown(messages)?;
        let mut tokens = 0;
        for bytes in messages {
            tokens += infold_wire::tokens::message(&Message::parse(bytes)?);
        }
        let typed_tokens = self.setting.window / TYPED_PARTS;
        Ok(InView {
            requests: 1,
            tokens,
            stand_in_tokens: shown.stand_in_tokens(),
            there: shown.in_view(self.record, place),
            recall: shown.recall(self.record, place, self.record.messages.len()),
            verbatim: shown.verbatim(self.record, place, typed_tokens),
        })
    }

    fn keep(&mut self, name: String, messages: &[Vec<u8>]) -> Result<(), Failure> {
        let mut text = String::new();
        for bytes in messages {
            let message = Message::parse(bytes)?;
            let tokens = infold_wire::tokens::message(&message);
            text.push_str(&format!("──── {:?}, {tokens} tokens\n", message.role()));
            append_plain_text(&message, &mut text);
            text.push_str("\n\n");
        }
        self.views.push((name, text));
        Ok(())
    }
}
