//! The table: rows as they are measured, and all of it at the end, as Markdown and as pictures.

use std::path::Path;

use crate::Bench;
use crate::figure::Figure;
use crate::samples::{Samples, time};

/// Between these lines of docs/measurements.md is the table.
const TABLE_BEGIN: &str = "<!-- table -->";
const TABLE_END: &str = "<!-- end of the table -->";

/// What a ratio or a figure is to be.
#[derive(Clone, Copy)]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Goal::AtMost(goal) => value <= goal,
            Goal::AtLeast(goal) => value >= goal,
        }
    }

    fn text(self, unit: &str) -> String {
        match self {
            Goal::AtMost(goal) => format!("≤ {goal}{unit}"),
            Goal::AtLeast(goal) => format!("≥ {goal}{unit}"),
        }
    }
}

struct Row {
    what: String,
    driver: String,
    limit: String,
    value: String,
    goal: String,
    met: &'static str,
}

/// What has been measured so far.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
    /// How each limit was measured, in the order of the rows.
    limits: Vec<(&'static str, &'static str)>,
    figures: Vec<Figure>,
}

impl Report {
    /// What the next rows are about, and how their limit is measured.
    pub fn begin(&mut self, what: &'static str, limit: &'static str) {
        println!("\n{what}; limit: {limit}");
        self.limits.push((what, limit));
    }

    /// Two sides that were timed in turns, by p50 and p99; the goal is for both.
    pub fn ratios(&mut self, what: String, driver: &Samples, limit: &Samples, goal: Goal) {
        let (middle, tail) = (driver.p50() / limit.p50(), driver.p99() / limit.p99());
        let is_met = goal.is_met(middle) && goal.is_met(tail);
        self.pair(what, driver, limit, (middle, tail), goal, is_met);
    }

    /// As `ratios`, with a goal for the p99 alone.
    pub fn ratio_of_p99(&mut self, what: String, driver: &Samples, limit: &Samples, goal: Goal) {
        let (middle, tail) = (driver.p50() / limit.p50(), driver.p99() / limit.p99());
        self.pair(what, driver, limit, (middle, tail), goal, goal.is_met(tail));
    }

    fn pair(
        &mut self,
        what: String,
        driver: &Samples,
        limit: &Samples,
        (middle, tail): (f64, f64),
        goal: Goal,
        is_met: bool,
    ) {
        let both = |samples: &Samples| format!("{} / {}", time(samples.p50()), time(samples.p99()));
        self.add(Row {
            what: format!("{what}, p50 / p99"),
            driver: both(driver),
            limit: both(limit),
            value: format!("{middle:.2} / {tail:.2}"),
            goal: goal.text(""),
            met: word(is_met),
        });
    }

    /// Two figures and their ratio.
    pub fn ratio(&mut self, what: String, driver: String, limit: String, ratio: f64, goal: Goal) {
        let (value, goal_text) = (format!("{ratio:.2}"), goal.text(""));
        self.add(Row { what, driver, limit, value, goal: goal_text, met: word(goal.is_met(ratio)) });
    }

    /// A figure that has a limit of its own.
    pub fn figure_of(&mut self, what: String, value: f64, unit: &'static str, goal: Option<Goal>) {
        let (goal_text, met) = match goal {
            Some(goal) => (goal.text(unit), word(goal.is_met(value))),
            None => ("–".to_owned(), "–"),
        };
        let driver = format!("{}{unit}", significant(value));
        self.add(Row { what, driver, limit: "–".into(), value: "–".into(), goal: goal_text, met });
    }

    /// A difference between two times.
    pub fn difference_ms(&mut self, what: String, driver: f64, limit: f64, goal: Goal) {
        let more_ms = (driver - limit) * 1e3;
        self.add(Row {
            what,
            driver: time(driver),
            limit: time(limit),
            value: format!("{more_ms:.1} ms more"),
            goal: goal.text(" ms more"),
            met: word(goal.is_met(more_ms)),
        });
    }

    /// A row that could not be measured, and why.
    pub fn missing(&mut self, what: &str, why: &str) {
        let dash = || "–".to_owned();
        let (what, driver) = (what.to_owned(), why.to_owned());
        self.add(Row { what, driver, limit: dash(), value: dash(), goal: dash(), met: "–" });
    }

    /// A picture of how a cost grows.
    pub fn picture(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// Prints the whole table, and writes it and its pictures into `directory`; with `PER_NODE_BENCH_DOCS=yes` also into
    /// docs/.
    pub fn write(&self, directory: &Path, bench: &Bench) {
        let page = self.page(bench);
        println!("\n{page}");
        self.draw(directory);
        std::fs::write(directory.join("table.md"), &page).expect("written");
        println!("written to {}: table.md and {} pictures", directory.display(), self.figures.len());
        if std::env::var_os("PER_NODE_BENCH_DOCS").is_some_and(|value| value == "yes") {
            let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
            self.draw(&docs.join("figures"));
            let document = docs.join("measurements.md");
            let text = std::fs::read_to_string(&document).expect("docs/measurements.md");
            let (before, rest) = text.split_once(TABLE_BEGIN).expect("where the table begins");
            let (_, after) = rest.split_once(TABLE_END).expect("where the table ends");
            let text = format!("{before}{TABLE_BEGIN}\n\n{page}\n{TABLE_END}{after}");
            std::fs::write(document, text).expect("written");
        }
    }

    fn draw(&self, directory: &Path) {
        std::fs::create_dir_all(directory).expect("the directory of the pictures");
        for figure in &self.figures {
            std::fs::write(directory.join(format!("{}.svg", figure.name)), figure.svg()).expect("written");
        }
    }

    fn page(&self, bench: &Bench) -> String {
        let kernel = nix::sys::utsname::uname().expect("uname");
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or_default();
        let mut page = format!(
            "Sizes: {}. {cores} cores, kernel {}, load at the end {load}, driver {}.\n\n\
             | what | driver | limit | ratio | goal | met |\n|---|---|---|---|---|---|\n",
            bench.sizes.name,
            kernel.release().to_string_lossy(),
            bench.binary.file_name().unwrap_or_default().to_string_lossy(),
        );
        for row in &self.rows {
            page.push_str(&row.line());
            page.push('\n');
        }
        page.push_str("\nHow each limit was measured:\n\n");
        for (what, limit) in &self.limits {
            page.push_str(&format!("- {what}: {limit}.\n"));
        }
        page
    }

    fn add(&mut self, row: Row) {
        println!("{}", row.line());
        self.rows.push(row);
    }
}

impl Row {
    fn line(&self) -> String {
        let Row { what, driver, limit, value, goal, met } = self;
        format!("| {what} | {driver} | {limit} | {value} | {goal} | {met} |")
    }
}

fn word(is_met: bool) -> &'static str {
    if is_met { "yes" } else { "**no**" }
}

/// Two digits after the point, more where that would say nothing.
fn significant(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.01 { format!("{value:.4}") } else { format!("{value:.2}") }
}
