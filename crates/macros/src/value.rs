//! Parses and validates single values. Errors point at the literal.

use std::{any::type_name, fmt::Display, ops::RangeInclusive, str::FromStr};

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote};
use syn::{Error, Lit, LitStr, Result, Token, parse::ParseStream};

use crate::{
    duration,
    name::{self, Alphabet},
};

/// The bounds of a duration, in milliseconds and as text.
pub(crate) struct Bounds {
    pub(crate) range: RangeInclusive<u64>,
    pub(crate) text: &'static str,
}

/// A duration and its literal.
pub(crate) struct Millis {
    pub(crate) value: u64,
    pub(crate) literal: LitStr,
}

impl Millis {
    /// An error that points at the literal.
    pub(crate) fn error(&self, message: impl Display) -> Error {
        Error::new(self.literal.span(), message)
    }
}

// The duration as an expression of the generated code.
impl ToTokens for Millis {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let millis = Literal::u64_unsuffixed(self.value);
        tokens.extend(quote!(::core::time::Duration::from_millis(#millis)));
    }
}

/// Parses a string literal that is a valid name.
pub(crate) fn name(field: &str, input: ParseStream<'_>, alphabet: Alphabet) -> Result<LitStr> {
    let literal = string(input)?;
    match name::check(&literal.value(), alphabet) {
        Ok(()) => Ok(literal),
        Err(problem) => Err(Error::new(literal.span(), format!("`{field}` {problem}"))),
    }
}

/// Parses a string literal that is a duration within bounds.
pub(crate) fn millis(field: &str, input: ParseStream<'_>, bounds: &Bounds) -> Result<Millis> {
    let literal = string(input)?;
    let text = literal.value();
    let bad = |message: String| Error::new(literal.span(), message);
    let value = duration::millis(&text).map_err(|error| bad(format!("{text:?} {error}")))?;
    if !bounds.range.contains(&value) {
        return Err(bad(format!("`{field}` must be {}, not {text}", bounds.text)));
    }
    Ok(Millis { value, literal })
}

/// Parses an integer literal within a range, with an optional minus.
pub(crate) fn integer<T>(field: &str, input: ParseStream<'_>, range: &RangeInclusive<T>) -> Result<T>
where
    T: FromStr + PartialOrd + Display,
{
    const EXPECTED: &str = "expected an integer";
    let signed = Signed::parse(input, EXPECTED)?;
    match &signed.literal {
        Lit::Int(digits) => signed.parse_in_range(field, digits.base10_digits(), type_name::<T>(), range),
        _ => Err(signed.error(EXPECTED)),
    }
}

/// Parses a number within a range, with or without a decimal point.
pub(crate) fn number(field: &str, input: ParseStream<'_>, range: &RangeInclusive<f64>) -> Result<f64> {
    const EXPECTED: &str = "expected a number";
    let signed = Signed::parse(input, EXPECTED)?;
    match &signed.literal {
        Lit::Int(digits) => signed.parse_in_range(field, digits.base10_digits(), "f64", range),
        Lit::Float(digits) => signed.parse_in_range(field, digits.base10_digits(), "f64", range),
        _ => Err(signed.error(EXPECTED)),
    }
}

/// A number with its sign. An error must span both: the compiler would underline only the sign of a negative literal.
struct Signed {
    minus: Option<Token![-]>,
    literal: Lit,
}

impl Signed {
    fn parse(input: ParseStream<'_>, expected: &str) -> Result<Self> {
        Ok(Self { minus: input.parse()?, literal: literal(input, expected)? })
    }

    fn parse_in_range<T>(&self, field: &str, digits: &str, kind: &str, range: &RangeInclusive<T>) -> Result<T>
    where
        T: FromStr + PartialOrd + Display,
    {
        check_suffix(&self.literal, kind)?;
        let text = format!("{}{digits}", if self.minus.is_some() { "-" } else { "" });
        text.parse().ok().filter(|value| range.contains(value)).ok_or_else(|| {
            self.error(format!("`{field}` must be from {} to {}, not {text}", range.start(), range.end()))
        })
    }

    fn error(&self, message: impl Display) -> Error {
        let Self { minus, literal } = self;
        Error::new_spanned(quote!(#minus #literal), message)
    }
}

/// Parses a string literal without a suffix.
pub(crate) fn string(input: ParseStream<'_>) -> Result<LitStr> {
    const EXPECTED: &str = "expected a string literal";
    let literal = literal(input, EXPECTED)?;
    check_suffix(&literal, "")?;
    match literal {
        Lit::Str(text) => Ok(text),
        other => Err(Error::new(other.span(), EXPECTED)),
    }
}

fn literal(input: ParseStream<'_>, expected: &str) -> Result<Lit> {
    let span = input.span();
    input.parse().map_err(|_| Error::new(span, expected))
}

fn check_suffix(literal: &Lit, allowed: &str) -> Result<()> {
    let suffix = match literal {
        Lit::Str(text) => text.suffix(),
        Lit::Int(digits) => digits.suffix(),
        Lit::Float(digits) => digits.suffix(),
        _ => "",
    };
    if suffix.is_empty() || suffix == allowed {
        return Ok(());
    }
    Err(Error::new(literal.span(), format!("the suffix `{suffix}` is not allowed here")))
}
