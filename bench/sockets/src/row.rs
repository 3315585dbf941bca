//! What is measured, and how it is told.

/// How messages are sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// At the same time, by two tasks.
    Stream,
    /// The same, and taken many at once.
    Many,
    /// By one task: 1024 out, then 1024 in.
    Batch,
    /// By one task: one out, and back, and so on. The value is microseconds for one.
    RoundTrip,
}

/// One row for every system.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// The types.
    pub pair: &'static str,
    /// How.
    pub shape: Shape,
    /// The payload of a message, in bytes.
    pub bytes: usize,
}

impl Workload {
    /// All of them.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for bytes in [64, 4096, 65_536] {
            for shape in [Shape::Stream, Shape::Many, Shape::Batch] {
                all.push(Self { pair: "push_pull", shape, bytes });
            }
        }
        for shape in [Shape::Stream, Shape::Batch] {
            all.push(Self { pair: "dealer_router", shape, bytes: 4096 });
        }
        all.push(Self { pair: "dealer_router", shape: Shape::RoundTrip, bytes: 64 });
        all
    }

    /// The row's name.
    pub fn name(&self) -> String {
        let shape = match self.shape {
            Shape::Stream => "stream",
            Shape::Many => "recv_many",
            Shape::Batch => "batch",
            Shape::RoundTrip => "round_trip",
        };
        format!("M/{}_ipc_{shape}/{}", self.pair, self.bytes)
    }
}

/// A system's values for a workload.
pub struct Row {
    /// Who.
    pub system: &'static str,
    workload: Workload,
    /// One for each round; `None` where it could not be measured.
    pub values: Vec<Option<f64>>,
}

impl Row {
    /// Without values yet.
    pub fn new(system: &'static str, workload: Workload) -> Self {
        Self { system, workload, values: Vec::new() }
    }

    /// One line.
    pub fn json(&self) -> String {
        let mut values: Vec<f64> = self.values.iter().copied().flatten().collect();
        values.sort_by(f64::total_cmp);
        let (unit, better) = match self.workload.shape {
            Shape::RoundTrip => ("us/op", "lower"),
            _ => ("messages/s", "higher"),
        };
        let name = self.workload.name();
        let (Some(min), Some(max)) = (values.first(), values.last()) else {
            return format!(r#"{{"row":"{name}","system":"{}","missing":true}}"#, self.system);
        };
        let median = values[values.len() / 2];
        format!(
            r#"{{"row":"{name}","system":"{}","value":{median:.1},"unit":"{unit}","better":"{better}","min":{min:.1},"max":{max:.1},"runs":{}}}"#,
            self.system,
            values.len()
        )
    }
}
