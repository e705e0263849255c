//! Numbers of tokens or bytes as people write them.

/// Parses a positive number such as 8000, 32k or 1.5m; `None` for anything else.
pub fn parse(text: &str) -> Option<u64> {
    let lower = text.trim().to_lowercase().replace('_', "");
    let (digits, unit) = match lower.char_indices().next_back() {
        Some((at, 'k')) => (&lower[..at], 1e3),
        Some((at, 'm')) => (&lower[..at], 1e6),
        _ => (&lower[..], 1.0),
    };
    let number = digits.parse::<f64>().ok()? * unit;
    (1.0..=1e15).contains(&number).then_some(number as u64)
}
