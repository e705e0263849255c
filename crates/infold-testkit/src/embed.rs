//! Embeddings: vectors that follow from the words of a text, so that texts with words in common point the same way.

use infold_wire::{Json, Wire};

use crate::dialect::json;
use crate::send::Outgoing;

/// The numbers of a vector.
const DIMENSIONS: usize = 64;
/// Words that mean the same, though they look different.
const SYNONYMS: [(&str, &str); 2] = [("zeppelin", "airship"), ("velocipede", "bicycle")];

/// Answers a request for embeddings; none if it has no texts.
pub(crate) fn embeddings(wire: Wire, request: Json<'_>) -> Option<Outgoing> {
    let texts: Vec<String> = match wire {
        Wire::Gemini => {
            let text = |one: Json<'_>| {
                let parts = one.get("content")?.get("parts")?;
                let first = parts.elements().next()?;
                Some(first.get("text")?.text()?.into_owned())
            };
            let requests = request.get("requests")?.elements();
            requests.map(text).collect::<Option<_>>()?
        }
        _ => {
            let input = request.get("input")?;
            match input.text() {
                Some(text) => vec![text.into_owned()],
                None => {
                    let text = |one: Json<'_>| one.text().map(|text| text.into_owned());
                    input.elements().map(text).collect::<Option<_>>()?
                }
            }
        }
    };
    let entry = |(at, text): (usize, &String)| {
        let numbers: Vec<String> = vector(text).iter().map(f32::to_string).collect();
        let numbers = numbers.join(",");
        match wire {
            Wire::Ollama => format!("[{numbers}]"),
            Wire::Gemini => format!(r#"{{"values":[{numbers}]}}"#),
            _ => format!(r#"{{"object":"embedding","index":{at},"embedding":[{numbers}]}}"#),
        }
    };
    let list: Vec<String> = texts.iter().enumerate().map(entry).collect();
    let list = list.join(",");
    Some(json(
        200,
        match wire {
            Wire::Ollama | Wire::Gemini => format!(r#"{{"embeddings":[{list}]}}"#),
            _ => format!(
                r#"{{"object":"list","data":[{list}],"model":"testkit","usage":{{"prompt_tokens":1,"total_tokens":1}}}}"#
            ),
        },
    ))
}

fn vector(text: &str) -> [f32; DIMENSIONS] {
    let mut vector = [0.0; DIMENSIONS];
    let words = text.to_lowercase();
    let words = words.split(|c: char| !c.is_alphanumeric());
    for word in words.filter(|word| word.len() > 2 && *word != "the") {
        let meaning = SYNONYMS.iter().find(|(other, _)| *other == word);
        let word = meaning.map_or(word, |(_, word)| word);
        // FNV-1a: the same on every machine and in every version.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325, step);
        vector[(hash % DIMENSIONS as u64) as usize] += 1.0;
    }
    vector
}
