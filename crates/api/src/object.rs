//! Reading a JSON object field by field: every bad, missing and unknown field is named, not only the first.

use std::{borrow::Cow, fmt, time::Duration};

use jiff::fmt::temporal::Pieces;
use orchestrix_core::{FieldError, Invalid, Timestamp};
use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// The most fields that an object of a request may have; no request knows half as many.
pub const MAX_FIELDS: usize = 64;
/// How deep arrays and objects may lie in each other.
pub const MAX_DEPTH: usize = 128;
/// How much deeper a job of a batch lies than one alone: what is taken alone is taken there.
const BATCH_DEPTH: usize = 2;
/// The most bad fields that are noted of one object; what comes after them is not worth the memory.
pub const MAX_ERRORS: usize = 100;

/// A text that is not JSON, or not JSON of the kind that is read here; nothing can be said about its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// An object that is being read.
#[derive(Debug)]
pub struct Object<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    errors: Vec<FieldError>,
}

impl<'a> Object<'a> {
    /// Takes a text apart. Nothing but its size in memory has been bounded before.
    pub fn read(text: &'a str) -> Result<Self, Malformed> {
        Self::read_to(text, MAX_DEPTH)
    }

    /// The same of a text with many such objects in an array.
    pub fn read_many(text: &'a str) -> Result<Self, Malformed> {
        Self::read_to(text, MAX_DEPTH + BATCH_DEPTH)
    }

    fn read_to(text: &'a str, depth: usize) -> Result<Self, Malformed> {
        check_depth(text, depth)?;
        let Fields(fields) = serde_json::from_str(text).map_err(|error| match error.classify() {
            // The words go behind «the body».
            _ if text.trim_start().is_empty() => Malformed("is empty, and must be a JSON object".into()),
            serde_json::error::Category::Data if !text.trim_start().starts_with('{') => {
                Malformed("must be a JSON object".into())
            }
            serde_json::error::Category::Data => Malformed(error.to_string()),
            _ => Malformed(format!("is not JSON: {error}")),
        })?;
        Ok(Self { fields, errors: Vec::new() })
    }

    /// The elements of an array of at most `most`.
    pub fn array(&mut self, field: &str, most: usize) -> Option<Vec<&'a RawValue>> {
        let raw = self.take(field)?;
        let mut reader = serde_json::Deserializer::from_str(raw.get());
        match AtMost(most).deserialize(&mut reader) {
            Ok(Some(elements)) => return Some(elements),
            Ok(None) => self.bad(field, format!("may hold at most {most}")),
            Err(_) => self.bad(field, "must be an array"),
        }
        None
    }

    /// Reads every object of an array of at most `most`. What is wrong is noted with its place, until that is enough.
    pub fn each<T>(
        &mut self,
        field: &str,
        most: usize,
        read: impl Fn(Object<'a>) -> Result<T, Invalid>,
    ) -> Option<Vec<T>> {
        let items = self.array(field, most)?;
        let mut all = Vec::with_capacity(items.len());
        for (i, item) in items.into_iter().enumerate() {
            let place = format!("{field}[{i}]");
            match serde_json::from_str(item.get()) {
                Ok(Fields(fields)) => match read(Object { fields, errors: Vec::new() }) {
                    Ok(value) => all.push(value),
                    Err(invalid) => self.take_in(&place, Err(invalid)),
                },
                Err(_) => self.bad(&place, "must be an object, with every field once"),
            }
            if self.errors.len() == MAX_ERRORS {
                break;
            }
        }
        Some(all)
    }

    /// Whatever nobody has asked for yet, by name.
    pub fn take_rest(&mut self) -> Vec<(Cow<'a, str>, &'a RawValue)> {
        std::mem::take(&mut self.fields)
    }

    /// The object in one of its fields, if there is one. What is wrong in it is told to [`Object::take_in`].
    pub fn object(&mut self, field: &str) -> Option<Object<'a>> {
        let raw = self.take(field)?;
        match serde_json::from_str(raw.get()) {
            Ok(Fields(fields)) => Some(Object { fields, errors: Vec::new() }),
            Err(_) => {
                self.bad(field, "must be an object");
                None
            }
        }
    }

    /// Adds what was wrong with the object in `field`.
    pub fn take_in(&mut self, field: &str, inner: Result<(), Invalid>) {
        if let Err(invalid) = inner {
            for error in invalid.within(field).errors {
                self.bad(&error.field, error.message);
            }
        }
    }

    /// Takes out the text of a field. Absent and `null` are the same.
    pub fn take(&mut self, field: &str) -> Option<&'a RawValue> {
        self.take_even_null(field).filter(|raw| raw.get() != "null")
    }

    /// Takes out the text of a field in which `null` means something.
    pub fn take_even_null(&mut self, field: &str) -> Option<&'a RawValue> {
        let at = self.fields.iter().position(|(name, _)| name == field)?;
        Some(self.fields.swap_remove(at).1)
    }

    /// Notes what is wrong with a field.
    pub fn bad(&mut self, field: &str, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(FieldError::new(field, message));
        }
    }

    /// Whether nothing is wrong so far.
    pub fn is_good(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether anything is wrong with this field.
    pub fn is_bad(&self, field: &str) -> bool {
        self.errors.iter().any(|error| error.field == field)
    }

    /// A field of a plain type, which `expected` describes, such as `a number`. A whole number may be spelled as any other:
    /// `3`, `3.0` and `3e0` are the same in JSON, and some languages know only one kind of number.
    pub fn get<T: DeserializeOwned>(&mut self, field: &str, expected: &str) -> Option<T> {
        let raw = self.take(field)?;
        let read = |text: &str| serde_json::from_str(text).ok();
        let value = read(raw.get()).or_else(|| read(&whole(raw.get())?.to_string()));
        if value.is_none() {
            self.bad(field, format!("must be {expected}"));
        }
        value
    }

    /// A whole number.
    pub fn whole(&mut self, field: &str) -> Option<i64> {
        self.get(field, "a whole number")
    }

    /// A text that is read further, with the message of whoever reads it.
    pub fn text<T>(&mut self, field: &str, read: impl FnOnce(&str) -> Result<T, FieldError>) -> Option<T> {
        let text: String = self.get(field, "a string")?;
        self.keep(field, read(&text))
    }

    /// Several texts, at most `most`.
    pub fn texts<T>(
        &mut self,
        field: &str,
        most: usize,
        read: impl Fn(&str) -> Result<T, FieldError>,
    ) -> Option<Vec<T>> {
        let texts = self.array(field, most)?;
        let mut all = Vec::with_capacity(texts.len());
        for (i, raw) in texts.into_iter().enumerate() {
            let text = serde_json::from_str::<Cow<'_, str>>(raw.get());
            let text = text.map_err(|_| FieldError::new("", "must be a string"));
            match text.and_then(|text| read(&text)) {
                Ok(value) => all.push(value),
                Err(error) => self.bad(&format!("{field}[{i}]"), error.message),
            }
        }
        Some(all)
    }

    /// A time, RFC 3339.
    pub fn time(&mut self, field: &str) -> Option<Timestamp> {
        self.text(field, read_time)
    }

    /// A number of seconds.
    pub fn seconds(&mut self, field: &str) -> Option<Duration> {
        let seconds: f64 = self.get(field, "a number of seconds")?;
        let duration = Duration::try_from_secs_f64(seconds).map_err(|_| match seconds < 0.0 {
            true => FieldError::new("", "must be a number of seconds, not negative"),
            false => FieldError::new("", "is too large for a number of seconds"),
        });
        self.keep(field, duration)
    }

    /// Takes what was read, or notes under this field why it was not.
    pub fn keep<T>(&mut self, field: &str, read: Result<T, FieldError>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                self.bad(field, error.message);
                None
            }
        }
    }

    /// Notes that a field is missing, if it is, and hands it on.
    pub fn required<T>(&mut self, field: &str, value: Option<T>) -> Option<T> {
        if value.is_none() && !self.is_bad(field) {
            self.bad(field, "is required");
        }
        value
    }

    /// Ends the reading: every field that nobody asked for is a mistake too.
    pub fn end(mut self) -> Result<(), Invalid> {
        for (name, _) in self.take_rest() {
            self.bad(&shortened(&name), "is not known");
        }
        Invalid::check(self.errors)
    }
}

// What is a time, but beyond what can be held, is told how far times go.
fn read_time(text: &str) -> Result<Timestamp, FieldError> {
    text.parse().map_err(|_| {
        let read = Pieces::parse(text).ok().filter(|read| read.time().is_some() && read.offset().is_some());
        let rule = match read.map(|read| read.date().year()) {
            Some(year) if year > 0 => format!("must not be later than {:.0}", Timestamp::MAX),
            Some(_) => format!("must not be earlier than {:.0}", Timestamp::MIN),
            None => "must be a time such as 2026-01-01T09:00:00Z".into(),
        };
        FieldError::new("", rule)
    })
}

// As far as doubles tell whole numbers apart.
fn whole(text: &str) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number: f64 = serde_json::from_str(text).ok()?;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

/// The name of a field as an answer repeats it: it may be called anything, and only so much of that is told.
pub fn shortened(name: &str) -> String {
    match name.char_indices().nth(64) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Refuses what is nested too deeply, before anything is built of it.
fn check_depth(text: &str, most: usize) -> Result<(), Malformed> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                if depth > most {
                    return Err(Malformed(format!("is nested more than {most} deep")));
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
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut fields: Self::Value = Vec::new();
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &RawValue>()? {
                    if fields.iter().any(|(known, _)| *known == name) {
                        return Err(de::Error::custom(format!("has the field {:?} twice", shortened(&name))));
                    }
                    if fields.len() == MAX_FIELDS {
                        return Err(de::Error::custom(format!("has more than {MAX_FIELDS} fields")));
                    }
                    fields.push((name, value));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Each).map(Fields)
    }
}

// An array that is not read further than it may be long.
struct AtMost(usize);

impl<'de> DeserializeSeed<'de> for AtMost {
    type Value = Option<Vec<&'de RawValue>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for AtMost {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(element) = elements.next_element()? {
            if all.len() == self.0 {
                // That it is JSON to its end is known.
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            all.push(element);
        }
        Ok(Some(all))
    }
}

// Borrowed unless it has escapes, which a plain `Cow` would always copy.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str, read: impl FnOnce(&mut Object<'_>)) -> Vec<(String, String)> {
        let mut object = Object::read(text).unwrap();
        read(&mut object);
        let errors = object.end().err().map_or_else(Vec::new, |invalid| invalid.errors);
        errors.into_iter().map(|error| (error.field, error.message)).collect()
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let text = r#"{"a": 1, "b": "x", "c": -1, "d": [1], "n": null, "x": {}}"#;
        let errors = errors(text, |object| {
            object.text("a", |text| Ok(text.len()));
            object.get::<f64>("b", "a number");
            object.seconds("c");
            object.texts("d", 9, |text| Ok(text.len()));
            assert_eq!(object.get::<f64>("n", "a number"), None);
            let needed = object.get::<f64>("needed", "a number");
            object.required("needed", needed);
        });
        let fields: Vec<&str> = errors.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(fields, ["a", "b", "c", "d[0]", "needed", "x"]);
    }

    #[test]
    fn what_is_no_object_is_told_in_a_sentence() {
        for (text, told) in [
            ("[]", "must be a JSON object"),
            (" null", "must be a JSON object"),
            (r#""{}""#, "must be a JSON object"),
            ("3", "must be a JSON object"),
            ("", "is empty, and must be a JSON object"),
            (" \n", "is empty, and must be a JSON object"),
        ] {
            assert_eq!(Object::read(text).unwrap_err().0, told, "{text}");
        }
        for text in ["{", "hello", "{}{}"] {
            assert!(Object::read(text).unwrap_err().0.starts_with("is not JSON: "), "{text}");
        }
        assert!(Object::read(r#"{"a": 1, "a": 2}"#).unwrap_err().0.starts_with(r#"has the field "a" twice"#));
    }

    #[test]
    fn a_time_or_a_number_that_is_too_large_is_told_so() {
        let far = "must not be later than 9999-12-30T22:00:00Z";
        let none = "must be a time such as 2026-01-01T09:00:00Z";
        for (text, told) in [
            ("9999-12-31T23:59:59Z", far),
            ("9999-12-31T00:00:00+01:00", far),
            ("-009999-01-01T00:00:00Z", "must not be earlier than -009999-01-02T01:59:59Z"),
            ("10000-01-01T00:00:00Z", none),
            ("2026-01-01", none),
            ("2026-01-01T09:00:00", none),
            ("2026-02-30T09:00:00Z", none),
            ("yesterday", none),
        ] {
            assert_eq!(read_time(text).unwrap_err().message, told, "{text}");
        }
        assert_eq!(read_time("9999-12-30T22:00:00Z").unwrap().as_second(), Timestamp::MAX.as_second());
        let errors = errors(r#"{"a": 1e300, "b": -1e300, "c": -1}"#, |object| {
            assert_eq!([object.seconds("a"), object.seconds("b"), object.seconds("c")], [None; 3]);
        });
        let messages: Vec<&str> = errors.iter().map(|(_, message)| message.as_str()).collect();
        let negative = "must be a number of seconds, not negative";
        assert_eq!(messages, ["is too large for a number of seconds", negative, negative]);
    }

    #[test]
    fn what_is_far_too_much_costs_little() {
        let many = format!(r#"{{"a": [{}"x"]}}"#, r#""","#.repeat(1_000_000));
        let refuse = |_: &str| Err::<(), _>(FieldError::new("", "is bad"));
        assert_eq!(
            errors(&many, |object| {
                object.texts("a", 5, refuse);
            }),
            [("a".to_owned(), "may hold at most 5".to_owned())]
        );
        let noted = errors(&many, |object| {
            object.texts("a", 2_000_000, refuse);
        });
        assert_eq!(noted.len(), MAX_ERRORS);
    }

    #[test]
    fn a_whole_number_is_one_however_it_is_spelled() {
        let errors = errors(r#"{"a": 3.0, "b": 3e2, "c": -0.0, "d": 3.5, "e": 1e300, "f": "3.0"}"#, |object| {
            assert_eq!(object.get::<u8>("a", "a whole number"), Some(3));
            assert_eq!(object.get::<u16>("b", "a whole number"), Some(300));
            assert_eq!(object.get::<u64>("c", "a whole number"), Some(0));
            for field in ["d", "e", "f"] {
                assert_eq!(object.get::<i64>(field, "a whole number"), None);
            }
        });
        assert_eq!(errors.len(), 3, "{errors:?}");
    }

    #[test]
    fn a_field_that_was_refused_is_not_missing_as_well() {
        let errors = errors(r#"{"a": 1}"#, |object| {
            let a = object.text("a", |text| Ok(text.len()));
            object.required("a", a);
        });
        assert_eq!(errors, [("a".to_owned(), "must be a string".to_owned())]);
    }

    #[test]
    fn what_is_no_object_is_malformed() {
        for text in ["", "{", "[]", "1", "nul", r#"{"a": 1, "a": 2}"#, r#"{"a" 1}"#, "{}{}", "{\"\\ud800\": 1}"] {
            assert!(Object::read(text).is_err(), "{text}");
        }
        let many = (0..100).map(|n| format!("\"f{n}\": 1")).collect::<Vec<_>>().join(",");
        assert!(Object::read(&format!("{{{many}}}")).is_err());
    }

    #[test]
    fn depth_is_bounded_and_brackets_in_strings_do_not_count() {
        let nested = |depth: usize| format!("{{\"a\": {}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert!(Object::read(&nested(MAX_DEPTH)).is_ok());
        assert!(Object::read(&nested(MAX_DEPTH + 1)).is_err());
        let many = |depth: usize| format!("{{\"all\": [{}]}}", nested(depth));
        assert!(Object::read_many(&many(MAX_DEPTH)).is_ok());
        assert!(Object::read_many(&many(MAX_DEPTH + 1)).is_err());
        assert!(Object::read(&format!(r#"{{"a": "{}\"{}"}}"#, "[".repeat(500), "[".repeat(500))).is_ok());
        // Never closed: refused by its depth, not by a stack that ran over.
        assert!(Object::read(&"[".repeat(5_000_000)).is_err());
    }
}
