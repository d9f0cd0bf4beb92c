//! The rules for names, as in `orchestrix-core`.

/// The longest name, in characters.
pub(crate) const MAX: usize = 128;

/// The characters that a name may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Queues.
    Plain,
    /// Job types and tags.
    WithColon,
}

impl Alphabet {
    fn contains(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') || (self == Self::WithColon && c == ':')
    }

    fn text(self) -> &'static str {
        match self {
            Self::Plain => "A-Z a-z 0-9 _ . -",
            Self::WithColon => "A-Z a-z 0-9 _ . - :",
        }
    }
}

/// Validates a name. The message continues a sentence that starts with the field.
pub(crate) fn check(text: &str, alphabet: Alphabet) -> Result<(), String> {
    let length = text.chars().count();
    if length == 0 || length > MAX {
        return Err(format!("must have 1 to {MAX} characters, has {length}"));
    }
    match text.chars().find(|c| !alphabet.contains(*c)) {
        Some(bad) => Err(format!("may hold only {}, not {bad:?}", alphabet.text())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobType, Queue, Tag};

    use super::*;

    #[test]
    fn names_are_validated_like_in_the_core() {
        let ascii = (0u8..128).map(|byte| char::from(byte).to_string());
        let others = ["", "a", "é", "名", "mail-1_x.y", "billing:eu", "two words", "a\u{200b}"].map(String::from);
        let lengths = [MAX - 1, MAX, MAX + 1].map(|length| "x".repeat(length));
        let wide = ["é".repeat(MAX), "é".repeat(MAX + 1)];
        for text in ascii.chain(others).chain(lengths).chain(wide) {
            let (plain, colon) = (check(&text, Alphabet::Plain), check(&text, Alphabet::WithColon));
            assert_eq!(plain, Queue::new(&text).map(drop).map_err(|error| error.message), "{text:?}");
            assert_eq!(colon, JobType::new(&text).map(drop).map_err(|error| error.message), "{text:?}");
            assert_eq!(colon, Tag::new(&text).map(drop).map_err(|error| error.message), "{text:?}");
        }
    }
}
