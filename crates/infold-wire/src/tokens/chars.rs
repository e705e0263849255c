//! Estimates tokens by characters.

use crate::{Json, JsonKind, js};

/// Estimates the tokens of a list of Gemini parts by their characters.
///
/// An ASCII character is a quarter of a token, any other 1.3. They are added one by one, in double precision, like the
/// peer does: multiplying rounds differently.
pub fn parts<'a>(parts: impl IntoIterator<Item = Json<'a>>) -> u64 {
    let mut sum = 0.0;
    for part in parts {
        match part
            .get("text")
            .filter(|text| text.kind() == JsonKind::String)
        {
            Some(text) => add(&text.text().unwrap_or_default(), &mut sum),
            None => sum += js::weight(part) as f64 / 4.0,
        }
    }
    sum as u64
}

/// Adds the estimate of a text to a sum.
pub fn add(text: &str, sum: &mut f64) {
    for char in text.chars() {
        *sum += if char.is_ascii() { 0.25 } else { 1.3 };
    }
}
