//! The graph of a template as a Mermaid diagram.

use std::fmt::Write as _;

use super::model::{Condition, Items, Step, StepAction, Template, Wait, WorkKind};

/// The most characters of one line in a node.
const LINE: usize = 60;

impl Template {
    /// Returns the graph as a Mermaid flowchart.
    ///
    /// The shape of a node shows the kind of the step. Edges carry the conditions `failed` and
    /// `ended`; those from a step that chooses are dashed.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        let mut chart = String::from("flowchart TD\n");
        for (number, step) in self.steps.iter().enumerate() {
            let (open, close) = shape(step);
            // Writing into a text cannot fail.
            let _ = writeln!(chart, "    s{number}{open}\"{}\"{close}", label(step));
        }
        for (number, step) in self.steps.iter().enumerate() {
            for dependency in &step.depends_on {
                let _ = writeln!(chart, "    s{} {} s{number}", dependency.step, arrow(dependency.condition));
            }
        }
        chart
    }
}

fn shape(step: &Step) -> (&'static str, &'static str) {
    match &step.action {
        _ if !step.chooses.is_empty() => ("{", "}"),
        StepAction::Work(work) => match work.kind {
            WorkKind::Task { .. } => ("[", "]"),
            WorkKind::Run { .. } => ("[/", "/]"),
            WorkKind::Workflow { .. } | WorkKind::Orchestration { .. } => ("[[", "]]"),
        },
        StepAction::Wait(_) => ("([", "])"),
        StepAction::Signal(_) => ("{{", "}}"),
        StepAction::Value(_) => ("(", ")"),
        StepAction::Fail(_) => (">", "]"),
    }
}

fn arrow(condition: Condition) -> &'static str {
    match condition {
        Condition::Completed => "-->",
        Condition::Failed => "-->|failed|",
        Condition::Ended => "-->|ended|",
        Condition::Chosen => "-.->",
    }
}

fn label(step: &Step) -> String {
    let mut lines = vec![step.name.clone(), action(&step.action)];
    if let StepAction::Work(work) = &step.action {
        lines.extend(work.each.as_ref().map(|each| match &each.items {
            Items::List(list) => format!("each {}", list.source()),
            Items::Range { from, to, by } => format!("each {} to {} by {}", from.source(), to.source(), by.source()),
        }));
        lines.extend(work.undo.as_ref().map(|undo| format!("undo: {}", kind(&undo.kind))));
    }
    lines.extend(step.condition.as_ref().map(|condition| format!("if {}", condition.source())));
    lines.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("<br/>")
}

fn action(action: &StepAction) -> String {
    match action {
        StepAction::Work(work) => kind(&work.kind),
        StepAction::Wait(Wait::Time(time)) => format!("wait {time:?}"),
        StepAction::Wait(Wait::Text(text)) => format!("wait {}", text.source()),
        StepAction::Wait(Wait::Until(moment)) => format!("wait until {}", moment.source()),
        StepAction::Signal(signal) => format!("signal {}", signal.name),
        StepAction::Value(_) => "value".into(),
        StepAction::Fail(message) => format!("fail: {}", message.source()),
    }
}

fn kind(kind: &WorkKind) -> String {
    match kind {
        WorkKind::Task { kind } => format!("task {kind}"),
        WorkKind::Run { script, .. } => format!("run {}", script.trim()),
        WorkKind::Workflow { name, version: None } => format!("workflow {name}"),
        WorkKind::Workflow { name, version: Some(version) } => format!("workflow {name}@{version}"),
        WorkKind::Orchestration { kind } => format!("orchestration {kind}"),
    }
}

/// Cuts a line, and escapes the characters that Mermaid or HTML would interpret.
fn escaped(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    for character in line.chars().take(LINE) {
        match character {
            '0'..='9' | 'A'..='Z' | 'a'..='z' | ' ' | '.' | ',' | ':' | '-' | '_' | '/' | '@' | '$' | '(' | ')' => {
                escaped.push(character);
            }
            letter if letter.is_alphanumeric() => escaped.push(letter),
            blank if blank.is_whitespace() => escaped.push(' '),
            other => {
                let _ = write!(escaped, "#{};", u32::from(other));
            }
        }
    }
    if line.chars().nth(LINE).is_some() {
        escaped.push('…');
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::TemplateFile;

    fn chart(text: &str) -> String {
        TemplateFile::read("test.yaml", text).unwrap().template().to_mermaid()
    }

    #[test]
    fn nodes_show_kinds_and_edges_show_conditions() {
        let text = r#"
steps:
  a: {run: "echo \"<b>\"; exit 1"}
  b: {task: t, depends_on: [{a: failed}], if: "input.n > 3"}
  c: {depends_on: [{b: ended}], chooses: [d], value: [d]}
  d: {workflow: w@1, undo: {task: u}}
  e: {orchestration: o, each: {from: 0, to: input.n, by: 5}}
  f: {wait: 90s}
  g: {signal: go, depends_on: [e, f]}
  h: {fail: "no"}
"#;
        insta::assert_snapshot!(chart(text), @r#"
        flowchart TD
            s0[/"a<br/>run echo #34;#60;b#62;#34;#59; exit 1"/]
            s1["b<br/>task t<br/>if input.n #62; 3"]
            s2{"c<br/>value"}
            s3[["d<br/>workflow w@1<br/>undo: task u"]]
            s4[["e<br/>orchestration o<br/>each 0 to input.n by 5"]]
            s5(["f<br/>wait 90s"])
            s6{{"g<br/>signal go"}}
            s7>"h<br/>fail: no"]
            s0 -->|failed| s1
            s1 -->|ended| s2
            s2 -.-> s3
            s4 --> s6
            s5 --> s6
        "#);
    }

    #[test]
    fn long_lines_are_cut() {
        let script = "x".repeat(100);
        assert!(chart(&format!("- {script}\n")).contains(&format!("run {}…", "x".repeat(56))));
    }
}
