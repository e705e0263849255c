//! Events about calls of models: reported usage, and failures.

use infold_wire::{Json, quote};

use super::{number, text};

/// Usage that a provider reported for a request and its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The provider that reported it.
    pub provider: String,
    /// The model that was called.
    pub model: String,
    /// Everything that was sent, cached or not, and the reply, in tokens.
    pub tokens: u64,
    /// Input tokens read from the provider's cache.
    pub cached: u64,
    /// The reply.
    pub output: u64,
    /// Our count of the tokens sent in addition to the view: tools, instructions.
    pub frame: u64,
    /// Cost in millionths of a dollar.
    pub cost: u64,
    /// The purpose of the call.
    pub purpose: Purpose,
}

/// The purpose of a call of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A reply, which is the message before.
    #[default]
    Reply,
    /// A summary.
    Summary,
    /// A reply that was not taken.
    Nothing,
}

/// A call of a provider that gave no reply that could be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The provider that was called.
    pub provider: String,
    /// The model that was called.
    pub model: String,
    /// The error.
    pub error: String,
    /// How many requests were sent.
    pub requests: u64,
}

impl Failure {
    pub(super) fn encode(&self) -> String {
        format!(
            r#","provider":{},"model":{},"error":{},"requests":{}"#,
            quote(&self.provider),
            quote(&self.model),
            quote(&self.error),
            self.requests
        )
    }

    pub(super) fn decode(json: Json<'_>) -> Option<Failure> {
        Some(Failure {
            provider: text(json, "provider")?,
            model: text(json, "model")?,
            error: text(json, "error")?,
            requests: number(json, "requests")?,
        })
    }
}

impl Usage {
    pub(super) fn encode(&self) -> String {
        let Usage {
            tokens,
            cached,
            output,
            frame,
            ..
        } = self;
        let cost = match self.cost {
            0 => String::new(),
            micros => format!(
                r#","cost":{}.{:06}"#,
                micros / 1_000_000,
                micros % 1_000_000
            ),
        };
        let purpose = match self.purpose {
            Purpose::Reply => "",
            Purpose::Summary => r#","for":"summary""#,
            Purpose::Nothing => r#","for":"nothing""#,
        };
        format!(
            r#","provider":{},"model":{},"tokens":{tokens},"cached":{cached},"output":{output},"frame":{frame}{cost}{purpose}"#,
            quote(&self.provider),
            quote(&self.model)
        )
    }

    pub(super) fn decode(json: Json<'_>) -> Option<Usage> {
        Some(Usage {
            provider: text(json, "provider")?,
            model: text(json, "model")?,
            tokens: number(json, "tokens")?,
            cached: number(json, "cached")?,
            output: number(json, "output")?,
            frame: number(json, "frame")?,
            cost: json
                .get("cost")
                .and_then(Json::number)
                .map_or(0, |dollars| (dollars * 1e6).round() as u64),
            purpose: match json.get("for") {
                Some(what) if what.is("summary") => Purpose::Summary,
                Some(_) => Purpose::Nothing,
                None => Purpose::Reply,
            },
        })
    }
}
