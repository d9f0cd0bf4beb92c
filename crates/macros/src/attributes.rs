//! Everything that `#[job(…)]` can say, read and checked.

use std::ops::RangeInclusive;

use syn::{
    Attribute, Error, Lit, LitStr, Path, Result, Token, Type, bracketed, parenthesized,
    parse::{Parse, ParseStream},
    token,
};

use crate::{
    duration::DAY,
    items::{self, Item, Items},
    name::Alphabet,
    problems::Problems,
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

const KEYS: &[Item<Key>] = &[
    Item { key: Key::Type, name: "type", form: r#"type = "send-email""# },
    Item { key: Key::Queue, name: "queue", form: r#"queue = "mail""# },
    Item { key: Key::Priority, name: "priority", form: "priority = 5" },
    Item { key: Key::MaxAttempts, name: "max_attempts", form: "max_attempts = 3" },
    Item { key: Key::Timeout, name: "timeout", form: r#"timeout = "30s""# },
    Item { key: Key::Lease, name: "lease", form: r#"lease = "1m""# },
    Item { key: Key::Retry, name: "retry", form: retry::FORM },
    Item { key: Key::Tags, name: "tags", form: r#"tags = ["a", "b"]"# },
    Item { key: Key::Output, name: "output", form: "output = Report" },
    Item { key: Key::Crate, name: "crate", form: "crate = path" },
];

pub(crate) const PRIORITY: RangeInclusive<i16> = -1000..=1000;
pub(crate) const MAX_ATTEMPTS: RangeInclusive<u16> = 1..=10_000;
pub(crate) const TIMEOUT: Bounds = Bounds { range: 1..=30 * DAY, text: "from 1ms to 30d" };
pub(crate) const LEASE: Bounds = Bounds { range: 1000..=DAY, text: "from 1s to 1d" };
pub(crate) const MAX_TAGS: usize = 32;

/// What was given.
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
    /// Reads every `#[job(…)]` among the attributes of a type, as if they were one.
    pub(crate) fn read(attributes: &[Attribute], problems: &mut Problems) -> Self {
        let mut given = Self::default();
        let mut items = Items::new(KEYS);
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("job")) {
            let mut inside = Problems::default();
            let list = attribute.parse_args_with(|input: ParseStream<'_>| {
                items.read(input, &mut inside, |item, input| given.read_item(item, input));
                Ok(())
            });
            problems.keep(inside.finish());
            problems.keep(list);
        }
        given
    }

    fn read_item(&mut self, item: &Item<Key>, input: ParseStream<'_>) -> Result<()> {
        let name = item.name;
        match item.key {
            Key::Type => self.job_type = Some(value::name(name, input, Alphabet::WithColon)?),
            Key::Queue => self.queue = Some(value::name(name, input, Alphabet::Plain)?),
            Key::Priority => self.priority = Some(value::integer(name, input, &PRIORITY)?),
            Key::MaxAttempts => self.max_attempts = Some(value::integer(name, input, &MAX_ATTEMPTS)?),
            Key::Timeout => self.timeout = Some(value::millis(name, input, &TIMEOUT)?),
            Key::Lease => self.lease = Some(value::millis(name, input, &LEASE)?),
            Key::Retry => {
                let parts;
                parenthesized!(parts in input);
                self.retry = Some(Retry::read(&parts)?);
            }
            Key::Tags => self.tags = Some(tags(input)?),
            Key::Output => self.output = Some(or_expected("a type", input, Type::parse)?),
            Key::Crate => self.krate = Some(or_expected("a path", input, Path::parse_mod_style)?),
        }
        Ok(())
    }
}

// Where there is none at all, the parser would list the twenty tokens that it may begin with.
fn or_expected<T>(what: &str, input: ParseStream<'_>, parse: fn(ParseStream<'_>) -> Result<T>) -> Result<T> {
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
    let mut problems = Problems::default();
    items::each(&list, &mut problems, |input, problems| {
        let tag = value::name("tags", input, Alphabet::WithColon)?;
        if tags.iter().any(|known| known.value() == tag.value()) {
            problems.add(Error::new(tag.span(), format!("the tag {:?} is given twice", tag.value())));
        }
        tags.push(tag);
        Ok(())
    });
    if let Some(over) = tags.get(MAX_TAGS) {
        problems.add(Error::new(over.span(), format!("`tags` may hold at most {MAX_TAGS}, holds {}", tags.len())));
    }
    problems.finish()?;
    Ok(tags)
}
