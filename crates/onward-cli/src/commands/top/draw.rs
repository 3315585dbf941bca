//! Drawing the model.

use std::fmt::Write as _;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};
use unicode_width::UnicodeWidthStr;

use super::model::Model;
use super::overlay::{Overlay, Question};
use super::pane::{self, Pane, RowStyle};
use crate::commands::queue::scope_text;
use crate::output::{Align, show_task};

const KEYS: &str = "q quit  tab pane  ↑↓ select  enter show  p pause  r retry  c cancel  / filter  ? help";

const HELP: &str = "\
q, Ctrl-C    quit
tab, 1 to 6  another pane; shift-tab goes back
↑ ↓, k j     select; page up, page down, g and G (home, end) go further
← →, h l     more columns, where not all fit
enter        show the selected task
p            pause the selected queue, or resume it
R            end all pauses
r            retry the selected dead letter, after a confirmation
c            cancel the selected running task, after a confirmation
/            filter all panes by a text; esc removes the filter
any key      closes this help

Rates are of the last ten seconds. `onward stats --json` has the same for programs.";

/// The width of the gap between two columns.
const GAP: u16 = 2;

/// Draws the whole view.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let parts = [Constraint::Length(3), Constraint::Fill(2), Constraint::Fill(3), Constraint::Length(1)];
    let [head, queues, below, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(heading(model)), head);
    draw_pane(frame, queues, model, Pane::Queues);
    draw_pane(frame, below, model, model.below());
    frame.render_widget(footer(model), foot);
    draw_overlay(frame, model);
}

/// Draws the view of a store that does not exist yet.
pub(super) fn draw_missing(frame: &mut Frame<'_>, location: &str) {
    let text = format!(
        "onward top  {location}\n\nThere is no store at {location} yet. This view starts when a command creates it, \
         such as onward submit or onward work.\n\nq quit"
    );
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), frame.area());
}

fn heading(model: &Model) -> Vec<Line<'static>> {
    let reading = model.reading();
    let sum = |count: fn(&onward_store::QueueRecord) -> u64| reading.queues.iter().map(count).sum::<u64>();
    let mut paused = String::new();
    for pause in &reading.pauses {
        let _ = write!(paused, "{}{}", if paused.is_empty() { "  paused: " } else { ", " }, scope_text(&pause.scope));
    }
    let rate = model.rate();
    vec![
        Line::from(vec![
            Span::styled("onward top", bold()),
            Span::raw(format!("  {}  mode {}", model.location(), reading.mode)),
            Span::styled(paused, Style::new().fg(Color::Yellow)),
        ]),
        Line::raw(format!(
            "waiting {}  running {}  scheduled {}  blocked {}  dead {}",
            sum(|queue| queue.waiting),
            sum(|queue| queue.running),
            sum(|queue| queue.scheduled),
            sum(|queue| queue.blocked),
            sum(|queue| queue.ended.dead),
        )),
        Line::raw(format!(
            "per second: submitted {:.1}  completed {:.1}  failed {:.1}  dead {:.1}  cancelled {:.1}  expired {:.1}",
            rate.submitted, rate.completed, rate.failed, rate.dead, rate.cancelled, rate.expired
        )),
    ]
}

fn footer(model: &Model) -> Paragraph<'static> {
    if matches!(model.overlay, Overlay::Filter) {
        return Paragraph::new(format!("/{}▏  enter keeps it, esc takes it away", model.filter()));
    }
    let filter = if model.filter().is_empty() { String::new() } else { format!("/{}  ", model.filter()) };
    match model.note() {
        Some(note) => Paragraph::new(note.to_owned()).style(Style::new().fg(Color::Yellow)),
        None => Paragraph::new(format!("{filter}{KEYS}")).style(Style::new().add_modifier(Modifier::DIM)),
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn draw_pane(frame: &mut Frame<'_>, area: Rect, model: &Model, pane: Pane) {
    let block = Block::bordered().title(titles(model, pane));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let rows = model.rows(pane);
    let columns = pane.columns();
    let in_sight = in_sight(columns.len(), model.shift_of(pane));
    let widths = fitting(pane, &rows, &in_sight, inner.width);
    let shown = |cells: &[String]| {
        let cells = in_sight.iter().take(widths.len()).filter_map(|at| cells.get(*at).zip(columns.get(*at)));
        cells.map(|(cell, (_, align))| aligned(cell.clone(), *align)).collect::<Vec<_>>()
    };
    let titles: Vec<String> = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
    let body = rows.iter().map(|row| Row::new(shown(&row.cells)).style(style(row.style)));
    let table = Table::new(body, widths.iter().map(|width| Constraint::Length(*width)))
        .column_spacing(GAP)
        .header(Row::new(shown(&titles)).style(bold()));
    let is_focused = model.pane() == pane;
    let table =
        if is_focused { table.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED)) } else { table };
    let selected = (!rows.is_empty()).then(|| model.selected(pane));
    frame.render_stateful_widget(table, inner, &mut TableState::default().with_selected(selected));
}

/// Returns the titles of the panes that share a part of the screen, with the title of the visible
/// one in bold.
fn titles(model: &Model, shown: Pane) -> Line<'static> {
    let here = Pane::ALL.into_iter().filter(|pane| (*pane == Pane::Queues) == (shown == Pane::Queues));
    let titles = here.flat_map(|pane| {
        let style = match (pane == shown, pane == model.pane()) {
            (_, true) => bold().fg(Color::Cyan),
            (true, false) => bold(),
            (false, false) => Style::new().add_modifier(Modifier::DIM),
        };
        [Span::raw(" "), Span::styled(format!("{} {}", pane.index() + 1, pane.title()), style), Span::raw(" ")]
    });
    Line::from(titles.collect::<Vec<_>>())
}

fn aligned(cell: String, align: Align) -> Cell<'static> {
    let line = Line::raw(cell);
    Cell::new(match align {
        Align::Left => line.left_aligned(),
        Align::Right => line.right_aligned(),
    })
}

fn style(style: RowStyle) -> Style {
    match style {
        RowStyle::Plain => Style::new(),
        RowStyle::Held => Style::new().fg(Color::Yellow),
        RowStyle::Alarm => Style::new().fg(Color::Red),
    }
}

/// Returns the columns of a pane that its shift leaves visible. The first column names the row and
/// always stays.
fn in_sight(columns: usize, shift: usize) -> Vec<usize> {
    std::iter::once(0).chain(1 + shift..columns).collect()
}

/// Returns the widths of the columns: each is as wide as its widest cell, and as many as fit are
/// drawn.
fn fitting(pane: Pane, rows: &[pane::Row], in_sight: &[usize], width: u16) -> Vec<u16> {
    let mut widths = Vec::new();
    let mut left = width;
    for index in in_sight.iter().copied() {
        let Some((title, _)) = pane.columns().get(index) else { break };
        let cells = rows.iter().filter_map(|row| row.cells.get(index)).map(|cell| cell.width());
        let wanted = cells.max().unwrap_or(0).max(title.width());
        let wanted = u16::try_from(wanted).unwrap_or(u16::MAX);
        let gap = if index == 0 { 0 } else { GAP };
        let is_last = index + 1 == pane.columns().len();
        if left < gap.saturating_add(wanted) {
            // A long text in the last column or a long name in the first may be cut. In any other
            // column a cut would mislead.
            if (is_last || index == 0) && left > gap {
                widths.push(left - gap);
            }
            break;
        }
        left -= gap + wanted;
        widths.push(wanted);
    }
    widths
}

fn draw_overlay(frame: &mut Frame<'_>, model: &Model) {
    match &model.overlay {
        Overlay::None | Overlay::Filter => {}
        Overlay::Help => draw_popup(frame, " keys ", HELP.to_owned(), 0),
        Overlay::Task(task, line) => {
            let text = anstream::adapter::strip_str(&show_task(task, None)).to_string();
            draw_popup(frame, " task ", text, *line);
        }
        Overlay::Ask(question) => {
            let (title, question) = match question {
                Question::Retry(task) => {
                    (" retry ", format!("Try task {task} again, with its attempts counted from zero?"))
                }
                Question::Cancel(task) => (" cancel ", format!("Cancel task {task}, which runs?")),
            };
            draw_popup(frame, title, format!("{question}\n\ny yes   any other key no"), 0);
        }
    }
}

fn draw_popup(frame: &mut Frame<'_>, title: &'static str, text: String, from: u16) {
    let lines = u16::try_from(text.lines().count()).unwrap_or(u16::MAX);
    let columns = text.lines().map(UnicodeWidthStr::width).max().and_then(|width| u16::try_from(width).ok());
    let area = frame.area().centered(
        Constraint::Length(columns.unwrap_or(u16::MAX).saturating_add(4)),
        Constraint::Length(lines.saturating_add(2)),
    );
    let area = area.intersection(frame.area());
    let block = Block::bordered().title(title).border_style(Style::new().fg(Color::Cyan));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text).scroll((from, 0)).block(block), area);
}
