//! Events as `kubectl describe pod` prints them: the same columns, the same ages. Only a message that is longer
//! than its column is wrapped inside it, so that it fits a terminal.

use std::time::Duration;

use super::text::{COLUMNS_MAX, wrap};

/// One event as it is on the day it is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub reason: String,
    pub count: u32,
    /// How long ago it happened first, and last.
    pub since_first: Duration,
    pub since_last: Duration,
    pub from: String,
    pub message: String,
}

const TITLES: [&str; 5] = ["Type", "Reason", "Age", "From", "Message"];
const INDENT: usize = 2;
const GAP: usize = 2;
/// A message gets at least so many columns, however wide the others are.
const MESSAGE_COLUMNS_MIN: usize = 24;

/// The block that begins with `Events:`; `indent` is what the caller puts before each line.
pub fn describe(events: &[Described], indent: usize) -> Vec<String> {
    if events.is_empty() {
        return vec!["Events:  <none>".to_owned()];
    }
    let rows: Vec<[String; 4]> = events
        .iter()
        .map(|event| ["Warning".to_owned(), event.reason.clone(), age(event), event.from.clone()])
        .collect();
    let width = |column: usize| {
        rows.iter().map(|row| row[column].len()).chain([TITLES[column].len()]).max().unwrap_or_default()
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let before: usize = INDENT + widths.iter().map(|width| width + GAP).sum::<usize>();
    let room = COLUMNS_MAX.saturating_sub(before + indent).max(MESSAGE_COLUMNS_MIN);
    let line = |cells: [&str; 5]| {
        let mut line = " ".repeat(INDENT);
        for (cell, width) in cells.iter().zip(widths) {
            line.push_str(&format!("{cell:<width$}{}", " ".repeat(GAP)));
        }
        line.push_str(cells[4]);
        line.trim_end().to_owned()
    };
    let mut lines = vec!["Events:".to_owned(), line(TITLES)];
    lines.push(line(TITLES.map(|title| &"-------"[..title.len()])));
    for (row, event) in rows.iter().zip(events) {
        for (number, part) in wrap(&event.message, room).iter().enumerate() {
            let cells = if number == 0 {
                [&*row[0], &*row[1], &*row[2], &*row[3], part]
            } else {
                ["", "", "", "", part]
            };
            lines.push(line(cells));
        }
    }
    lines
}

/// The age column: of an event that repeated, its last time, how often, and since when.
pub fn age(event: &Described) -> String {
    if event.count > 1 {
        let (last, first) = (human(event.since_last), human(event.since_first));
        format!("{last} (x{} over {first})", event.count)
    } else {
        human(event.since_first)
    }
}

/// A span as kubectl shortens it: the larger it is, the coarser.
pub fn human(span: Duration) -> String {
    let seconds = span.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with = |large: u64, unit: char, small: u64, small_unit: char| match small {
        0 => format!("{large}{unit}"),
        small => format!("{large}{unit}{small}{small_unit}"),
    };
    match (minutes, hours, days) {
        (0..2, _, _) => format!("{seconds}s"),
        (2..10, _, _) => with(minutes, 'm', seconds % 60, 's'),
        (10..180, _, _) => format!("{minutes}m"),
        (_, 0..8, _) => with(hours, 'h', minutes % 60, 'm'),
        (_, 8..48, _) => format!("{hours}h"),
        (_, _, 0..8) => with(days, 'd', hours % 24, 'h'),
        (_, _, 8..730) => format!("{days}d"),
        (_, _, 730..2920) => with(days / 365, 'y', days % 365, 'd'),
        (_, _, 2920..) => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn held(count: u32) -> Described {
        Described {
            reason: "PerNodeVolumeHeld".into(),
            count,
            since_first: seconds(120),
            since_last: seconds(5),
            from: "per-node.liken.sh".into(),
            message: "volume a is held on this node by pod b/c: it mounts here once that pod is gone".into(),
        }
    }

    #[test]
    fn spans_are_shortened_as_kubectl_does() {
        for (span, expect) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ] {
            assert_eq!(human(seconds(span)), expect, "{span} s");
        }
    }

    #[test]
    fn c31_a_refusal_that_repeats_is_one_line_with_its_count() {
        assert_eq!(age(&held(1)), "2m");
        assert_eq!(age(&held(3)), "5s (x3 over 2m)");
        let hour = Described { since_first: seconds(3600), ..held(37) };
        assert_eq!(age(&hour), "5s (x37 over 60m)");
    }

    #[test]
    fn a_pod_without_events_says_so() {
        assert_eq!(describe(&[], 3), ["Events:  <none>"]);
    }

    #[test]
    fn columns_are_aligned_and_a_long_message_stays_in_its_own() {
        let lines = describe(&[held(3)], 3);
        let at = lines[1].find("Message").unwrap();
        assert_eq!(lines[0], "Events:");
        assert_eq!(lines[1][..at].trim_end(), "  Type     Reason             Age              From");
        assert_eq!(lines[2][..at].trim_end(), "  ----     ------             ---              ----");
        assert_eq!(
            lines[3][..at].trim_end(),
            "  Warning  PerNodeVolumeHeld  5s (x3 over 2m)  per-node.liken.sh"
        );
        assert!(lines[4..].iter().all(|line| line[..at].trim().is_empty()));
        assert!(lines.iter().all(|line| line.len() + 3 <= COLUMNS_MAX), "{lines:#?}");
        let message: Vec<&str> = lines[3..].iter().map(|line| line[at..].trim()).collect();
        assert_eq!(message.join(" "), held(3).message);
    }
}
