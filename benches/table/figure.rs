//! A picture of how a cost grows with a size: an SVG of some lines on logarithmic axes, readable on white and on black.
//!
//! Drawn by hand, because a library for this would be larger than what it draws.

use std::fmt::Write;

use crate::samples::number;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Around the axes: room for what is written there.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 50.0;
/// What a name in the legend takes besides its letters, and each of those.
const LEGEND_SPACE: f64 = 50.0;
const LEGEND_LETTER: f64 = 6.5;
/// A line's colours, of a brightness that both backgrounds leave visible.
const COLOURS: [&str; 4] = ["#1f77d0", "#d9661f", "#2a9d57", "#a05fc4"];
const STYLE: &str = "text{font:12px sans-serif;fill:#57606a}.title{font-size:14px;font-weight:bold}\
    .grid{stroke:#8888;stroke-width:.5}.line{fill:none;stroke-width:2}\
    @media(prefers-color-scheme:dark){text{fill:#b1bac4}}";

/// One line: its name and its points.
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// What is measured along the upright axis.
#[derive(Clone, Copy)]
pub enum Unit {
    Seconds,
    MebiBytes,
    PerSecond,
}

pub struct Figure {
    /// Of the file.
    pub name: &'static str,
    pub title: &'static str,
    /// What the sizes are of.
    pub sizes: &'static str,
    pub unit: Unit,
    pub lines: Vec<Line>,
}

/// From a value to a place, by its logarithm.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (low, high) = values
            .fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| (low.min(value), high.max(value)));
        // Whole decades, so that a flat line looks flat.
        let (low, high) = (10f64.powf(low.log10().floor()), 10f64.powf(high.log10().ceil()));
        Axis { low, high: if high > low { high } else { low * 10.0 }, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value / self.low).log10() / (self.high / self.low).log10();
        self.from + share * (self.to - self.from)
    }

    /// The powers of ten on it.
    fn decades(&self) -> impl Iterator<Item = f64> {
        let (first, last) = (self.low.log10().round(), self.high.log10().round());
        #[allow(clippy::cast_possible_truncation)] // a dozen at most
        (first as i32..=last as i32).map(|power| 10f64.powi(power))
    }
}

impl Unit {
    fn axis(self) -> &'static str {
        match self {
            Unit::Seconds => "time",
            Unit::MebiBytes => "resident memory",
            Unit::PerSecond => "publishes a second",
        }
    }

    fn label(self, value: f64) -> String {
        match self {
            Unit::Seconds if value < 0.99e-3 => format!("{:.0} µs", value * 1e6),
            Unit::Seconds if value < 0.99 => format!("{:.0} ms", value * 1e3),
            Unit::Seconds => format!("{value:.0} s"),
            Unit::MebiBytes => format!("{value:.0} MiB"),
            Unit::PerSecond => format!("{value:.0}"),
        }
    }
}

impl Figure {
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| line.points.iter());
        let across = Axis::over(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
        let up = Axis::over(points().map(|point| point.1), HEIGHT - BOTTOM, TOP);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n",
            self.title
        );
        let mut add = |element: String| writeln!(svg, "{element}").expect("a string takes all");
        let text = |x: f64, y: f64, more: &str, words: &str| {
            format!("<text x=\"{x:.0}\" y=\"{y:.0}\" {more}>{words}</text>")
        };
        let grid = |x1: f64, y1: f64, x2: f64, y2: f64| {
            format!("<path class=\"grid\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>")
        };
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        add(text(LEFT, 20.0, "class=\"title\"", self.title));
        for size in across.decades() {
            let x = across.at(size);
            add(grid(x, TOP, x, bottom));
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // a size is a small whole number
            add(text(x, bottom + 18.0, "text-anchor=\"middle\"", &number(size.round() as usize)));
        }
        add(text((LEFT + right) / 2.0, HEIGHT - 10.0, "text-anchor=\"middle\"", self.sizes));
        for value in up.decades() {
            let y = up.at(value);
            add(grid(LEFT, y, right, y));
            add(text(LEFT - 6.0, y + 4.0, "text-anchor=\"end\"", &self.unit.label(value)));
        }
        let middle = (TOP + bottom) / 2.0;
        let turned = format!("text-anchor=\"middle\" transform=\"rotate(-90 14 {middle:.0})\"");
        add(text(14.0, middle, &turned, self.unit.axis()));
        let mut legend = LEFT;
        for (at, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            // What is a limit is dashed: every second line.
            let dashes = if at % 2 == 1 { " stroke-dasharray=\"6 4\"" } else { "" };
            let path: Vec<String> =
                line.points.iter().map(|&(x, y)| format!("{:.1} {:.1}", across.at(x), up.at(y))).collect();
            add(format!("<path class=\"line\" stroke=\"{colour}\"{dashes} d=\"M{}\"/>", path.join("L")));
            for &(x, y) in &line.points {
                let (x, y) = (across.at(x), up.at(y));
                add(format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"));
            }
            add(format!("<path class=\"line\" stroke=\"{colour}\"{dashes} d=\"M{legend:.0} 38h24\"/>"));
            add(text(legend + 30.0, 42.0, "", &line.name));
            legend += LEGEND_SPACE + LEGEND_LETTER * line.name.chars().count() as f64;
        }
        svg.push_str("</svg>\n");
        svg
    }
}
