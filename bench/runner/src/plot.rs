//! Bar charts in SVG, on a logarithmic scale.

use std::fmt::Write as _;

/// A bar.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) value: f64,
    /// The index of its colour.
    pub(crate) series: usize,
}

const COLOURS: [&str; 4] = ["#2b6cb0", "#a0aec0", "#718096", "#dd6b20"];
const LABELS: f64 = 330.0;
const WIDTH: f64 = 520.0;
const STEP: f64 = 22.0;

/// Returns a chart of horizontal bars, with a dashed line at `mark`. Leaves out bars without a
/// positive value.
pub(crate) fn bars(title: &str, bars: &[Bar], mark: Option<f64>) -> String {
    let shown: Vec<&Bar> = bars.iter().filter(|bar| bar.value > 0.0).collect();
    let values = || shown.iter().map(|bar| bar.value).chain(mark);
    let lowest = values().fold(f64::INFINITY, f64::min).min(1.0).log10().floor();
    let highest = values().fold(f64::NEG_INFINITY, f64::max).log10().ceil().max(lowest + 1.0);
    let x = |value: f64| (value.log10() - lowest) / (highest - lowest) * WIDTH;
    let height = 50.0 + STEP * shown.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"10\" y=\"22\" font-size=\"14\">{title}</text>\n",
        LABELS + WIDTH + 90.0
    );
    for (index, bar) in shown.iter().enumerate() {
        let (y, width) = (40.0 + STEP * index as f64, x(bar.value).max(1.0));
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{LABELS}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"16\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{}\">{}</text>",
            LABELS - 8.0,
            y + 12.0,
            bar.label,
            COLOURS[bar.series % COLOURS.len()],
            LABELS + width + 6.0,
            y + 12.0,
            crate::table::figure(bar.value)
        );
    }
    if let Some(mark) = mark {
        let at = LABELS + x(mark);
        let _ = writeln!(svg, "<path d=\"M{at:.1} 34V{height}\" stroke=\"black\" stroke-dasharray=\"4\"/>");
    }
    svg + "</svg>\n"
}
