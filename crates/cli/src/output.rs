//! Standard output: a table, one JSON document, or JSON lines.
//!
//! Texts of jobs are untrusted. Tables show their control characters as escapes instead of sending them to the
//! terminal.

use std::io::{self, Write};

use anyhow::Result;
use clap::ValueEnum;
use comfy_table::{Table, presets};
use serde::Serialize;

use crate::error::print_stderr;

/// The output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // No doc comments: clap would show them on every help page.
    #[default]
    Table,
    Json,
    Jsonl,
}

/// A list as one JSON document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct List<'a, T> {
    /// The items.
    pub(crate) items: &'a [T],
}

/// A page of a list as one JSON document.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<T> {
    /// The items.
    pub(crate) items: Vec<T>,
    /// The cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

/// Prints in the chosen format.
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

    /// Prints `human` as a table, `document` as JSON, or each of `items` as a JSON line.
    pub(crate) fn show<D: Serialize, I: Serialize>(
        &self,
        document: &D,
        items: &[I],
        human: impl FnOnce() -> String,
    ) -> Result<()> {
        let text = match self.format {
            Format::Table => human(),
            Format::Json => serde_json::to_string_pretty(document)? + "\n",
            Format::Jsonl => json_lines(items)?,
        };
        self.raw(text.as_bytes())
    }

    /// Prints a complete list.
    pub(crate) fn list<I: Serialize>(&self, items: &[I], human: impl FnOnce() -> String) -> Result<()> {
        self.show(&List { items }, items, human)
    }

    /// Prints a page of a list, and a note with the cursor of the next page.
    pub(crate) fn page<I: Serialize>(&self, page: &Page<I>, human: impl FnOnce(&[I]) -> String) -> Result<()> {
        self.show(page, &page.items, || human(&page.items))?;
        self.note_next_page(page.next_cursor.as_deref());
        Ok(())
    }

    /// Prints a note with the cursor of the next page, unless the JSON document holds it.
    pub(crate) fn note_next_page(&self, cursor: Option<&str>) {
        if let Some(cursor) = cursor
            && self.format != Format::Json
        {
            self.note(&format!("there may be more: continue with --cursor {cursor}"));
        }
    }

    /// Prints one item.
    pub(crate) fn item<I: Serialize>(&self, item: &I, human: impl FnOnce() -> String) -> Result<()> {
        self.show(item, std::slice::from_ref(item), human)
    }

    /// Prints bytes unchanged.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()?;
        Ok(())
    }

    /// Prints a note to standard error.
    pub(crate) fn note(&self, text: &str) {
        print_stderr(&format!("{text}\n"));
    }
}

fn json_lines<I: Serialize>(items: &[I]) -> Result<String> {
    let mut text = String::new();
    for item in items {
        text += &serde_json::to_string(item)?;
        text.push('\n');
    }
    Ok(text)
}

/// A table without borders, its columns two spaces apart.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = borderless_table();
    table.set_header(header);
    for row in rows {
        table.add_row(row.map(|cell| escape_control(&cell)));
    }
    render(&table)
}

/// Names and values, one pair per line. A value may have several lines.
pub(crate) fn pairs(rows: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let mut table = borderless_table();
    for (name, value) in rows {
        table.add_row([name.to_owned(), value.lines().map(escape_control).collect::<Vec<_>>().join("\n")]);
    }
    render(&table)
}

fn borderless_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

fn render(table: &Table) -> String {
    let lines = table.lines().map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned() + "\n");
    lines.collect()
}

/// Replaces control characters, which could manipulate the terminal, by escapes.
pub(crate) fn escape_control(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // Direction marks can make a line read as another one.
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
    fn control_characters_are_escaped() {
        assert_eq!(escape_control("red \u{1b}[31m\r\n\u{202e}é"), "red \\u{1b}[31m\\r\\n\\u{202e}é");
        let text = table(["A"], [["x\u{1b}]0;title\u{7}".to_owned()]]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn columns_are_aligned_without_borders() {
        let text = table(["NAME", "STATE"], [["a".into(), "live".into()], ["long-name".into(), "silent".into()]]);
        assert_eq!(text, "NAME       STATE\na          live\nlong-name  silent\n");
        assert_eq!(pairs([("a", "1\n2".into()), ("bc", "3".into())]), "a   1\n    2\nbc  3\n");
    }
}
