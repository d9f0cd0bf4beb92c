//! Argument lists of attributes: `name = value` and `name(…)`, each name at most once. Parsing continues after an
//! error.

use proc_macro2::{Ident, TokenTree};
use syn::{
    Error, Result, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    token,
};

use crate::errors::Errors;

/// An argument that an attribute accepts.
pub(crate) struct Argument<K> {
    pub(crate) key: K,
    pub(crate) name: &'static str,
    /// An example: `name = …` or `name(…)`.
    pub(crate) form: &'static str,
}

/// The arguments that a list accepts, and those that were given so far.
pub(crate) struct ArgumentList<K: 'static> {
    accepted: &'static [Argument<K>],
    given: Vec<&'static str>,
}

impl<K> ArgumentList<K> {
    pub(crate) fn new(accepted: &'static [Argument<K>]) -> Self {
        Self { accepted, given: Vec::new() }
    }

    /// Parses a whole list. Calls `read` for each known argument, with the input after the `=` or at the parentheses.
    pub(crate) fn read(
        &mut self,
        input: ParseStream<'_>,
        errors: &mut Errors,
        mut read: impl FnMut(&'static Argument<K>, ParseStream<'_>) -> Result<()>,
    ) {
        for_each_value(input, errors, |input, errors| {
            let span = input.span();
            let name = input.call(Ident::parse_any).map_err(|_| Error::new(span, self.expected("expected a name")))?;
            let text = name.unraw().to_string();
            let Some(argument) = self.accepted.iter().find(|argument| argument.name == text) else {
                return Err(Error::new(name.span(), self.expected(&format!("unknown name `{text}`"))));
            };
            if self.given.contains(&argument.name) {
                errors.add(Error::new(name.span(), format!("`{text}` is given twice")));
            }
            self.given.push(argument.name);
            let has_expected_form = if argument.form.ends_with(')') {
                input.peek(token::Paren)
            } else {
                <Option<Token![=]>>::parse(input)?.is_some()
            };
            if !has_expected_form {
                return Err(Error::new(name.span(), format!("write it as `{}`", argument.form)));
            }
            read(argument, input)
        });
    }

    fn expected(&self, what: &str) -> String {
        let names: Vec<String> = self.accepted.iter().map(|argument| format!("`{}`", argument.name)).collect();
        format!("{what}; there are {}", names.join(", "))
    }
}

/// Parses comma-separated values to the end of the input. Continues after errors.
pub(crate) fn for_each_value(
    input: ParseStream<'_>,
    errors: &mut Errors,
    mut read: impl FnMut(ParseStream<'_>, &mut Errors) -> Result<()>,
) {
    while !input.is_empty() {
        if let Err(error) = read(input, errors) {
            errors.add(error);
            skip_value(input);
        } else if !input.is_empty() && !input.peek(Token![,]) {
            errors.add(input.error("expected `,`"));
            skip_value(input);
        }
        // The input is at a comma or at its end.
        errors.ok(<Option<Token![,]>>::parse(input));
    }
}

/// Skips to the next comma outside angle brackets, so that `Map<K, V>` is skipped as a whole.
fn skip_value(input: ParseStream<'_>) {
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
