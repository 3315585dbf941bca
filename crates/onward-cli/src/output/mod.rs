//! Output for people and programs: tables and JSON on stdout, progress and remarks on stderr.

mod cleaning;
mod instance;
mod json;
mod printer;
mod progress_bar;
mod record;
mod reference;
mod table;
mod text;
mod written_files;

pub(crate) use cleaning::cleaned;
pub(crate) use instance::{add_instance_fields, kept_values, orchestration_json, show_instance, written_value};
pub(crate) use json::{bytes_field, in_seconds, task_json};
pub(crate) use printer::{is_output_closed, pass_on, print_json, print_line, print_raw, remark};
pub(crate) use progress_bar::{ProgressBar, Unit};
pub(crate) use record::{indented, progress, show_task, size_text};
pub(crate) use reference::reference;
pub(crate) use table::{Align, Table, print_table};
pub(crate) use text::{colored_state, counted, duration_text, moment, moment_in, one_line, optional};
pub(crate) use written_files::UsedFiles;
