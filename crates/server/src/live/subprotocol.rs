//! API keys of web pages. A page cannot set headers on a WebSocket, but it can name subprotocols: `new WebSocket(url,
//! ["orchestrix", "orchestrix.key." + KEY])`. The key is moved to the `Authorization` header before authentication,
//! and removed from the subprotocols, so that it is neither logged nor echoed in the response.

use axum::http::{HeaderMap, HeaderValue, header};

/// The subprotocol that the server selects.
pub(super) const SUBPROTOCOL: &str = "orchestrix";
const KEY_PREFIX: &str = "orchestrix.key.";

/// Moves a key from the subprotocols to the `Authorization` header. A request with two keys is rejected later, like
/// any other.
pub(crate) fn extract_key(headers: &mut HeaderMap) {
    if !headers.contains_key(header::UPGRADE) || !headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL) {
        return;
    }
    let mut keys = Vec::new();
    let mut others = Vec::new();
    for value in headers.get_all(header::SEC_WEBSOCKET_PROTOCOL) {
        for name in value.to_str().unwrap_or_default().split(',').map(str::trim) {
            match name.strip_prefix(KEY_PREFIX) {
                Some(key) => keys.push(format!("Bearer {key}")),
                None => others.push(name.to_owned()),
            }
        }
    }
    if keys.is_empty() {
        return;
    }
    headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
    if let Ok(others) = HeaderValue::try_from(others.join(", ")) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, others);
    }
    for key in keys {
        // A part of a header value is a valid header value.
        if let Ok(mut key) = HeaderValue::try_from(key) {
            key.set_sensitive(true);
            headers.append(header::AUTHORIZATION, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract(before: &[(header::HeaderName, &'static str)]) -> (Vec<String>, Vec<String>) {
        let mut headers = HeaderMap::new();
        for (name, value) in before {
            headers.append(name.clone(), HeaderValue::from_static(value));
        }
        extract_key(&mut headers);
        let all = |name| headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect();
        (all(header::AUTHORIZATION), all(header::SEC_WEBSOCKET_PROTOCOL))
    }

    #[test]
    fn a_key_is_moved_from_the_subprotocols_to_the_authorization_header() {
        let upgrade = (header::UPGRADE, "websocket");
        let subprotocols = |text| (header::SEC_WEBSOCKET_PROTOCOL, text);
        let one = extract(&[upgrade.clone(), subprotocols("orchestrix, orchestrix.key.ox_a_b")]);
        assert_eq!(one, (vec!["Bearer ox_a_b".into()], vec!["orchestrix".into()]));
        let two = extract(&[
            upgrade.clone(),
            subprotocols("orchestrix.key.a"),
            subprotocols("orchestrix"),
            subprotocols("orchestrix.key.b"),
        ]);
        assert_eq!(
            two,
            (vec!["Bearer a".into(), "Bearer b".into()], vec!["orchestrix".into()]),
            "both keys are passed on, and authentication rejects them"
        );
        let both = extract(&[upgrade.clone(), (header::AUTHORIZATION, "Bearer a"), subprotocols("orchestrix.key.b")]);
        assert_eq!(both.0, ["Bearer a", "Bearer b"]);
        let none = extract(&[upgrade, subprotocols("orchestrix, other")]);
        assert_eq!(none, (vec![], vec!["orchestrix, other".into()]));
        assert_eq!(extract(&[subprotocols("orchestrix.key.a")]).0, Vec::<String>::new(), "only in a WebSocket upgrade");
    }
}
