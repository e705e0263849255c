//! Shows a task while it is carried out.

use std::io;

use infold_work::{CallOutcome, RunEvent};

use crate::live_reply::LiveReply;
use crate::output::{bytes, note, number, one_line};

/// Shows a task while it is carried out: the model's text on standard output, the rest on standard error.
pub struct LiveRun {
    json: bool,
    reply: LiveReply,
    /// The text of the last reply.
    last_text: String,
    /// The number of replies so far.
    steps: u64,
    /// The plan that was shown last.
    plan: Vec<String>,
    /// The problems that were shown: MCP server and reason.
    problems: Vec<(String, String)>,
    /// The last error of standard output, for [`LiveRun::finish`]: the callback that shows events returns nothing.
    output_result: io::Result<()>,
}

/// How many characters of the arguments or the error of a call are shown.
const MAX_SHOWN_CHARS: usize = 120;

impl LiveRun {
    /// Starts with nothing shown; `json` selects the format of the output.
    pub fn new(json: bool) -> LiveRun {
        LiveRun {
            json,
            reply: LiveReply::new(json),
            last_text: String::new(),
            steps: 0,
            plan: Vec::new(),
            problems: Vec::new(),
            output_result: Ok(()),
        }
    }

    /// Shows an event.
    pub fn handle(&mut self, event: RunEvent<'_>) {
        match event {
            RunEvent::Turn(event) => self.reply.handle(event),
            RunEvent::Replied(reply) => {
                // Prints nothing if the reply was streamed: its text is printed already.
                self.reply.print();
                let usage = reply.usage.as_ref();
                let speed = self.reply.finish(usage.map(|usage| usage.output));
                let shown = std::mem::replace(&mut self.reply, LiveReply::new(self.json));
                self.last_text = shown.text;
                self.steps += 1;
                let mut parts = vec![format!("step {}", self.steps)];
                if let Some(usage) = usage {
                    let (sent, cached) = (usage.tokens, usage.cached);
                    parts.push(format!(
                        "{} tokens ({} cached)",
                        number(sent),
                        number(cached)
                    ));
                    // Costs are in millionths of a dollar.
                    if usage.cost > 0 {
                        parts.push(format!("${:.4}", usage.cost as f64 / 1e6));
                    }
                }
                match speed {
                    Ok(speed) => parts.extend(speed),
                    Err(error) => self.output_result = Err(error),
                }
                note(self.json, parts.join("; "));
            }
            RunEvent::CallStarted { name, arguments } => {
                let arguments = infold_wire::shorten(arguments, MAX_SHOWN_CHARS);
                note(self.json, one_line(&format!("{name} {arguments}")));
            }
            RunEvent::CallEnded { name, outcome } => self.call_ended(name, outcome),
            RunEvent::State { phase, plan } => {
                note(self.json, format!("phase: {}", phase.unwrap_or("none")));
                if self.plan != plan {
                    self.plan = plan.to_vec();
                    for (number, step) in (1..).zip(plan) {
                        note(self.json, one_line(&format!("{number}. {step}")));
                    }
                }
            }
            RunEvent::Checkpoint { text } => note(self.json, one_line(text)),
            RunEvent::ServerProblem { server, reason } => {
                let problem = (server.to_owned(), reason.to_owned());
                // The problem is reported with every request while it lasts.
                if !self.problems.contains(&problem) {
                    note(
                        self.json,
                        one_line(&format!("MCP server {server}: {reason}")),
                    );
                    self.problems.push(problem);
                }
            }
        }
    }

    /// Shows the outcome of a call.
    fn call_ended(&self, name: &str, outcome: &CallOutcome) {
        let text = match outcome {
            CallOutcome::Ran { result, duration } => {
                let seconds = duration.as_secs_f64();
                match result {
                    Ok(text) => format!("{} in {seconds:.1} s", bytes(text.len() as u64)),
                    Err(text) => {
                        let first = text.lines().next().unwrap_or_default();
                        let first = infold_wire::shorten(first, MAX_SHOWN_CHARS);
                        format!("failed after {seconds:.1} s: {first}")
                    }
                }
            }
            CallOutcome::Refused(told) => infold_wire::shorten(told, MAX_SHOWN_CHARS),
            CallOutcome::Restored => "was run before; its recorded result is taken".to_owned(),
            CallOutcome::Interrupted => "was interrupted; the model is told".to_owned(),
        };
        note(self.json, one_line(&format!("{name}: {text}")));
    }

    /// Returns whether a text was shown as that of the last reply.
    pub fn has_shown(&self, text: &str) -> bool {
        !text.trim().is_empty() && self.last_text.trim() == text.trim()
    }

    /// Ends the output. Returns the last error of standard output, if there was one.
    pub fn finish(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.output_result, Ok(()))
    }
}
