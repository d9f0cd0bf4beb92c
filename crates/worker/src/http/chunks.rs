//! Splitting a call that is too large for one request.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The maximum size of the JSON around the items of a request.
const ENVELOPE: usize = 64;

/// Serializes `items` and splits them into requests of at most `max_items` items and `max_bytes` bytes. A larger item
/// gets a request of its own, which the server may refuse.
pub(super) fn split_into_requests<T: Serialize>(
    items: impl IntoIterator<Item = T>,
    max_items: usize,
    max_bytes: usize,
) -> serde_json::Result<Vec<Vec<Box<RawValue>>>> {
    let mut requests: Vec<Vec<Box<RawValue>>> = Vec::new();
    let mut size = ENVELOPE;
    for item in items {
        let item = to_raw_value(&item)?;
        let length = item.get().len() + 1;
        match requests.last_mut() {
            Some(request) if request.len() < max_items && size + length <= max_bytes => {
                request.push(item);
                size += length;
            }
            _ => {
                requests.push(vec![item]);
                size = ENVELOPE + length;
            }
        }
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(items: &[&str], max_items: usize, max_bytes: usize) -> Vec<usize> {
        split_into_requests(items, max_items, max_bytes).unwrap().iter().map(Vec::len).collect()
    }

    #[test]
    fn requests_keep_both_limits_and_lose_no_item() {
        assert_eq!(sizes(&[], 2, 1_000), [0; 0]);
        assert_eq!(sizes(&["a"; 5], 2, 1_000), [2, 2, 1]);
        // Each item takes four bytes, with its quotes and its comma.
        assert_eq!(sizes(&["a"; 5], 100, ENVELOPE + 8), [2, 2, 1]);
        assert_eq!(sizes(&["a", "far too long for any request of this size", "b"], 100, ENVELOPE + 8), [1, 1, 1]);
        // The serialized size counts: a control character is escaped.
        assert_eq!(sizes(&["\u{1}"; 2], 100, ENVELOPE + 12), [1, 1]);
    }
}
