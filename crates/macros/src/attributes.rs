//! Parses and validates the arguments of `#[job(…)]`.

use std::ops::RangeInclusive;

use syn::{
    Attribute, Error, Lit, LitStr, Path, Result, Token, Type, bracketed, parenthesized,
    parse::{Parse, ParseStream},
    token,
};

use crate::{
    arguments::{self, Argument, ArgumentList},
    duration::DAY,
    errors::Errors,
    name::Alphabet,
    retry::{self, Retry},
    value::{self, Bounds, Millis},
};

#[derive(Clone, Copy)]
enum Key {
    Type,
    Queue,
    Priority,
    MaxAttempts,
    Timeout,
    Lease,
    Retry,
    Tags,
    Output,
    Crate,
}

const KEYS: &[Argument<Key>] = &[
    Argument { key: Key::Type, name: "type", form: r#"type = "send-email""# },
    Argument { key: Key::Queue, name: "queue", form: r#"queue = "mail""# },
    Argument { key: Key::Priority, name: "priority", form: "priority = 5" },
    Argument { key: Key::MaxAttempts, name: "max_attempts", form: "max_attempts = 3" },
    Argument { key: Key::Timeout, name: "timeout", form: r#"timeout = "30s""# },
    Argument { key: Key::Lease, name: "lease", form: r#"lease = "1m""# },
    Argument { key: Key::Retry, name: "retry", form: retry::FORM },
    Argument { key: Key::Tags, name: "tags", form: r#"tags = ["a", "b"]"# },
    Argument { key: Key::Output, name: "output", form: "output = Report" },
    Argument { key: Key::Crate, name: "crate", form: "crate = path" },
];

pub(crate) const PRIORITY: RangeInclusive<i16> = -1000..=1000;
pub(crate) const MAX_ATTEMPTS: RangeInclusive<u16> = 1..=10_000;
pub(crate) const TIMEOUT: Bounds = Bounds { range: 1..=30 * DAY, text: "from 1ms to 30d" };
pub(crate) const LEASE: Bounds = Bounds { range: 1000..=DAY, text: "from 1s to 1d" };
pub(crate) const MAX_TAGS: usize = 32;

/// The parsed arguments.
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) job_type: Option<LitStr>,
    pub(crate) queue: Option<LitStr>,
    pub(crate) priority: Option<i16>,
    pub(crate) max_attempts: Option<u16>,
    pub(crate) timeout: Option<Millis>,
    pub(crate) lease: Option<Millis>,
    pub(crate) retry: Option<Retry>,
    pub(crate) tags: Option<Vec<LitStr>>,
    pub(crate) output: Option<Type>,
    pub(crate) krate: Option<Path>,
}

impl Attributes {
    /// Parses every `#[job(…)]` of a type, as if they were one.
    pub(crate) fn parse(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut parsed = Self::default();
        let mut arguments = ArgumentList::new(KEYS);
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("job")) {
            let mut list_errors = Errors::default();
            let list = attribute.parse_args_with(|input: ParseStream<'_>| {
                arguments.read(input, &mut list_errors, |argument, input| parsed.parse_argument(argument, input));
                Ok(())
            });
            errors.ok(list_errors.finish());
            errors.ok(list);
        }
        parsed
    }

    fn parse_argument(&mut self, argument: &Argument<Key>, input: ParseStream<'_>) -> Result<()> {
        let name = argument.name;
        match argument.key {
            Key::Type => self.job_type = Some(value::name(name, input, Alphabet::WithColon)?),
            Key::Queue => self.queue = Some(value::name(name, input, Alphabet::Plain)?),
            Key::Priority => self.priority = Some(value::integer(name, input, &PRIORITY)?),
            Key::MaxAttempts => self.max_attempts = Some(value::integer(name, input, &MAX_ATTEMPTS)?),
            Key::Timeout => self.timeout = Some(value::millis(name, input, &TIMEOUT)?),
            Key::Lease => self.lease = Some(value::millis(name, input, &LEASE)?),
            Key::Retry => {
                let parts;
                parenthesized!(parts in input);
                self.retry = Some(Retry::parse(&parts)?);
            }
            Key::Tags => self.tags = Some(tags(input)?),
            Key::Output => self.output = Some(parse_or_expect("a type", input, Type::parse)?),
            Key::Crate => self.krate = Some(parse_or_expect("a path", input, Path::parse_mod_style)?),
        }
        Ok(())
    }
}

/// Parses a type or a path. If there is none, reports `expected …` instead of the twenty tokens that could start one.
fn parse_or_expect<T>(what: &str, input: ParseStream<'_>, parse: fn(ParseStream<'_>) -> Result<T>) -> Result<T> {
    if input.is_empty() || input.peek(Lit) || input.peek(Token![,]) {
        return Err(Error::new(input.span(), format!("expected {what}")));
    }
    parse(input)
}

fn tags(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    if !input.peek(token::Bracket) {
        return Err(input.error("expected a list, such as [\"a\", \"b\"]"));
    }
    let list;
    bracketed!(list in input);
    let mut tags: Vec<LitStr> = Vec::new();
    let mut errors = Errors::default();
    arguments::for_each_value(&list, &mut errors, |input, errors| {
        let tag = value::name("tags", input, Alphabet::WithColon)?;
        if tags.iter().any(|other| other.value() == tag.value()) {
            errors.add(Error::new(tag.span(), format!("the tag {:?} is given twice", tag.value())));
        }
        tags.push(tag);
        Ok(())
    });
    if let Some(excess) = tags.get(MAX_TAGS) {
        errors
            .add(Error::new(excess.span(), format!("`tags` must have at most {MAX_TAGS} entries, has {}", tags.len())));
    }
    errors.finish()?;
    Ok(tags)
}
