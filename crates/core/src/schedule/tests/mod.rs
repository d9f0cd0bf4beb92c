use crate::Timestamp;

mod expressions;
mod plans;
mod requests;
mod times;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}
