//! `onward workflow list`

use onward::Engine;
use onward::workflow::library::{TemplateQuery, TemplateRecord};

use super::command::open_to_read;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, moment, print_json, print_table, remark};

/// The number of templates that are read at once.
const PAGE: usize = 1000;

/// Lists the stored templates.
pub(crate) async fn run(options: &GlobalOptions) -> anyhow::Result<ExitCode> {
    let templates = all(&open_to_read(options).await?).await?;
    if options.json {
        for template in &templates {
            print_json(template)?;
        }
    } else if templates.is_empty() {
        remark("no templates; onward workflow put stores one");
    } else {
        print_table(table(&templates))?;
    }
    Ok(ExitCode::Done)
}

async fn all(engine: &Engine) -> anyhow::Result<Vec<TemplateRecord>> {
    let (mut query, mut templates) = (TemplateQuery { after: None, limit: PAGE }, Vec::new());
    loop {
        let page = engine.templates(query.clone()).await?;
        templates.extend(page.templates);
        query.after = page.next;
        if query.after.is_none() {
            return Ok(templates);
        }
    }
}

fn table(templates: &[TemplateRecord]) -> Table {
    let mut table = Table::new(vec![
        ("WORKFLOW", Align::Left),
        ("LABEL", Align::Left),
        ("NEWEST", Align::Left),
        ("PUT", Align::Left),
        ("HASH", Align::Left),
    ])
    .dropping(&["HASH", "PUT"]);
    for template in templates {
        table.row(vec![
            template.name.clone(),
            template.label.clone(),
            if template.is_newest { "yes" } else { "no" }.to_owned(),
            moment(template.put_at),
            template.hash.label(),
        ]);
    }
    table
}
