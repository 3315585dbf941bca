//! A small aligned table.

use std::fmt;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

/// On which side a column is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows under a bold header, in columns as wide as their widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: impl Into<Vec<(&'static str, Align)>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row with as many cells as there are columns.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |index: usize| self.rows.iter().filter_map(|row| row.get(index)).map(|cell| width(cell)).max();
        let columns = self.columns.iter().enumerate();
        columns.map(|(index, (title, _))| widest(index).unwrap_or(0).max(title.len())).collect()
    }
}

/// The width of a cell on a terminal, colours left out.
fn width(cell: &str) -> usize {
    anstream::adapter::strip_str(cell).map(UnicodeWidthStr::width).sum()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let bold = Style::new().bold();
        let titles: Vec<String> = self.columns.iter().map(|(title, _)| (*title).to_owned()).collect();
        write!(f, "{bold}{}{bold:#}", line(&self.columns, &widths, &titles))?;
        for row in &self.rows {
            write!(f, "\n{}", line(&self.columns, &widths, row))?;
        }
        Ok(())
    }
}

fn line(columns: &[(&'static str, Align)], widths: &[usize], cells: &[String]) -> String {
    let mut line = String::new();
    for (index, (((_, align), column_width), cell)) in columns.iter().zip(widths).zip(cells).enumerate() {
        let gap = " ".repeat(column_width.saturating_sub(width(cell)));
        if index > 0 {
            line.push_str("  ");
        }
        match align {
            Align::Right => line.extend([gap.as_str(), cell]),
            Align::Left => line.extend([cell, gap.as_str()]),
        }
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(table: &Table) -> String {
        anstream::adapter::strip_str(&table.to_string()).to_string()
    }

    #[test]
    fn numbers_stand_right_and_text_left() {
        let mut table = Table::new([("QUEUE", Align::Left), ("WAITING", Align::Right)]);
        table.row(["mail".into(), "7".into()]);
        table.row(["thumbnails".into(), "12000".into()]);
        insta::assert_snapshot!(plain(&table), @r"
        QUEUE       WAITING
        mail              7
        thumbnails    12000
        ");
    }

    #[test]
    fn wide_characters_and_colours_do_not_bend_a_column() {
        let mut table = Table::new([("A", Align::Left), ("B", Align::Left)]);
        table.row(["\u{1b}[1m漢字\u{1b}[0m".into(), "x".into()]);
        table.row(["abcd".into(), "y".into()]);
        insta::assert_snapshot!(plain(&table), @r"
        A     B
        漢字  x
        abcd  y
        ");
    }
}
