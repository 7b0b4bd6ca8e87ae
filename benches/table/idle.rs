//! How busy a driver is that nobody asks anything.

use std::time::Duration;

use crate::process::Process;
use crate::report::{Goal, Report};

/// In per cent of a core.
const CPU_GOAL: Goal = Goal::AtMost(0.1);
/// A second.
const WAKE_UPS_GOAL: Goal = Goal::AtMost(2.0);

/// Watches the process for that long.
pub fn rows(process: &Process, over: Duration, report: &mut Report) {
    let before = process.busy();
    std::thread::sleep(over);
    let after = process.busy();
    let share = (after.on_cpu - before.on_cpu).as_secs_f64() / over.as_secs_f64();
    let wake_ups = after.wake_ups_since(&before) as f64 / over.as_secs_f64();
    let over = over.as_secs();
    report.figure_of(format!("processor when idle, over {over} s"), share * 100.0, " %", Some(CPU_GOAL));
    report.figure_of(
        format!("wake-ups when idle, over {over} s"),
        wake_ups,
        " a second",
        Some(WAKE_UPS_GOAL),
    );
}
