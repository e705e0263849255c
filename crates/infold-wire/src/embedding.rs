//! Requests for embeddings, and the vectors in their replies.

use crate::{Json, Wire, quote};

/// The most numbers of a vector.
const MAX_DIMENSIONS: usize = 1 << 16;

/// Writes a request for the vectors of some texts; `None` if the wire has no such request.
pub fn embedding_request(wire: Wire, model: &str, texts: &[&str]) -> Option<String> {
    let list = |each: &dyn Fn(&str) -> String| {
        let items: Vec<String> = texts.iter().map(|text| each(text)).collect();
        items.join(",")
    };
    let name = quote(model);
    Some(match wire {
        Wire::Chat | Wire::Responses => {
            let input = list(&quote);
            format!(r#"{{"model":{name},"input":[{input}],"encoding_format":"float"}}"#)
        }
        Wire::Ollama => {
            let input = list(&quote);
            format!(r#"{{"model":{name},"input":[{input}],"truncate":true}}"#)
        }
        Wire::Gemini => {
            let name = if model.starts_with("models/") {
                name
            } else {
                quote(&format!("models/{model}"))
            };
            let request = |text: &str| {
                let text = quote(text);
                format!(r#"{{"model":{name},"content":{{"parts":[{{"text":{text}}}]}}}}"#)
            };
            format!(r#"{{"requests":[{}]}}"#, list(&request))
        }
        Wire::Anthropic => return None,
    })
}

/// Reads the vectors of `count` texts, in their order; none unless there is one for each, all of one length and not zero.
pub fn read_embeddings(body: &[u8], count: usize) -> Option<Vec<Vec<f32>>> {
    let json = Json::parse(body).ok()?;
    let list = json.get("data").or_else(|| json.get("embeddings"))?;
    let mut vectors: Vec<Option<Vec<f32>>> = vec![None; count];
    for (at, entry) in list.elements().enumerate() {
        let numbers = entry.get("embedding").or_else(|| entry.get("values"));
        // OpenAI's entries say which text they belong to.
        let index = entry.get("index").and_then(Json::number);
        let index = index.map_or(at, |index| index as usize);
        *vectors.get_mut(index)? = Some(read_vector(numbers.unwrap_or(entry))?);
    }
    let vectors: Vec<Vec<f32>> = vectors.into_iter().collect::<Option<_>>()?;
    let length = vectors.first().map_or(0, Vec::len);
    let is_alike = vectors.iter().all(|vector| vector.len() == length);
    (is_alike && (1..=MAX_DIMENSIONS).contains(&length)).then_some(vectors)
}

fn read_vector(json: Json<'_>) -> Option<Vec<f32>> {
    let number = |one: Json<'_>| {
        let number = one.number()? as f32;
        number.is_finite().then_some(number)
    };
    let vector: Vec<f32> = json.elements().map(number).collect::<Option<_>>()?;
    // A vector without a direction has no similarity to others.
    let is_zero = !vector.is_empty() && vector.iter().all(|one| *one == 0.0);
    (!is_zero).then_some(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_hold_all_texts() {
        let texts = ["a \"b\"", "c"];
        let written = |wire| embedding_request(wire, "m", &texts);
        let chat = r#"{"model":"m","input":["a \"b\"","c"],"encoding_format":"float"}"#;
        assert_eq!(written(Wire::Chat).as_deref(), Some(chat));
        let ollama = r#"{"model":"m","input":["a \"b\"","c"],"truncate":true}"#;
        assert_eq!(written(Wire::Ollama).as_deref(), Some(ollama));
        let gemini = r#"{"requests":[{"model":"models/m","content":{"parts":[{"text":"a \"b\""}]}},{"model":"models/m","content":{"parts":[{"text":"c"}]}}]}"#;
        assert_eq!(written(Wire::Gemini).as_deref(), Some(gemini));
        assert_eq!(written(Wire::Anthropic), None);
    }

    #[test]
    fn vectors_are_read_in_the_order_of_the_texts() {
        let expected = Some(vec![vec![1.0, 0.0], vec![0.5, -2.0]]);
        for body in [
            r#"{"data":[{"index":1,"embedding":[0.5,-2]},{"index":0,"embedding":[1,0]}]}"#,
            r#"{"data":[{"embedding":[1,0]},{"embedding":[0.5,-2]}]}"#,
            r#"{"model":"m","embeddings":[[1,0],[0.5,-2]]}"#,
            r#"{"embeddings":[{"values":[1,0]},{"values":[0.5,-2]}]}"#,
        ] {
            assert_eq!(read_embeddings(body.as_bytes(), 2), expected, "{body}");
        }
    }

    #[test]
    fn what_is_no_list_of_vectors_is_none() {
        for body in [
            "",
            "{}",
            r#"{"error":{"message":"no"}}"#,
            r#"{"embeddings":[[1,0]]}"#,
            r#"{"embeddings":[[1,0],[1]]}"#,
            r#"{"embeddings":[[],[]]}"#,
            r#"{"embeddings":[[1,0],[0,-0.0]]}"#,
            r#"{"embeddings":[[1,0],[1,1e99]]}"#,
            r#"{"embeddings":[[1,0],["x","y"]]}"#,
            r#"{"embeddings":[[1,0],[1,0],[1,0]]}"#,
            r#"{"data":[{"index":7,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
            r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#,
        ] {
            assert_eq!(read_embeddings(body.as_bytes(), 2), None, "{body}");
        }
    }
}
