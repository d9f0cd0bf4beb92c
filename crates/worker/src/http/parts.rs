//! Calls that are too large for one request, in parts that are not.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// What stands around the items of a request, at most.
const FRAME: usize = 64;

/// The items of a request, written, in parts of at most so many items and so many bytes. One that is larger by itself is
/// a part by itself: the server says what it thinks of it.
pub(super) fn parts<T: Serialize>(
    items: impl IntoIterator<Item = T>,
    most: usize,
    bytes: usize,
) -> serde_json::Result<Vec<Vec<Box<RawValue>>>> {
    let mut parts: Vec<Vec<Box<RawValue>>> = Vec::new();
    let mut size = FRAME;
    for item in items {
        let item = to_raw_value(&item)?;
        let length = item.get().len() + 1;
        match parts.last_mut() {
            Some(part) if part.len() < most && size + length <= bytes => {
                part.push(item);
                size += length;
            }
            _ => {
                parts.push(vec![item]);
                size = FRAME + length;
            }
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(items: &[&str], most: usize, bytes: usize) -> Vec<usize> {
        parts(items, most, bytes).unwrap().iter().map(Vec::len).collect()
    }

    #[test]
    fn parts_keep_to_both_limits_and_lose_nothing() {
        assert_eq!(sizes(&[], 2, 1_000), [0; 0]);
        assert_eq!(sizes(&["a"; 5], 2, 1_000), [2, 2, 1]);
        // Each is four bytes with its quotes and its comma.
        assert_eq!(sizes(&["a"; 5], 100, FRAME + 8), [2, 2, 1]);
        assert_eq!(sizes(&["a", "far too long for any part of this size", "b"], 100, FRAME + 8), [1, 1, 1]);
        // What is written counts, not what is meant.
        assert_eq!(sizes(&["\u{1}"; 2], 100, FRAME + 12), [1, 1]);
    }
}
