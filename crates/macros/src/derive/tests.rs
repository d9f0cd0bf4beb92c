use std::time::Duration;

use orchestrix_core::{JobType, NewJob, Priority};

use super::*;
use crate::attributes::{LEASE, MAX_ATTEMPTS, MAX_TAGS, PRIORITY, TIMEOUT};

// Without spaces, which depend on how the tokens were created.
fn tokens(text: &str) -> String {
    text.parse::<TokenStream>().unwrap().to_string().replace(' ', "")
}

fn expanded(input: &str) -> String {
    tokens(&expand(input.parse().unwrap()).unwrap_or_else(|error| panic!("{input}: {error}")).to_string())
}

/// Every error: the source text that it points at, and its message.
fn errors(input: &str) -> Vec<(String, String)> {
    let error = expand(input.parse().unwrap()).expect_err(input);
    error.into_iter().map(|error| (error.span().source_text().unwrap_or_default(), error.to_string())).collect()
}

fn attribute_errors(attribute: &str) -> Vec<(String, String)> {
    errors(&format!("#[job({attribute})] struct Send;"))
}

#[track_caller]
fn assert_rejected(attribute: &str, at: &str, message: &str) {
    assert_eq!(attribute_errors(attribute), [(at.to_owned(), message.to_owned())], "{attribute}");
}

fn with_defaults(fields: &str) -> String {
    tokens(&format!(
        "#[automatically_derived]
        #[allow(clippy::needless_update)]
        impl ::orchestrix::Job for Send {{
            type Output = ();
            const TYPE: &'static str = \"Send\";
            const DEFAULTS: ::orchestrix::Defaults = ::orchestrix::Defaults {{
                {fields}
                ..::orchestrix::Defaults::NEW
            }};
        }}"
    ))
}

#[track_caller]
fn assert_sets(attribute: &str, fields: &str) {
    assert_eq!(expanded(&format!("#[job({attribute})] struct Send;")), with_defaults(fields), "{attribute}");
}

#[test]
fn without_attributes_everything_is_default_and_the_job_type_is_the_type_name() {
    assert_eq!(expanded("struct Send { to: String }"), with_defaults(""));
    assert_eq!(expanded("#[job()] enum Send { One, Two(u8) }"), with_defaults(""));
    assert!(expanded("struct r#match;").contains("=\"match\""));
}

#[test]
fn everything_at_once_becomes_one_implementation() {
    let input = r#"
        #[job(type = "send-email", queue = "mail", priority = -5, max_attempts = 3, output = Vec<(u8, Report)>)]
        #[doc = "other attributes are left alone"]
        #[job(timeout = "30s", lease = "1m", retry(base = "2s", multiplier = 3, max = "1.5h", jitter = 0.25,),
              tags = ["mail", "eu:west",], crate = my::path,)]
        struct SendEmail { to: String }
    "#;
    let output = r#"
        #[automatically_derived]
        #[allow(clippy::needless_update)]
        impl my::path::Job for SendEmail {
            type Output = Vec<(u8, Report)>;
            const TYPE: &'static str = "send-email";
            const DEFAULTS: my::path::Defaults = my::path::Defaults {
                queue: "mail", priority: -5, max_attempts: 3,
                timeout: ::core::option::Option::Some(::core::time::Duration::from_millis(30000)),
                lease: ::core::time::Duration::from_millis(60000),
                retry: my::path::RetryPolicy {
                    base: ::core::time::Duration::from_millis(2000), multiplier: 3.0,
                    max: ::core::time::Duration::from_millis(5400000), jitter: 0.25,
                    ..my::path::RetryPolicy::DEFAULT
                },
                tags: &["mail", "eu:west"],
                ..my::path::Defaults::NEW
            };
        }
    "#;
    assert_eq!(expanded(input), tokens(output));
}

#[test]
fn each_attribute_sets_its_field_and_no_other() {
    assert_sets(r#"queue = "mail""#, r#"queue: "mail","#);
    assert_sets("priority = -1000", "priority: -1000,");
    assert_sets("priority = 1_000i16", "priority: 1000,");
    assert_sets("max_attempts = 0x10", "max_attempts: 16,");
    assert_sets(r#"timeout = "1ms""#, "timeout: ::core::option::Option::Some(::core::time::Duration::from_millis(1)),");
    assert_sets(r#"lease = "1d""#, "lease: ::core::time::Duration::from_millis(86400000),");
    assert_sets("tags = []", "tags: &[],");
    assert_sets(
        r#"retry(max = "2h")"#,
        "retry: ::orchestrix::RetryPolicy {
            max: ::core::time::Duration::from_millis(7200000), ..::orchestrix::RetryPolicy::DEFAULT
        },",
    );
    assert_sets(
        "retry(multiplier = 1, jitter = 1.0f64)",
        "retry: ::orchestrix::RetryPolicy { multiplier: 1.0, jitter: 1.0, ..::orchestrix::RetryPolicy::DEFAULT },",
    );
}

#[test]
fn the_crate_can_be_any_path() {
    for path in ["crate", "self::queue", "::other::orchestrix"] {
        let output = expanded(&format!("#[job(crate = {path})] struct Send;"));
        assert!(output.contains(&tokens(&format!("impl {path}::Job for Send"))), "{output}");
    }
}

#[test]
fn const_parameters_are_kept_and_other_parameters_rejected() {
    let output = expanded("struct Batch<const N: usize = 4> where [u8; N]: Sized { rows: [u8; N] }");
    let head = tokens("impl<const N: usize> ::orchestrix::Job for Batch<N> where [u8; N]: Sized {}");
    assert!(output.contains(head.trim_end_matches(['{', '}'])), "{output}");

    let why = "a job type has one payload type, which owns its data";
    assert_eq!(
        errors("struct Send<'a, T: Clone, const N: usize>(&'a [T; N]);"),
        [
            ("'a".to_owned(), format!("a job cannot be generic over `'a`: {why}")),
            ("T: Clone".to_owned(), format!("a job cannot be generic over `T`: {why}")),
        ]
    );
}

#[test]
fn unions_are_rejected() {
    let [(at, message)] = &errors("union Send { a: u8, b: i8 }")[..] else { panic!("expected exactly one error") };
    assert_eq!(at, "union");
    assert!(message.starts_with("a union cannot be a job"), "{message}");
}

#[test]
fn a_job_attribute_inside_the_type_is_rejected() {
    let at = |place: &str| {
        ("#[job(queue = \"q\")]".to_owned(), format!("`#[job(...)]` belongs on the type, not on a {place}"))
    };
    assert_eq!(errors("struct Send { #[job(queue = \"q\")] to: String }"), [at("field")]);
    assert_eq!(
        errors("enum Send { #[job(queue = \"q\")] A, B(#[job(queue = \"q\")] u8) }"),
        [at("variant"), at("field")]
    );
}

#[test]
fn a_type_name_that_is_no_valid_job_type_needs_an_explicit_one() {
    let rule = "which may hold only A-Z a-z 0-9 _ . - :, not 'ö'; set another with `#[job(type = \"...\")]`";
    assert_eq!(errors("struct Größe;"), [("Größe".to_owned(), format!("this name cannot be the job type, {rule}"))]);
    assert!(expanded("#[job(type = \"size\")] struct Größe;").contains("\"size\""));
}

#[test]
fn invalid_names_are_rejected_at_the_literal() {
    assert_rejected(r#"type = """#, r#""""#, "`type` must have 1 to 128 characters, has 0");
    assert_rejected(r#"queue = "a:b""#, r#""a:b""#, "`queue` may hold only A-Z a-z 0-9 _ . -, not ':'");
    assert_rejected(r#"type = "two words""#, r#""two words""#, "`type` may hold only A-Z a-z 0-9 _ . - :, not ' '");
    assert_rejected(r#"tags = ["ok", "b/c"]"#, r#""b/c""#, "`tags` may hold only A-Z a-z 0-9 _ . - :, not '/'");
    assert_rejected(r#"tags = ["a", "b", "a"]"#, r#""a""#, "the tag \"a\" is given twice");
}

#[test]
fn the_first_excess_tag_is_highlighted() {
    let list = |count: usize| (0..count).map(|n| format!("\"t{n}\"")).collect::<Vec<_>>().join(", ");
    expanded(&format!("#[job(tags = [{}])] struct Send;", list(32)));
    assert_rejected(&format!("tags = [{}]", list(34)), "\"t32\"", "`tags` must have at most 32 entries, has 34");
}

#[test]
fn numbers_out_of_range_are_rejected_at_the_literal() {
    assert_rejected("priority = 1001", "1001", "`priority` must be from -1000 to 1000, not 1001");
    assert_rejected("priority = -1001", "-1001", "`priority` must be from -1000 to 1000, not -1001");
    assert_rejected(
        "priority = 99999999999999999999",
        "99999999999999999999",
        "`priority` must be from -1000 to 1000, not 99999999999999999999",
    );
    assert_rejected("max_attempts = 0", "0", "`max_attempts` must be from 1 to 10000, not 0");
    assert_rejected("max_attempts = -1", "-1", "`max_attempts` must be from 1 to 10000, not -1");
    assert_rejected("max_attempts = 10_001", "10_001", "`max_attempts` must be from 1 to 10000, not 10001");
    assert_rejected("retry(multiplier = 0.99)", "0.99", "`multiplier` must be from 1 to 100, not 0.99");
    assert_rejected("retry(multiplier = 101)", "101", "`multiplier` must be from 1 to 100, not 101");
    assert_rejected("retry(multiplier = 1e999)", "1e999", "`multiplier` must be from 1 to 100, not 1e999");
    assert_rejected("retry(jitter = -0.1)", "-0.1", "`jitter` must be from 0 to 1, not -0.1");
    assert_rejected("retry(jitter = 1.01)", "1.01", "`jitter` must be from 0 to 1, not 1.01");
}

#[test]
fn durations_out_of_range_are_rejected_at_the_literal() {
    assert_rejected(r#"timeout = "0s""#, r#""0s""#, "`timeout` must be from 1ms to 30d, not 0s");
    assert_rejected(r#"timeout = "30.5d""#, r#""30.5d""#, "`timeout` must be from 1ms to 30d, not 30.5d");
    assert_rejected(r#"lease = "999ms""#, r#""999ms""#, "`lease` must be from 1s to 1d, not 999ms");
    assert_rejected(r#"lease = "25h""#, r#""25h""#, "`lease` must be from 1s to 1d, not 25h");
    assert_rejected(r#"retry(base = "1s", max = "31d")"#, r#""31d""#, "`max` must be at most 30d, not 31d");
    assert_rejected(
        r#"timeout = "5 min""#,
        r#""5 min""#,
        "\"5 min\" has the unknown unit ` min`: use one of ms, s, m, h, d",
    );
    assert_rejected(r#"lease = "90""#, r#""90""#, "\"90\" has no unit: add one of ms, s, m, h, d");
    assert_rejected(r#"timeout = "0.5ms""#, r#""0.5ms""#, "\"0.5ms\" is not a whole number of milliseconds");
}

#[test]
fn a_max_below_base_is_rejected_also_if_one_of_them_is_a_default() {
    assert_rejected(r#"retry(max = "5s", base = "6s")"#, r#""5s""#, "`max` must be at least `base`, which is 6s");
    assert_rejected(r#"retry(base = "2h")"#, r#""2h""#, "`base` must be at most `max`, which defaults to 1h");
    assert_rejected(r#"retry(max = "999ms")"#, r#""999ms""#, "`max` must be at least `base`, which defaults to 1s");
    for fine in [r#"base = "1h""#, r#"max = "1s""#, r#"base = "0s", max = "0s""#, r#"base = "30d", max = "30d""#] {
        expanded(&format!("#[job(retry({fine}))] struct Send;"));
    }
}

#[test]
fn an_invalid_part_of_retry_is_not_treated_as_missing() {
    assert_rejected(
        r#"retry(base = "1x", max = "5ms")"#,
        r#""1x""#,
        "\"1x\" has the unknown unit `x`: use one of ms, s, m, h, d",
    );
}

#[test]
fn an_unknown_name_is_reported_with_the_known_names() {
    let known = "`type`, `queue`, `priority`, `max_attempts`, `timeout`, `lease`, `retry`, `tags`, `output`, `crate`";
    assert_rejected("que = \"mail\"", "que", &format!("unknown name `que`; there are {known}"));
    assert_rejected("\"mail\"", "\"mail\"", &format!("expected a name; there are {known}"));
    assert_rejected("retry(cap = 1)", "cap", "unknown name `cap`; there are `base`, `multiplier`, `max`, `jitter`");
}

#[test]
fn duplicates_are_rejected_within_one_attribute_and_across_several() {
    assert_rejected(r#"queue = "a", queue = "b""#, "queue", "`queue` is given twice");
    assert_rejected(r#"retry(jitter = 0, jitter = 0)"#, "jitter", "`jitter` is given twice");
    assert_rejected("retry(jitter = 0), retry(multiplier = 2)", "retry", "`retry` is given twice");
    assert_eq!(
        errors(r#"#[job(queue = "a")] #[job(lease = "1m", queue = "a")] struct Send;"#),
        [("queue".to_owned(), "`queue` is given twice".to_owned())]
    );
}

#[test]
fn a_value_of_the_wrong_type_is_reported_with_the_expected_type() {
    assert_rejected("queue = 5", "5", "expected a string literal");
    assert_rejected("queue = MAIL", "MAIL", "expected a string literal");
    assert_rejected("queue = \"mail\"x", "\"mail\"x", "the suffix `x` is not allowed here");
    assert_rejected("timeout = 30", "30", "expected a string literal");
    assert_rejected("priority = 1.5", "1.5", "expected an integer");
    assert_rejected("priority = \"5\"", "\"5\"", "expected an integer");
    assert_rejected("priority = 5u8", "5u8", "the suffix `u8` is not allowed here");
    assert_rejected("retry(jitter = \"0.1\")", "\"0.1\"", "expected a number");
    assert_rejected("tags = \"a\"", "\"a\"", "expected a list, such as [\"a\", \"b\"]");
    assert_rejected("tags = [a]", "a", "expected a string literal");
    assert_rejected("output = \"Report\"", "\"Report\"", "expected a type");
    assert_rejected("output = , priority = 1", ",", "expected a type");
    assert_rejected("output = Vec<u8; 4>", ";", "expected `,`");
    assert_rejected("crate = \"path\"", "\"path\"", "expected a path");
}

#[test]
fn a_name_in_the_wrong_form_is_reported_with_the_right_form() {
    assert_rejected("queue", "queue", "write it as `queue = \"mail\"`");
    assert_rejected("queue(\"mail\")", "queue", "write it as `queue = \"mail\"`");
    assert_rejected(
        "retry = \"1s\"",
        "retry",
        "write it as `retry(base = \"1s\", multiplier = 2.0, max = \"1h\", jitter = 0.1)`",
    );
    assert_rejected("retry(base(\"1s\"))", "base", "write it as `base = \"1s\"`");
    assert_rejected("queue = \"a\" lease = \"1m\"", "lease", "expected `,`");
    for (attribute, message) in
        [("#[job]", "expected attribute arguments in parentheses"), ("#[job = 1]", "expected parentheses")]
    {
        let found = errors(&format!("{attribute} struct Send;"));
        assert!(found.len() == 1 && found[0].1.starts_with(message), "{found:?}");
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    let found = errors(
        r#"
        #[job(queue = "a b", foo = Map<K, V>, priority = 5000, retry(base = "1", jitter = 2, cap = 1),
              output = Map<A, B>)]
        #[job(tags = ["x y", 5, "ok"], lease = "1ms" max_attempts = 0, timeout = "31d")]
        struct Send<T> { #[job()] to: T }
        "#,
    );
    let positions: Vec<&str> = found.iter().map(|(at, _)| at.as_str()).collect();
    assert_eq!(
        positions,
        ["T", "#[job()]", "\"a b\"", "foo", "5000", "\"1\"", "2", "cap", "\"x y\"", "5", "\"1ms\"", "\"31d\""]
    );
}

#[test]
fn values_passed_through_a_declarative_macro_are_parsed() {
    use proc_macro2::{Delimiter, Group};
    // A fragment such as `$queue:literal` arrives in a group without delimiters.
    let passed = |text: &str| Group::new(Delimiter::None, text.parse().unwrap());
    let (queue, priority, tag) = (passed("\"mail\""), passed("-5"), passed("\"a\""));
    let output = passed("Vec<u8>");
    let input = quote!(
        #[job(queue = #queue, priority = #priority, tags = [#tag, "b"], output = #output)]
        struct Send;
    );
    let output = tokens(&expand(input).unwrap().to_string());
    for part in [r#"queue: "mail","#, "priority: -5,", r#"tags: &["a", "b"],"#, "type Output = Vec<u8>;"] {
        assert!(output.contains(&tokens(part)), "{part} in {output}");
    }
}

#[test]
fn limits_equal_those_of_the_core() {
    let job = || NewJob::new(JobType::new("t").unwrap());
    let millis = Duration::from_millis;
    let ok = |change: &dyn Fn(&mut NewJob)| {
        let mut job = job();
        change(&mut job);
        job.validate().is_ok()
    };
    for (bounds, set) in [
        (&TIMEOUT, (|job, value| job.timeout = Some(value)) as fn(&mut NewJob, Duration)),
        (&LEASE, |job, value| job.lease = value),
    ] {
        let (low, high) = (*bounds.range.start(), *bounds.range.end());
        let valid = [low - 1, low, high, high + 1].map(|value| ok(&|job| set(job, millis(value))));
        assert_eq!(valid, [false, true, true, false], "{}", bounds.text);
    }
    let valid = [0, *MAX_ATTEMPTS.start(), *MAX_ATTEMPTS.end(), MAX_ATTEMPTS.end() + 1]
        .map(|value| ok(&|job| job.max_attempts = value));
    assert_eq!(valid, [false, true, true, false]);
    let valid = [PRIORITY.start() - 1, *PRIORITY.start(), *PRIORITY.end(), PRIORITY.end() + 1]
        .map(|value| Priority::new(value.into()).is_ok());
    assert_eq!(valid, [false, true, true, false]);
    assert_eq!(MAX_TAGS, NewJob::MAX_TAGS);
}
