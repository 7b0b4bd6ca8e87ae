//! The kernel's mount table: any bytes are read whole or refused, and what was read is what stood there (C15).

use per_node::adapters::linux::mountinfo::{self, MountLine};
use proptest::prelude::*;

use super::runner::{fuzz, mutated};

const WORDS: &[&str] = &[
    " - ",
    "\\040",
    "\\134",
    "\\377",
    "shared:1 ",
    "master:2 ",
    "propagate_from:3 ",
    "//deleted",
    "\n",
    "  ",
    "18446744073709551615 ",
    "4294967296:0 ",
    "0:1 ",
    "-",
    "rw,",
];

/// As the kernel writes a line, every byte of a name escaped that could be taken for something else.
fn written(lines: &[MountLine]) -> Vec<u8> {
    let escaped = |name: &[u8]| -> String {
        name.iter()
            .map(|byte| match byte {
                b'!'..=b'[' | b']'..=b'~' => char::from(*byte).to_string(),
                other => format!("\\{other:03o}"),
            })
            .collect()
    };
    let mut table = Vec::new();
    for line in lines {
        let (major, minor) = line.device;
        table.extend(format!("{} {} {major}:{minor} ", line.id, line.parent).bytes());
        table.extend(format!("{} {} ", escaped(&line.root), escaped(&line.mount_point)).bytes());
        table.extend(&line.options);
        let group = |name: &str, group: Option<u64>| {
            group.map(|group| format!(" {name}:{group}")).unwrap_or_default()
        };
        table.extend(group("shared", line.shared).bytes().chain(group("master", line.master).bytes()));
        table.extend(format!(" - {} source ", escaped(&line.fs_type)).bytes());
        table.extend(&line.super_options);
        table.push(b'\n');
    }
    table
}

#[test]
fn c15_a_mount_table_is_read_whole_or_not_at_all() {
    fuzz("mountinfo", 1000, &mutated("mountinfo", WORDS), |table| {
        let Ok(lines) = mountinfo::parse(&table) else { return Ok(()) };
        let body = table.strip_suffix(b"\n").unwrap_or(&table);
        let stand_there = if body.is_empty() { 0 } else { body.split(|byte| *byte == b'\n').count() };
        prop_assert_eq!(lines.len(), stand_there, "a line was passed over");
        for line in &lines {
            prop_assert!(!line.root.is_empty() && !line.mount_point.is_empty());
        }
        prop_assert_eq!(mountinfo::parse(&written(&lines)), Ok(lines));
        Ok(())
    });
}
