//! Standard output: a table for people, one JSON document, or one JSON item a line.
//!
//! What jobs say of themselves is foreign text. In tables its control characters are shown, not sent to the terminal.

use std::io::{self, Write};

use anyhow::Result;
use clap::ValueEnum;
use comfy_table::{Table, presets};
use serde::Serialize;

use crate::failure::say;

/// How to print.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // No doc comments: with them every help page would be three times as long.
    #[default]
    Table,
    Json,
    Jsonl,
}

/// A list as one document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct List<'a, T> {
    /// What is in it.
    pub(crate) items: &'a [T],
}

/// Part of a list as one document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<T> {
    /// What is in it.
    pub(crate) items: Vec<T>,
    /// Where the rest begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// Where a command prints.
#[derive(Debug)]
pub(crate) struct Output {
    format: Format,
}

impl Output {
    pub(crate) const fn new(format: Format) -> Self {
        Self { format }
    }

    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// Prints one of three: `human` as a table, `document` as JSON, each of `items` as a line of JSON.
    pub(crate) fn show<D: Serialize, I: Serialize>(
        &self,
        document: &D,
        items: &[I],
        human: impl FnOnce() -> String,
    ) -> Result<()> {
        let text = match self.format {
            Format::Table => human(),
            Format::Json => serde_json::to_string_pretty(document)? + "\n",
            Format::Jsonl => lines(items)?,
        };
        self.raw(text.as_bytes())
    }

    /// Prints a list that is nothing but its items.
    pub(crate) fn list<I: Serialize>(&self, items: &[I], human: impl FnOnce() -> String) -> Result<()> {
        self.show(&List { items }, items, human)
    }

    /// Prints part of a list, with a word about what it leaves out.
    pub(crate) fn page<I: Serialize>(&self, page: &Page<I>, human: impl FnOnce(&[I]) -> String) -> Result<()> {
        self.show(page, &page.items, || human(&page.items))?;
        self.rest(page.next_cursor.as_deref());
        Ok(())
    }

    /// Says where a list goes on, unless the document does.
    pub(crate) fn rest(&self, cursor: Option<&str>) {
        if let Some(cursor) = cursor
            && self.format != Format::Json
        {
            self.note(&format!("there may be more: --cursor {cursor} goes on"));
        }
    }

    /// Prints one thing.
    pub(crate) fn item<I: Serialize>(&self, item: &I, human: impl FnOnce() -> String) -> Result<()> {
        self.show(item, std::slice::from_ref(item), human)
    }

    /// Prints bytes as they are.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    }

    /// Says something beside the output, to whoever looks on.
    pub(crate) fn note(&self, text: &str) {
        say(&format!("{text}\n"));
    }
}

fn lines<I: Serialize>(items: &[I]) -> Result<String> {
    let mut text = String::new();
    for item in items {
        text += &serde_json::to_string(item)?;
        text.push('\n');
    }
    Ok(text)
}

/// Columns without borders, two spaces apart.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = plain_table();
    table.set_header(header);
    for row in rows {
        table.add_row(row.map(|cell| plain(&cell)));
    }
    text_of(&table)
}

/// Names beside values, one pair a line; values may have several lines.
pub(crate) fn pairs(rows: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let mut table = plain_table();
    for (name, value) in rows {
        table.add_row([name.to_owned(), value.lines().map(plain).collect::<Vec<_>>().join("\n")]);
    }
    text_of(&table)
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

fn text_of(table: &Table) -> String {
    let lines = table.lines().map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned() + "\n");
    lines.collect()
}

/// The same text with control characters, which could do anything to a terminal, shown as escapes.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // Marks that turn the direction of what follows can make a line read as another.
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        assert_eq!(plain("red \u{1b}[31m\r\n\u{202e}é"), "red \\u{1b}[31m\\r\\n\\u{202e}é");
        let text = table(["A"], [["x\u{1b}]0;title\u{7}".to_owned()]]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn columns_line_up_without_borders() {
        let text = table(["NAME", "STATE"], [["a".into(), "live".into()], ["long-name".into(), "silent".into()]]);
        assert_eq!(text, "NAME       STATE\na          live\nlong-name  silent\n");
        assert_eq!(pairs([("a", "1\n2".into()), ("bc", "3".into())]), "a   1\n    2\nbc  3\n");
    }
}
