//! `per-node trash`: lists the kept copies from the store itself, and has the serving process restore or empty them.

use std::process::ExitCode;

use jiff::Timestamp;
use per_node::adapters::cli::{LsFormat, TrashCommand, TrashFlags};
use per_node::adapters::console::Question;
use per_node::adapters::human::{size, span};
use per_node::adapters::table::{Cell, Table};
use per_node::domain::kept::{Keeping, KeptCopy};
use serde_json::{Value, json};

/// The shape of the JSON; raised when something in it changes its meaning.
const JSON_VERSION: u32 = 1;
/// What is not known.
const NONE: &str = "-";

/// Runs one of the commands.
pub fn run(flags: &TrashFlags) -> ExitCode {
    let question = match &flags.command {
        TrashCommand::Ls { format } => return list(flags, *format),
        TrashCommand::Restore { which } => Question::Restore(which.clone()),
        TrashCommand::Empty { all: true, .. } => Question::EmptyAll,
        TrashCommand::Empty { which, .. } => Question::Empty(which.clone()),
    };
    crate::ask(&flags.store, &question)
}

#[cfg(target_os = "linux")]
fn list(flags: &TrashFlags, format: LsFormat) -> ExitCode {
    match per_node::adapters::linux::kept_list::read(&flags.store) {
        Ok((kept, keeping)) => {
            match format {
                LsFormat::Table => print!("{}", table(&kept, keeping)),
                LsFormat::Json => println!("{:#}", list_json(&kept, keeping)),
            }
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("per-node: --store: {}", failure.at(&flags.store));
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn list(_: &TrashFlags, _: LsFormat) -> ExitCode {
    eprintln!("per-node: trash needs Linux");
    ExitCode::FAILURE
}

/// How much longer a copy is kept, at least, as far as the store has it on record: whole seconds. Zero where its time is
/// over, or nothing is kept any more.
fn left_seconds(copy: &KeptCopy, keeping: Option<Keeping>) -> Option<u64> {
    let keeping = keeping?;
    Some(copy.kept.left(keeping.served, keeping.trash_for).unwrap_or_default().as_secs())
}

fn removed(copy: &KeptCopy) -> String {
    let removed = Timestamp::from_second(i64::try_from(copy.kept.removed.unix_ms / 1000).unwrap_or(i64::MAX));
    removed.unwrap_or(Timestamp::MAX).to_string()
}

fn list_json(kept: &[KeptCopy], keeping: Option<Keeping>) -> Value {
    let items: Vec<Value> = kept
        .iter()
        .map(|copy| {
            json!({
                "entry": copy.id.to_string(),
                "handle": copy.handle.as_str(),
                "removed": removed(copy),
                "bytes": copy.kept.bytes,
                "leftSeconds": left_seconds(copy, keeping),
            })
        })
        .collect();
    json!({ "version": JSON_VERSION, "kept": items })
}

fn table(kept: &[KeptCopy], keeping: Option<Keeping>) -> String {
    if kept.is_empty() {
        return "no copies are kept\n".to_owned();
    }
    let mut table = Table::new(&["ENTRY", "HANDLE", "REMOVED", "SIZE", "LEFT"]);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    for copy in kept {
        let left = or_none(left_seconds(copy, keeping).map(span));
        let size = or_none(copy.kept.bytes.map(size));
        let cells = [copy.id.to_string(), copy.handle.to_string(), removed(copy), size, left];
        table.row(cells.into_iter().map(Cell::from).collect());
    }
    table.render(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use per_node::domain::handle::Handle;
    use per_node::domain::kept::{Kept, ServedTime};
    use per_node::domain::time::Wall;
    use per_node::domain::trash::TrashId;
    use std::time::Duration;

    fn copy(bytes: Option<u64>) -> KeptCopy {
        let removed = Wall { unix_ms: 1_796_000_000_999 };
        let kept = Kept { removed, since: ServedTime { ms: 1_000 }, bytes };
        KeptCopy { id: TrashId(17), handle: Handle::parse("data").unwrap(), kept }
    }

    #[test]
    fn c26_the_list_says_what_is_on_record_and_no_more() {
        let keeping =
            Keeping { served: ServedTime { ms: 61_000 }, trash_for: Some(Duration::from_secs(3600)) };
        let json = list_json(&[copy(Some(4096)), copy(None)], Some(keeping));
        let item = json!({
            "entry": "t17", "handle": "data", "removed": "2026-11-30T00:53:20Z", "bytes": 4096, "leftSeconds": 3540,
        });
        assert_eq!(json["version"], 1);
        assert_eq!(json["kept"][0], item);
        assert_eq!(json["kept"][1]["bytes"], Value::Null);
        assert_eq!(list_json(&[copy(None)], None)["kept"][0]["leftSeconds"], Value::Null);
        let text = table(&[copy(Some(4096)), copy(None)], Some(keeping));
        let lines: Vec<&str> = text.lines().collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(lines[0]), ["ENTRY", "HANDLE", "REMOVED", "SIZE", "LEFT"]);
        assert_eq!(words(lines[1]), ["t17", "data", "2026-11-30T00:53:20Z", "4.0Ki", "59m"]);
        assert_eq!(words(lines[2]), ["t17", "data", "2026-11-30T00:53:20Z", "-", "59m"]);
        assert_eq!(table(&[], None), "no copies are kept\n");
    }

    #[test]
    fn c26_where_nothing_is_kept_any_more_nothing_is_left_of_its_time() {
        let keeping = Keeping { served: ServedTime { ms: 1_000 }, trash_for: None };
        assert_eq!(left_seconds(&copy(None), Some(keeping)), Some(0));
    }
}
