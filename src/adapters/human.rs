//! Sizes and ages as kubectl writes them for people. Programs get bytes and times.

/// Bytes in the largest unit that leaves at least one whole, with a digit behind the point below ten.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["Ki", "Mi", "Gi", "Ti", "Pi"];
    if bytes < 1024 {
        return bytes.to_string();
    }
    // What rounds up to 1024 of a unit is one of the next.
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = "";
    for next in UNITS {
        tenths = (tenths + 512) / 1024;
        unit = next;
        if tenths < 10_235 {
            break;
        }
    }
    if tenths < 100 {
        format!("{}.{}{unit}", tenths / 10, tenths % 10)
    } else {
        format!("{}{unit}", (tenths + 5) / 10)
    }
}

/// A span as kubectl's AGE: two units at most, and one where the second would tell nothing.
pub fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: u64, unit: &str, small: u64, of: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{of}") }
    };
    match (minutes, hours, days) {
        (0..2, _, _) => format!("{seconds}s"),
        (2..10, _, _) => two(minutes, "m", seconds % 60, "s"),
        (_, 0..3, _) => format!("{minutes}m"),
        (_, 3..8, _) => two(hours, "h", minutes % 60, "m"),
        (_, 8..48, _) => format!("{hours}h"),
        (_, _, 2..8) => two(days, "d", hours % 24, "h"),
        (_, _, 8..730) => format!("{days}d"),
        (_, _, _) => two(days / 365, "y", days % 365, "d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_the_unit_that_leaves_a_whole() {
        for (bytes, expected) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0Ki"),
            (1536, "1.5Ki"),
            (10 * 1024, "10Ki"),
            (1024 * 1024 - 1, "1.0Mi"),
            (20 << 30, "20Gi"),
            (u64::MAX, "16384Pi"),
        ] {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn ages_are_as_kubectl_writes_them() {
        for (seconds, expected) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (310, "5m10s"),
            (600, "10m"),
            (3 * 3600 - 1, "179m"),
            (3 * 3600 + 720, "3h12m"),
            (30 * 3600, "30h"),
            (76 * 3600, "3d4h"),
            (30 * 86_400, "30d"),
            (800 * 86_400, "2y70d"),
        ] {
            assert_eq!(span(seconds), expected, "{seconds}");
        }
    }
}
