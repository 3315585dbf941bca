//! A small aligned table, fitted to the terminal.

use std::fmt;
use std::io::{self, IsTerminal as _};

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::printer::{print_line, remark};
use super::text::one_line;

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// Rows under a bold header, in columns as wide as their widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
    /// The titles of columns that are left out on a narrow terminal, the first one first.
    droppable: &'static [&'static str],
}

/// The width of the gap between two columns.
const GAP: usize = 2;

/// The smallest width to which a column of text may be shortened.
const SHORTEST: usize = 12;

/// Prints a table. On a terminal the table is fitted to its width: the least important columns are
/// left out, and a remark names them. Then long texts are shortened.
pub(crate) fn print_table(mut table: Table) -> io::Result<()> {
    let left_out = terminal_width().map(|width| table.fit(width)).unwrap_or_default();
    print_line(table)?;
    if !left_out.is_empty() {
        remark(format_args!("left out here: {}; a wider terminal or --json shows all", left_out.join(", ")));
    }
    Ok(())
}

/// Returns the width of the terminal, if standard output is one.
fn terminal_width() -> Option<usize> {
    let size = io::stdout().is_terminal().then(|| rustix::termios::tcgetwinsize(io::stdout()))?;
    size.ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0)
}

impl Table {
    /// Creates a table without rows.
    pub(crate) fn new(columns: impl Into<Vec<(&'static str, Align)>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new(), droppable: &[] }
    }

    /// Sets the columns that may be left out on a narrow terminal, the least important first.
    pub(crate) fn dropping(mut self, droppable: &'static [&'static str]) -> Self {
        self.droppable = droppable;
        self
    }

    /// Fits the table into `available` columns as far as possible. Returns the titles of the
    /// columns that it left out.
    fn fit(&mut self, available: usize) -> Vec<&'static str> {
        let mut left_out = Vec::new();
        for title in self.droppable {
            if self.shortest() <= available {
                break;
            }
            if let Some(index) = self.columns.iter().position(|(column, _)| column == title) {
                self.columns.remove(index);
                self.rows.iter_mut().filter(|row| index < row.len()).for_each(|row| drop(row.remove(index)));
                left_out.push(*title);
            }
        }
        self.shorten(available);
        left_out
    }

    /// Returns the width of the table with each text as short as possible.
    fn shortest(&self) -> usize {
        let widths = self.widths();
        let shortened = (0..widths.len()).map(|column| widths[column].min(self.least(column)));
        shortened.sum::<usize>() + self.gaps()
    }

    /// Returns the width below which a column is not shortened. Numbers, states and moments are
    /// useless if shortened.
    fn least(&self, column: usize) -> usize {
        let (title, align) = self.columns[column];
        let is_whole = align == Align::Right || matches!(title, "STATE" | "SUBMITTED" | "FINISHED" | "NEXT" | "LAST");
        if is_whole { usize::MAX } else { SHORTEST.max(title.len()) }
    }

    fn gaps(&self) -> usize {
        GAP * self.columns.len().saturating_sub(1)
    }

    /// Shortens the widest texts until the table fits, or none can be shortened further.
    fn shorten(&mut self, available: usize) {
        let mut widths = self.widths();
        let natural = widths.clone();
        while widths.iter().sum::<usize>() + self.gaps() > available {
            let long = (0..widths.len()).filter(|column| widths[*column] > self.least(*column));
            let Some(widest) = long.max_by_key(|column| widths[*column]) else { break };
            widths[widest] -= 1;
        }
        for column in (0..widths.len()).filter(|column| widths[*column] < natural[*column]) {
            let cells = self.rows.iter_mut().filter_map(|row| row.get_mut(column));
            cells.for_each(|cell| *cell = one_line(cell, widths[column]));
        }
    }

    /// Adds a row, with one cell per column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |index: usize| self.rows.iter().filter_map(|row| row.get(index)).map(|cell| width(cell)).max();
        let columns = self.columns.iter().enumerate();
        columns.map(|(index, (title, _))| widest(index).unwrap_or(0).max(title.len())).collect()
    }
}

/// Returns the width of a cell on a terminal, without its colour sequences.
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
            line.push_str(&" ".repeat(GAP));
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

    fn tasks() -> Table {
        let columns = [("TASK", Align::Right), ("KIND", Align::Left), ("TRIES", Align::Right), ("KEY", Align::Left)];
        let mut table = Table::new(columns).dropping(&["TRIES"]);
        table.row(["1".into(), "a-kind-with-a-long-name".into(), "1".into(), "a-key-that-is-long-too".into()]);
        table
    }

    #[test]
    fn a_table_that_fits_is_left_alone() {
        let mut table = tasks();
        let whole = plain(&table);
        assert_eq!((table.fit(80), plain(&table)), (Vec::new(), whole));
    }

    #[test]
    fn long_texts_are_shortened_to_the_width_of_the_terminal() {
        let mut table = tasks();
        assert_eq!(table.fit(45), [""; 0]);
        insta::assert_snapshot!(plain(&table), @r"
        TASK  KIND             TRIES  KEY
           1  a-kind-with-a-…      1  a-key-that-is-…
        ");
    }

    #[test]
    fn columns_of_least_interest_are_left_out_where_shortening_does_not_do() {
        let mut table = tasks();
        assert_eq!(table.fit(34), ["TRIES"]);
        assert!(plain(&table).lines().all(|line| line.chars().count() <= 34), "{table}");
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
