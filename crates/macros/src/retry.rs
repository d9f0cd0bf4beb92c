//! Parses and validates `retry(…)` by the rules and defaults of `RetryPolicy` in `orchestrix-core`.

use std::ops::RangeInclusive;

use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote};
use syn::{Path, Result, parse::ParseStream};

use crate::{
    arguments::{Argument, ArgumentList},
    duration::{DAY, HOUR},
    errors::Errors,
    value::{self, Bounds, Millis},
};

/// An example of `retry(…)`.
pub(crate) const FORM: &str = r#"retry(base = "1s", multiplier = 2.0, max = "1h", jitter = 0.1)"#;

enum Part {
    Base,
    Multiplier,
    Max,
    Jitter,
}

const PARTS: &[Argument<Part>] = &[
    Argument { key: Part::Base, name: "base", form: r#"base = "1s""# },
    Argument { key: Part::Multiplier, name: "multiplier", form: "multiplier = 2.0" },
    Argument { key: Part::Max, name: "max", form: r#"max = "1h""# },
    Argument { key: Part::Jitter, name: "jitter", form: "jitter = 0.1" },
];

const DELAY: Bounds = Bounds { range: 0..=30 * DAY, text: "at most 30d" };
const MULTIPLIER: RangeInclusive<f64> = 1.0..=100.0;
const JITTER: RangeInclusive<f64> = 0.0..=1.0;

// The default that `base` or `max` is compared with if only the other is given.
const DEFAULT_BASE: u64 = 1000;
const DEFAULT_MAX: u64 = HOUR;

/// The parsed parts.
#[derive(Default)]
pub(crate) struct Retry {
    base: Option<Millis>,
    multiplier: Option<f64>,
    max: Option<Millis>,
    jitter: Option<f64>,
}

impl Retry {
    /// Parses the input between the parentheses.
    pub(crate) fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut retry = Self::default();
        let mut errors = Errors::default();
        ArgumentList::new(PARTS).read(input, &mut errors, |part, input| retry.parse_part(part, input));
        errors.finish()?;
        retry.check()?;
        Ok(retry)
    }

    fn parse_part(&mut self, part: &Argument<Part>, input: ParseStream<'_>) -> Result<()> {
        match part.key {
            Part::Base => self.base = Some(value::millis(part.name, input, &DELAY)?),
            Part::Multiplier => self.multiplier = Some(value::number(part.name, input, &MULTIPLIER)?),
            Part::Max => self.max = Some(value::millis(part.name, input, &DELAY)?),
            Part::Jitter => self.jitter = Some(value::number(part.name, input, &JITTER)?),
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        match (&self.base, &self.max) {
            (Some(base), Some(max)) if max.value < base.value => {
                Err(max.error(format!("`max` must be at least `base`, which is {}", base.literal.value())))
            }
            (Some(base), None) if base.value > DEFAULT_MAX => {
                Err(base.error("`base` must be at most `max`, which defaults to 1h"))
            }
            (None, Some(max)) if max.value < DEFAULT_BASE => {
                Err(max.error("`max` must be at least `base`, which defaults to 1s"))
            }
            _ => Ok(()),
        }
    }

    /// The policy as an expression of the generated code.
    pub(crate) fn expression(&self, krate: &Path) -> TokenStream {
        let millis = |part: &Option<Millis>| part.as_ref().map(ToTokens::to_token_stream);
        let number = |part: Option<f64>| part.map(|number| Literal::f64_unsuffixed(number).into_token_stream());
        let mut fields = TokenStream::new();
        for (name, value) in [
            (quote!(base), millis(&self.base)),
            (quote!(multiplier), number(self.multiplier)),
            (quote!(max), millis(&self.max)),
            (quote!(jitter), number(self.jitter)),
        ] {
            if let Some(value) = value {
                fields.extend(quote!(#name: #value,));
            }
        }
        quote!(#krate::RetryPolicy { #fields ..#krate::RetryPolicy::DEFAULT })
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobType, NewJob, RetryPolicy};

    use super::*;

    #[test]
    fn limits_and_defaults_equal_those_of_the_core() {
        let default = RetryPolicy::default();
        assert_eq!(u128::from(DEFAULT_BASE), default.base.as_millis());
        assert_eq!(u128::from(DEFAULT_MAX), default.max.as_millis());
        assert_eq!(u128::from(*DELAY.range.end()), RetryPolicy::MAX_DELAY.as_millis());

        let is_valid = |retry| NewJob { retry, ..NewJob::new(JobType::new("t").unwrap()) }.validate().is_ok();
        let edges =
            |range: &RangeInclusive<f64>| [range.start() - 0.01, *range.start(), *range.end(), range.end() + 0.01];
        let multipliers = edges(&MULTIPLIER).map(|multiplier| is_valid(RetryPolicy { multiplier, ..default }));
        let jitters = edges(&JITTER).map(|jitter| is_valid(RetryPolicy { jitter, ..default }));
        assert_eq!((multipliers, jitters), ([false, true, true, false], [false, true, true, false]));
    }
}
