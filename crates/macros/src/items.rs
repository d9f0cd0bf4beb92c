//! Lists of `name = value` and `name(…)`: which names there are, each once, and going on after a bad one.

use proc_macro2::{Ident, TokenTree};
use syn::{
    Error, Result, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    token,
};

use crate::problems::Problems;

/// A name that may be given.
pub(crate) struct Item<K> {
    pub(crate) key: K,
    pub(crate) name: &'static str,
    /// How it is written: `name = …` or `name(…)`.
    pub(crate) form: &'static str,
}

/// The names that one list may hold, and those that it has had.
pub(crate) struct Items<K: 'static> {
    known: &'static [Item<K>],
    seen: Vec<&'static str>,
}

impl<K> Items<K> {
    pub(crate) fn new(known: &'static [Item<K>]) -> Self {
        Self { known, seen: Vec::new() }
    }

    /// Reads a whole list. `read` is handed each known name and its value: what follows the `=`, or the parentheses.
    pub(crate) fn read(
        &mut self,
        input: ParseStream<'_>,
        problems: &mut Problems,
        mut read: impl FnMut(&'static Item<K>, ParseStream<'_>) -> Result<()>,
    ) {
        each(input, problems, |input, problems| {
            let span = input.span();
            let name = input.call(Ident::parse_any).map_err(|_| Error::new(span, self.expected("expected a name")))?;
            let text = name.unraw().to_string();
            let Some(item) = self.known.iter().find(|item| item.name == text) else {
                return Err(Error::new(name.span(), self.expected(&format!("unknown name `{text}`"))));
            };
            if self.seen.contains(&item.name) {
                problems.add(Error::new(name.span(), format!("`{text}` is given twice")));
            }
            self.seen.push(item.name);
            let as_written = if item.form.ends_with(')') {
                input.peek(token::Paren)
            } else {
                <Option<Token![=]>>::parse(input)?.is_some()
            };
            if !as_written {
                return Err(Error::new(name.span(), format!("write it as `{}`", item.form)));
            }
            read(item, input)
        });
    }

    fn expected(&self, what: &str) -> String {
        let names: Vec<String> = self.known.iter().map(|item| format!("`{}`", item.name)).collect();
        format!("{what}; there are {}", names.join(", "))
    }
}

/// Reads values between commas to the end of the input, past bad ones too.
pub(crate) fn each(
    input: ParseStream<'_>,
    problems: &mut Problems,
    mut read: impl FnMut(ParseStream<'_>, &mut Problems) -> Result<()>,
) {
    while !input.is_empty() {
        if let Err(error) = read(input, problems) {
            problems.add(error);
            skip(input);
        } else if !input.is_empty() && !input.peek(Token![,]) {
            problems.add(input.error("expected `,`"));
            skip(input);
        }
        // There is a comma here, or the end.
        problems.keep(<Option<Token![,]>>::parse(input));
    }
}

// Up to the next comma, but not one between angle brackets, which would be taken for the end of `Map<K, V>`.
fn skip(input: ParseStream<'_>) {
    let mut depth = 0usize;
    while !(depth == 0 && input.peek(Token![,])) {
        match TokenTree::parse(input) {
            Ok(TokenTree::Punct(punct)) if punct.as_char() == '<' => depth += 1,
            Ok(TokenTree::Punct(punct)) if punct.as_char() == '>' => depth = depth.saturating_sub(1),
            Ok(_) => {}
            Err(_) => break,
        }
    }
}
