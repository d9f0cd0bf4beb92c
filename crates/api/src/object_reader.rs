//! Reads a JSON object field by field and reports every invalid, missing and unknown field, not only the first.

use std::{borrow::Cow, fmt, time::Duration};

use jiff::fmt::temporal::Pieces;
use orchestrix_core::{FieldError, Invalid, Timestamp};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// The most fields an object of a request may have. No request type defines half as many.
pub const MAX_FIELDS: usize = 64;
/// The deepest nesting of arrays and objects.
pub const MAX_DEPTH: usize = 128;
/// The extra nesting of a job inside a batch, so that a payload valid in `POST /jobs` is also valid in a batch.
const BATCH_DEPTH: usize = 2;
/// The most errors recorded for one object. Bounds the memory that a hostile body can use.
pub const MAX_ERRORS: usize = 100;

/// The text is not a JSON object, so no field can be checked.
///
/// The message is a predicate without a subject, such as `is not JSON`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedJson(pub String);

impl fmt::Display for MalformedJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MalformedJson {}

/// Reads the fields of one JSON object and collects errors.
///
/// Each accessor removes its field. [`ObjectReader::finish`] reports the fields that remain as unknown.
#[derive(Debug)]
pub struct ObjectReader<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    errors: Vec<FieldError>,
}

impl<'a> ObjectReader<'a> {
    /// Parses a JSON object. The caller has bounded only the size of the text.
    pub fn parse(text: &'a str) -> Result<Self, MalformedJson> {
        Self::parse_to_depth(text, MAX_DEPTH)
    }

    /// Parses a JSON object that holds an array of such objects.
    pub fn parse_batch(text: &'a str) -> Result<Self, MalformedJson> {
        Self::parse_to_depth(text, MAX_DEPTH + BATCH_DEPTH)
    }

    fn parse_to_depth(text: &'a str, depth: usize) -> Result<Self, MalformedJson> {
        check_depth(text, depth)?;
        let Fields(fields) = serde_json::from_str(text).map_err(|error| match error.classify() {
            _ if text.trim_start().is_empty() => MalformedJson("is empty and must be a JSON object".into()),
            serde_json::error::Category::Data if !text.trim_start().starts_with('{') => {
                MalformedJson("must be a JSON object".into())
            }
            serde_json::error::Category::Data => MalformedJson(error.to_string()),
            _ => MalformedJson(format!("is not JSON: {error}")),
        })?;
        Ok(Self { fields, errors: Vec::new() })
    }

    /// Returns the elements of an array of at most `max` elements.
    pub fn array(&mut self, field: &str, max: usize) -> Option<Vec<&'a RawValue>> {
        let raw = self.take(field)?;
        let mut reader = serde_json::Deserializer::from_str(raw.get());
        match (BoundedArray { max }).deserialize(&mut reader) {
            Ok(Some(elements)) => return Some(elements),
            Ok(None) => self.add_error(field, format!("must have at most {max} elements")),
            Err(_) => self.add_error(field, "must be an array"),
        }
        None
    }

    /// Reads an array of at most `max` objects. Errors carry the index, such as `jobs[3].queue`.
    ///
    /// Stops at [`MAX_ERRORS`] errors.
    pub fn objects<T>(
        &mut self,
        field: &str,
        max: usize,
        read: impl Fn(ObjectReader<'a>) -> Result<T, Invalid>,
    ) -> Option<Vec<T>> {
        let items = self.array(field, max)?;
        let mut all = Vec::with_capacity(items.len());
        for (i, item) in items.into_iter().enumerate() {
            let path = format!("{field}[{i}]");
            match serde_json::from_str(item.get()) {
                Ok(Fields(fields)) => match read(ObjectReader { fields, errors: Vec::new() }) {
                    Ok(value) => all.push(value),
                    Err(invalid) => self.add_nested_errors(&path, Err(invalid)),
                },
                Err(_) => self.add_error(&path, "must be an object without repeated fields"),
            }
            if self.errors.len() == MAX_ERRORS {
                break;
            }
        }
        Some(all)
    }

    /// Removes and returns all remaining fields.
    pub fn take_remaining(&mut self) -> Vec<(Cow<'a, str>, &'a RawValue)> {
        std::mem::take(&mut self.fields)
    }

    /// Returns a reader of a nested object.
    ///
    /// Pass the result of its [`ObjectReader::finish`] to [`ObjectReader::add_nested_errors`].
    pub fn object(&mut self, field: &str) -> Option<ObjectReader<'a>> {
        let raw = self.take(field)?;
        match serde_json::from_str(raw.get()) {
            Ok(Fields(fields)) => Some(ObjectReader { fields, errors: Vec::new() }),
            Err(_) => {
                self.add_error(field, "must be an object");
                None
            }
        }
    }

    /// Adds the errors of the nested object in `field`.
    pub fn add_nested_errors(&mut self, field: &str, inner: Result<(), Invalid>) {
        if let Err(invalid) = inner {
            for error in invalid.within(field).errors {
                self.add_error(&error.field, error.message);
            }
        }
    }

    /// Removes a field and returns its JSON. `null` counts as absent.
    pub fn take(&mut self, field: &str) -> Option<&'a RawValue> {
        self.take_nullable(field).filter(|raw| raw.get() != "null")
    }

    /// Removes a field whose value is `null`. Returns whether there was one.
    pub fn take_null(&mut self, field: &str) -> bool {
        let at = self.fields.iter().position(|(name, raw)| name == field && raw.get() == "null");
        at.map(|at| self.fields.swap_remove(at)).is_some()
    }

    /// Removes a field in which `null` is a value and returns its JSON.
    pub fn take_nullable(&mut self, field: &str) -> Option<&'a RawValue> {
        let at = self.fields.iter().position(|(name, _)| name == field)?;
        Some(self.fields.swap_remove(at).1)
    }

    /// Records an error of a field.
    pub fn add_error(&mut self, field: &str, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(FieldError::new(field, message));
        }
    }

    /// Whether no error has been recorded.
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether an error has been recorded for this field.
    pub fn has_error(&self, field: &str) -> bool {
        self.errors.iter().any(|error| error.field == field)
    }

    /// Deserializes a field. `expected` describes the type for the error message, such as `a number`.
    ///
    /// A field of an integer type accepts `3`, `3.0` and `3e0`, because some languages have one number type only.
    pub fn get<T: DeserializeOwned>(&mut self, field: &str, expected: &str) -> Option<T> {
        let raw = self.take(field)?;
        let read = |text: &str| serde_json::from_str(text).ok();
        let value = read(raw.get()).or_else(|| read(&parse_integer(raw.get())?.to_string()));
        if value.is_none() {
            self.add_error(field, format!("must be {expected}"));
        }
        value
    }

    /// Reads an integer.
    pub fn integer(&mut self, field: &str) -> Option<i64> {
        self.get(field, "an integer")
    }

    /// Reads a string and parses it with `parse`, whose error message is recorded.
    pub fn string<T>(&mut self, field: &str, parse: impl FnOnce(&str) -> Result<T, FieldError>) -> Option<T> {
        let text: String = self.get(field, "a string")?;
        self.record(field, parse(&text))
    }

    /// Reads an array of at most `max` strings and parses each with `parse`.
    pub fn strings<T>(
        &mut self,
        field: &str,
        max: usize,
        parse: impl Fn(&str) -> Result<T, FieldError>,
    ) -> Option<Vec<T>> {
        let texts = self.array(field, max)?;
        let mut all = Vec::with_capacity(texts.len());
        for (i, raw) in texts.into_iter().enumerate() {
            let text = serde_json::from_str::<Cow<'_, str>>(raw.get());
            let text = text.map_err(|_| FieldError::new("", "must be a string"));
            match text.and_then(|text| parse(&text)) {
                Ok(value) => all.push(value),
                Err(error) => self.add_error(&format!("{field}[{i}]"), error.message),
            }
        }
        Some(all)
    }

    /// Reads an RFC 3339 time.
    pub fn time(&mut self, field: &str) -> Option<Timestamp> {
        self.string(field, parse_time)
    }

    /// Reads a number of seconds.
    pub fn seconds(&mut self, field: &str) -> Option<Duration> {
        let seconds: f64 = self.get(field, "a number of seconds")?;
        let duration = Duration::try_from_secs_f64(seconds).map_err(|_| match seconds < 0.0 {
            true => FieldError::new("", "must be a number of seconds and not negative"),
            false => FieldError::new("", "is too large for a number of seconds"),
        });
        self.record(field, duration)
    }

    /// Returns the value, or records the error under this field.
    pub fn record<T>(&mut self, field: &str, result: Result<T, FieldError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add_error(field, error.message);
                None
            }
        }
    }

    /// Records an error if a required field is absent, and returns the value.
    ///
    /// A field that already has an error is not reported as missing too.
    pub fn required<T>(&mut self, field: &str, value: Option<T>) -> Option<T> {
        if value.is_none() && !self.has_error(field) {
            self.add_error(field, "is required");
        }
        value
    }

    /// Reports all errors. Every remaining field is an unknown field.
    pub fn finish(mut self) -> Result<(), Invalid> {
        for (name, _) in self.take_remaining() {
            self.add_error(&truncate_name(&name), "is not known");
        }
        Invalid::check(self.errors)
    }
}

// A well-formed time outside the supported range gets the bound in its error message.
fn parse_time(text: &str) -> Result<Timestamp, FieldError> {
    text.parse().map_err(|_| {
        let pieces = Pieces::parse(text).ok().filter(|pieces| pieces.time().is_some() && pieces.offset().is_some());
        let rule = match pieces.map(|pieces| pieces.date().year()) {
            Some(year) if year > 0 => format!("must not be later than {:.0}", Timestamp::MAX),
            Some(_) => format!("must not be earlier than {:.0}", Timestamp::MIN),
            None => "must be a time such as 2026-01-01T09:00:00Z".into(),
        };
        FieldError::new("", rule)
    })
}

// Accepts integers up to 2^53, which doubles represent exactly.
fn parse_integer(text: &str) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number: f64 = serde_json::from_str(text).ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

/// Truncates a field name for an error message: a client can send any name.
pub fn truncate_name(name: &str) -> String {
    match name.char_indices().nth(64) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Rejects a text that is nested too deeply before parsing it.
fn check_depth(text: &str, max: usize) -> Result<(), MalformedJson> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                if depth > max {
                    return Err(MalformedJson(format!("is nested more than {max} levels deep")));
                }
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut fields: Self::Value = Vec::new();
                while let Some((FieldName(name), value)) = map.next_entry::<FieldName<'de>, &RawValue>()? {
                    if fields.iter().any(|(known, _)| *known == name) {
                        return Err(de::Error::custom(format!("has the field {:?} twice", truncate_name(&name))));
                    }
                    if fields.len() == MAX_FIELDS {
                        return Err(de::Error::custom(format!("has more than {MAX_FIELDS} fields")));
                    }
                    fields.push((name, value));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor).map(Fields)
    }
}

// Deserializes an array of at most `max` elements, or `None` if it has more. Keeps no element past the limit.
struct BoundedArray {
    max: usize,
}

impl<'de> DeserializeSeed<'de> for BoundedArray {
    type Value = Option<Vec<&'de RawValue>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for BoundedArray {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(element) = elements.next_element()? {
            if all.len() == self.max {
                // The deserializer must reach the end of the array.
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            all.push(element);
        }
        Ok(Some(all))
    }
}

// Borrows names without escapes. A plain `Cow` always copies.
#[derive(Deserialize)]
#[serde(transparent)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str, read: impl FnOnce(&mut ObjectReader<'_>)) -> Vec<(String, String)> {
        let mut object = ObjectReader::parse(text).unwrap();
        read(&mut object);
        let errors = object.finish().err().map_or_else(Vec::new, |invalid| invalid.errors);
        errors.into_iter().map(|error| (error.field, error.message)).collect()
    }

    #[test]
    fn every_error_is_reported_at_once() {
        let text = r#"{"a": 1, "b": "x", "c": -1, "d": [1], "n": null, "x": {}}"#;
        let errors = errors(text, |object| {
            object.string("a", |text| Ok(text.len()));
            object.get::<f64>("b", "a number");
            object.seconds("c");
            object.strings("d", 9, |text| Ok(text.len()));
            assert_eq!(object.get::<f64>("n", "a number"), None);
            let needed = object.get::<f64>("needed", "a number");
            object.required("needed", needed);
        });
        let fields: Vec<&str> = errors.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, ["a", "b", "c", "d[0]", "needed", "x"]);
    }

    #[test]
    fn a_text_that_is_not_an_object_has_a_readable_error() {
        for (text, expected) in [
            ("[]", "must be a JSON object"),
            (" null", "must be a JSON object"),
            (r#""{}""#, "must be a JSON object"),
            ("3", "must be a JSON object"),
            ("", "is empty and must be a JSON object"),
            (" \n", "is empty and must be a JSON object"),
        ] {
            assert_eq!(ObjectReader::parse(text).unwrap_err().0, expected, "{text}");
        }
        for text in ["{", "hello", "{}{}"] {
            assert!(ObjectReader::parse(text).unwrap_err().0.starts_with("is not JSON: "), "{text}");
        }
        assert!(ObjectReader::parse(r#"{"a": 1, "a": 2}"#).unwrap_err().0.starts_with(r#"has the field "a" twice"#));
    }

    #[test]
    fn times_and_durations_out_of_range_name_the_bound() {
        let too_late = "must not be later than 9999-12-30T22:00:00Z";
        let not_a_time = "must be a time such as 2026-01-01T09:00:00Z";
        for (text, expected) in [
            ("9999-12-31T23:59:59Z", too_late),
            ("9999-12-31T00:00:00+01:00", too_late),
            ("-009999-01-01T00:00:00Z", "must not be earlier than -009999-01-02T01:59:59Z"),
            ("10000-01-01T00:00:00Z", not_a_time),
            ("2026-01-01", not_a_time),
            ("2026-01-01T09:00:00", not_a_time),
            ("2026-02-30T09:00:00Z", not_a_time),
            ("yesterday", not_a_time),
        ] {
            assert_eq!(parse_time(text).unwrap_err().message, expected, "{text}");
        }
        assert_eq!(parse_time("9999-12-30T22:00:00Z").unwrap().as_second(), Timestamp::MAX.as_second());
        let errors = errors(r#"{"a": 1e300, "b": -1e300, "c": -1}"#, |object| {
            assert_eq!([object.seconds("a"), object.seconds("b"), object.seconds("c")], [None; 3]);
        });
        let messages: Vec<&str> = errors.iter().map(|(_, message)| message.as_str()).collect();
        let negative = "must be a number of seconds and not negative";
        assert_eq!(messages, ["is too large for a number of seconds", negative, negative]);
    }

    #[test]
    fn huge_arrays_produce_a_bounded_number_of_errors() {
        let many = format!(r#"{{"a": [{}"x"]}}"#, r#""","#.repeat(1_000_000));
        let reject = |_: &str| Err::<(), _>(FieldError::new("", "is invalid"));
        assert_eq!(
            errors(&many, |object| {
                object.strings("a", 5, reject);
            }),
            [("a".to_owned(), "must have at most 5 elements".to_owned())]
        );
        let recorded = errors(&many, |object| {
            object.strings("a", 2_000_000, reject);
        });
        assert_eq!(recorded.len(), MAX_ERRORS);
    }

    #[test]
    fn integers_are_accepted_in_every_json_spelling() {
        let errors = errors(r#"{"a": 3.0, "b": 3e2, "c": -0.0, "d": 3.5, "e": 1e300, "f": "3.0"}"#, |object| {
            assert_eq!(object.get::<u8>("a", "an integer"), Some(3));
            assert_eq!(object.get::<u16>("b", "an integer"), Some(300));
            assert_eq!(object.get::<u64>("c", "an integer"), Some(0));
            for field in ["d", "e", "f"] {
                assert_eq!(object.get::<i64>(field, "an integer"), None);
            }
        });
        assert_eq!(errors.len(), 3, "{errors:?}");
    }

    #[test]
    fn an_invalid_required_field_is_not_reported_as_missing() {
        let errors = errors(r#"{"a": 1}"#, |object| {
            let a = object.string("a", |text| Ok(text.len()));
            object.required("a", a);
        });
        assert_eq!(errors, [("a".to_owned(), "must be a string".to_owned())]);
    }

    #[test]
    fn texts_that_are_not_objects_are_malformed() {
        for text in ["", "{", "[]", "1", "nul", r#"{"a": 1, "a": 2}"#, r#"{"a" 1}"#, "{}{}", "{\"\\ud800\": 1}"] {
            assert!(ObjectReader::parse(text).is_err(), "{text}");
        }
        let many = (0..100).map(|n| format!("\"f{n}\": 1")).collect::<Vec<_>>().join(",");
        assert!(ObjectReader::parse(&format!("{{{many}}}")).is_err());
    }

    #[test]
    fn nesting_is_bounded_and_brackets_in_strings_do_not_count() {
        let nested = |depth: usize| format!("{{\"a\": {}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert!(ObjectReader::parse(&nested(MAX_DEPTH)).is_ok());
        assert!(ObjectReader::parse(&nested(MAX_DEPTH + 1)).is_err());
        let many = |depth: usize| format!("{{\"all\": [{}]}}", nested(depth));
        assert!(ObjectReader::parse_batch(&many(MAX_DEPTH)).is_ok());
        assert!(ObjectReader::parse_batch(&many(MAX_DEPTH + 1)).is_err());
        assert!(ObjectReader::parse(&format!(r#"{{"a": "{}\"{}"}}"#, "[".repeat(500), "[".repeat(500))).is_ok());
        // Unclosed brackets are rejected by the depth check and do not overflow the stack.
        assert!(ObjectReader::parse(&"[".repeat(5_000_000)).is_err());
    }
}
