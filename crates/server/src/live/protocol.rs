//! Keys of browsers. A page cannot set headers on a WebSocket, but it can name protocols that it speaks:
//! `new WebSocket(url, ["orchestrix", "orchestrix.key." + KEY])`. What stands there as a key is a key as good as one in the header for it, and
//! is taken out of the list, so that nobody further on sees it, writes it down or answers with it.

use axum::http::{HeaderMap, HeaderValue, header};

/// What is answered to whoever names protocols.
pub(super) const PROTOCOL: &str = "orchestrix";
const KEY: &str = "orchestrix.key.";

/// Puts a key that stands among the protocols where keys are looked for. Beside another one it is one too many, as anywhere.
pub(crate) fn take_key(headers: &mut HeaderMap) {
    if !headers.contains_key(header::UPGRADE) || !headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL) {
        return;
    }
    let mut keys = Vec::new();
    let mut others = Vec::new();
    for value in headers.get_all(header::SEC_WEBSOCKET_PROTOCOL) {
        for name in value.to_str().unwrap_or_default().split(',').map(str::trim) {
            match name.strip_prefix(KEY) {
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
        // It came out of a header, so it fits into one.
        if let Ok(mut key) = HeaderValue::try_from(key) {
            key.set_sensitive(true);
            headers.append(header::AUTHORIZATION, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(before: &[(header::HeaderName, &'static str)]) -> (Vec<String>, Vec<String>) {
        let mut headers = HeaderMap::new();
        for (name, value) in before {
            headers.append(name.clone(), HeaderValue::from_static(value));
        }
        take_key(&mut headers);
        let all = |name| headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect();
        (all(header::AUTHORIZATION), all(header::SEC_WEBSOCKET_PROTOCOL))
    }

    #[test]
    fn a_key_among_the_protocols_is_moved_and_nothing_of_it_is_left_there() {
        let upgrade = (header::UPGRADE, "websocket");
        let named = |text| (header::SEC_WEBSOCKET_PROTOCOL, text);
        let one = taken(&[upgrade.clone(), named("orchestrix, orchestrix.key.ox_a_b")]);
        assert_eq!(one, (vec!["Bearer ox_a_b".into()], vec!["orchestrix".into()]));
        let two = taken(&[upgrade.clone(), named("orchestrix.key.a"), named("orchestrix"), named("orchestrix.key.b")]);
        assert_eq!(two, (vec!["Bearer a".into(), "Bearer b".into()], vec!["orchestrix".into()]), "which one counts?");
        let both = taken(&[upgrade.clone(), (header::AUTHORIZATION, "Bearer a"), named("orchestrix.key.b")]);
        assert_eq!(both.0, ["Bearer a", "Bearer b"]);
        let none = taken(&[upgrade, named("orchestrix, other")]);
        assert_eq!(none, (vec![], vec!["orchestrix, other".into()]));
        assert_eq!(taken(&[named("orchestrix.key.a")]).0, Vec::<String>::new(), "only where a WebSocket is asked for");
    }
}
