//! Computes the Shannon entropy of bytes, which distinguishes random keys from words and placeholders.

/// Returns the Shannon entropy of the values of bytes, in bits per byte: from 0 if all bytes are equal to 8 if all values are
/// equally frequent. It is 0 for no bytes.
pub(crate) fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let len = bytes.len() as f64;
    let share = |count: &u32| {
        let share = f64::from(*count) / len;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(share).sum()
}
