//! The generated code compiles without warnings and sets what the attributes say, tested with a trait of the same
//! shape.

use std::time::Duration;

use orchestrix_macros::Job;

/// A copy of the items that the derive uses.
mod facade {
    use std::time::Duration;

    pub(crate) trait Job {
        type Output;
        const TYPE: &'static str;
        const DEFAULTS: Defaults;
    }

    #[derive(Debug, PartialEq)]
    pub(crate) struct Defaults {
        pub queue: &'static str,
        pub priority: i16,
        pub max_attempts: u16,
        pub timeout: Option<Duration>,
        pub lease: Duration,
        pub retry: RetryPolicy,
        pub tags: &'static [&'static str],
    }

    impl Defaults {
        pub(crate) const NEW: Self = Self {
            queue: "default",
            priority: 0,
            max_attempts: 10,
            timeout: None,
            lease: Duration::from_secs(30),
            retry: RetryPolicy::DEFAULT,
            tags: &[],
        };
    }

    #[derive(Debug, PartialEq)]
    pub(crate) struct RetryPolicy {
        pub base: Duration,
        pub multiplier: f64,
        pub max: Duration,
        pub jitter: f64,
    }

    impl RetryPolicy {
        pub(crate) const DEFAULT: Self =
            Self { base: Duration::from_secs(1), multiplier: 2.0, max: Duration::from_secs(3600), jitter: 0.1 };
    }
}

use facade::{Defaults, Job, RetryPolicy};

#[derive(Job)]
#[job(crate = facade)]
struct Plain;

#[derive(Job)]
#[job(crate = crate::facade, type = "everything", queue = "mail", priority = -7, max_attempts = 3, timeout = "1.5s")]
#[job(lease = "1m", retry(base = "2s", multiplier = 3, max = "1d", jitter = 0.5))]
#[job(tags = ["a", "b:c"], output = Vec<u8>)]
enum Everything {
    #[allow(dead_code)]
    One { field: u8 },
}

#[derive(Job)]
#[job(crate = facade, retry(base = "250ms"))]
struct Rows<const N: usize>
where
    [u8; N]: Sized;

macro_rules! job {
    ($name:ident, $queue:literal, $priority:literal, $output:ty) => {
        #[derive(Job)]
        #[job(crate = $crate::facade, queue = $queue, priority = $priority, output = $output)]
        struct $name;
    };
}
job!(Made, "made", -3, Option<u8>);

fn output<J: Job>() -> &'static str {
    std::any::type_name::<J::Output>()
}

#[test]
fn without_arguments_everything_is_default() {
    assert_eq!(Plain::TYPE, "Plain");
    assert_eq!(Plain::DEFAULTS, Defaults::NEW);
    assert_eq!(output::<Plain>(), "()");
}

#[test]
fn all_arguments_are_applied() {
    assert_eq!(Everything::TYPE, "everything");
    assert_eq!(
        Everything::DEFAULTS,
        Defaults {
            queue: "mail",
            priority: -7,
            max_attempts: 3,
            timeout: Some(Duration::from_millis(1500)),
            lease: Duration::from_secs(60),
            retry: RetryPolicy {
                base: Duration::from_secs(2),
                multiplier: 3.0,
                max: Duration::from_secs(24 * 3600),
                jitter: 0.5,
            },
            tags: &["a", "b:c"],
        }
    );
    assert_eq!(output::<Everything>(), std::any::type_name::<Vec<u8>>());
}

#[test]
fn a_type_with_const_parameters_is_one_job_type() {
    assert_eq!((Rows::<1>::TYPE, Rows::<2>::TYPE), ("Rows", "Rows"));
    let retry = RetryPolicy { base: Duration::from_millis(250), ..RetryPolicy::DEFAULT };
    assert_eq!(Rows::<2>::DEFAULTS, Defaults { retry, ..Defaults::NEW });
}

#[test]
fn a_declarative_macro_can_write_the_derive() {
    assert_eq!((Made::TYPE, Made::DEFAULTS.queue, Made::DEFAULTS.priority), ("Made", "made", -3));
    assert_eq!(output::<Made>(), std::any::type_name::<Option<u8>>());
}
