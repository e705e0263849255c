//! A model that answers as recorded, and logs its calls.

use infold_tags::{ReplyChunk, SummaryModel, SummaryPrompt, SummaryReply, SummaryRequest};
use infold_wire::{Json, quote};

use crate::functions::{list, object};
use crate::input::Input;

pub struct Script<'a> {
    /// Which of the two handlers this is.
    name: &'static str,
    handler: Json<'a>,
    /// The recorded calls of the handler.
    pub calls: Vec<Vec<u8>>,
    /// The tokens that it reported for its last answer.
    pub said: f64,
}

impl<'a> Script<'a> {
    /// Returns the handlers of a case that can be called, in the order in which they are called.
    pub fn usable(input: Input<'a>) -> impl Iterator<Item = Script<'a>> {
        let named = Script::named(input);
        named.filter(|script| {
            let can = script.handler.get("hasCreateMessage");
            can.is_none_or(Json::is_true)
        })
    }

    /// Says whether the first handler cannot be called.
    pub fn falls_back(input: Input<'a>) -> bool {
        let first = |scripts: &mut dyn Iterator<Item = Script<'a>>| scripts.next().map(|s| s.name);
        first(&mut Script::usable(input)) != first(&mut Script::named(input))
    }

    fn named(input: Input<'a>) -> impl Iterator<Item = Script<'a>> {
        let handlers = [
            ("condensing", "condensingApiHandler"),
            ("main", "apiHandler"),
        ];
        handlers.into_iter().filter_map(move |(name, key)| {
            Some(Script {
                name,
                handler: input.get(key)?,
                calls: Vec::new(),
                said: 0.0,
            })
        })
    }

    /// Returns the model itself.
    pub fn model(&mut self) -> SummaryModel<'_, String> {
        Box::new(|request| {
            let reply = self.reply(request)?;
            self.said = reply.tokens;
            Ok(reply)
        })
    }

    /// Answers, or fails with a message.
    fn reply(&mut self, request: &SummaryRequest<'_>) -> Result<SummaryReply, String> {
        let prompt = match request.prompt {
            SummaryPrompt::Default => "null".to_owned(),
            SummaryPrompt::Custom(text) => quote(text),
        };
        self.calls.push(object(&[
            ("handler", quote(self.name).into()),
            ("prompt", prompt.into()),
            ("messages", list(&request.messages)),
        ]));
        if let Some(message) = self.handler.get("throwOnCall") {
            return Err(text(message));
        }
        let stream = self.handler.get("stream").into_iter();
        stream.flat_map(Json::elements).filter_map(chunk).collect()
    }
}

fn chunk(chunk: Json<'_>) -> Option<Result<ReplyChunk, String>> {
    let number = |name| chunk.get(name).and_then(Json::number);
    match &*chunk.get("type")?.text()? {
        "text" => Some(Ok(ReplyChunk::Text(text(chunk.get("text")?)))),
        "usage" => Some(Ok(ReplyChunk::Usage {
            cost: number("totalCost"),
            tokens: number("outputTokens"),
        })),
        "error" => Some(Err(text(chunk.get("message")?))),
        _ => None,
    }
}

fn text(json: Json<'_>) -> String {
    json.text().unwrap_or_default().into_owned()
}
