//! Expands grids: a row with axes stands for one row for each combination of their values.

use anyhow::{Context as _, Result};
use toml::{Table, Value};

/// Returns the rows that `row` stands for: one, unless it has a table `over` of axes.
///
/// Each axis is a list of values. A value that is a table adds its fields to the row. Any other
/// value becomes the field of the axis's name. In the row's name, `{field}` stands for that field,
/// and `{axis}` for the field `as` in a table of that axis.
pub(crate) fn expand(mut row: Table) -> Result<Vec<Table>> {
    let over = row.remove("over").unwrap_or_else(|| Table::new().into());
    let mut rows = vec![row];
    for (axis, values) in over.as_table().context("`over` must be a table of axes")? {
        let values = values.as_array().with_context(|| format!("the axis `{axis}` must be a list"))?;
        rows = rows.iter().flat_map(|row| values.iter().map(|value| with(row, axis, value))).collect::<Result<_>>()?;
    }
    rows.iter_mut().try_for_each(name_by_fields)?;
    Ok(rows)
}

fn with(row: &Table, axis: &str, value: &Value) -> Result<Table> {
    let mut row = row.clone();
    let Value::Table(fields) = value else {
        row.insert(axis.to_owned(), value.clone());
        return Ok(row);
    };
    let mut fields = fields.clone();
    if let Some(called) = fields.remove("as") {
        let name = row.get("name").and_then(Value::as_str).context("a row needs a name")?;
        let name = name.replace(&format!("{{{axis}}}"), &plain(&called));
        row.insert("name".to_owned(), name.into());
    }
    row.extend(fields);
    Ok(row)
}

fn name_by_fields(row: &mut Table) -> Result<()> {
    let name = row.get("name").and_then(Value::as_str).context("a row needs a name")?;
    let name = row.iter().fold(name.to_owned(), |name, (field, value)| match value {
        Value::Table(_) | Value::Array(_) => name,
        value => name.replace(&format!("{{{field}}}"), &plain(value)),
    });
    anyhow::ensure!(!name.contains('{'), "the row `{name}` has no such field");
    row.insert("name".to_owned(), name.into());
    Ok(())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>> {
        let rows = expand(toml::from_str(text)?)?;
        Ok(rows.iter().filter_map(|row| Some(row.get("name")?.as_str()?.to_owned())).collect())
    }

    #[test]
    fn each_combination_of_the_axes_is_a_row() -> Result<()> {
        let text = r#"
            name = "Q/{mode}/{count}x{rate}/{backlog}"
            [over]
            load = [{ count = 10, rate = 1 }, { count = 20, rate = 2 }]
            mode = ["strict", "lenient"]
            backlog = [{ as = "1k", backlog = { waiting = 1000 } }]
        "#;
        let expected = ["Q/strict/10x1/1k", "Q/lenient/10x1/1k", "Q/strict/20x2/1k", "Q/lenient/20x2/1k"];
        let mut expected = expected.map(str::to_owned).to_vec();
        let mut found = names(text)?;
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
        Ok(())
    }

    #[test]
    fn a_row_without_axes_has_its_fields_in_its_name_too() -> Result<()> {
        assert_eq!(names("name = \"Q/{mode}\"\nmode = \"strict\"")?, ["Q/strict"]);
        Ok(())
    }

    #[test]
    fn a_name_that_asks_for_a_field_that_is_not_there_is_refused() {
        assert!(names("name = \"Q/{speed}\"\nover = { mode = [\"strict\"] }").is_err());
    }
}
