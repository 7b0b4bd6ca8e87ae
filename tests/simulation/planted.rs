//! Faults of thought, planted one at a time in a copy of the driver: the simulation must find each with the seeds that every
//! run of it tries. A simulation that finds none of them would prove nothing.
//!
//! `cargo test --test simulation planted -- --ignored --nocapture` plants them all and takes a quarter of an hour;
//! `PER_NODE_PLANT=name` plants one. That each can still be planted is asked by every `cargo test`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One fault: in this file this text, which is there once, becomes that one.
struct Planted {
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

const fn planted(name: &'static str, file: &'static str, from: &'static str, to: &'static str) -> Planted {
    Planted { name, file, from, to }
}

const PUBLISH: &str = "domain/use_cases/publish.rs";
const UNPUBLISH: &str = "domain/use_cases/unpublish.rs";
const RECONCILE: &str = "domain/use_cases/reconcile.rs";
const SWEEP: &str = "domain/sweep.rs";
const SEARCH: &str = "domain/use_cases/proof_search.rs";
const CONFIRM: &str = "domain/use_cases/confirm.rs";
const KEPT: &str = "domain/use_cases/kept.rs";
const LIMIT: &str = "domain/use_cases/sweep_limit.rs";
const EVENTS: &str = "domain/event_series.rs";

const FAULTS: [Planted; 36] = [
    planted(
        "c12_another_holder_is_let_in",
        "domain/publish.rs",
        "observed.holds.other_than(observed.pod) {",
        "observed.holds.other_than(observed.pod).filter(|_| false) {",
    ),
    planted(
        "c10_a_publish_does_not_keep_its_lock",
        PUBLISH,
        "let _guard = self.locks.lock(handle.as_str()).await;",
        "drop(self.locks.lock(handle.as_str()).await);",
    ),
    planted(
        "c16_no_journal_is_written",
        PUBLISH,
        "let written = ports.records.put_target(&journal).await;",
        "let written: Result<(), RecordsError> = Ok(drop(journal));",
    ),
    planted("c16_a_mount_is_not_taken_back", PUBLISH, "if made.mount {", "if false {"),
    planted("c16_a_target_is_not_taken_back", PUBLISH, "if made.target {", "if false {"),
    planted(
        "c16_a_new_copy_is_not_taken_back",
        PUBLISH,
        "if let Some(identity) = made.copy {",
        "if let Some(identity) = made.copy.filter(|_| false) {",
    ),
    planted(
        "c16_a_final_answer_settles_nothing",
        PUBLISH,
        "let settled = self.settle_journal(&handle, &target).await;",
        "let settled: Result<(), String> = Ok(());",
    ),
    planted(
        "c15_no_hold_is_written",
        PUBLISH,
        "ports.records.put_target(&held).await.map_err(journal_failed)",
        "Ok(drop(held))",
    ),
    planted("c11_a_half_known_mount_stays_half_known", PUBLISH, "if is_complete {", "if true {"),
    planted(
        "c12_a_failed_look_is_final",
        PUBLISH,
        "PublishError::Refused { refusal: Refusal::Failed(step), target_was_there: true }",
        "PublishError::Refused { refusal: Refusal::Failed(step), target_was_there: false }",
    ),
    planted(
        "c12_a_refusal_is_final_where_the_target_was",
        PUBLISH,
        "Decision::Refuse(refusal) => {\n                Err(PublishError::Refused { refusal, target_was_there: view.is_there() })",
        "Decision::Refuse(refusal) => {\n                Err(PublishError::Refused { refusal, target_was_there: false })",
    ),
    planted(
        "c15_a_stale_hold_stays_on_record",
        RECONCILE,
        "TargetState::Held => self.drop_if_unmounted(&record).await,",
        "TargetState::Held => Ok(()),",
    ),
    planted(
        "c16_a_start_undoes_nothing",
        RECONCILE,
        "TargetState::Attaching(makes) => self.undo_journal(&record, makes).await,",
        "TargetState::Attaching(_) => Ok(()),",
    ),
    planted(
        "c10_a_reconciliation_does_not_keep_its_lock",
        RECONCILE,
        "let _guard = self.locks.lock(stale.handle.as_str()).await;",
        "drop(self.locks.lock(stale.handle.as_str()).await);",
    ),
    planted(
        "c16_every_target_counts_as_forgotten",
        RECONCILE,
        "let outcome = match self.is_forgotten(target).await {",
        "let outcome = match self.is_forgotten(target).await.map(|_| true) {",
    ),
    planted(
        "c16_no_target_counts_as_forgotten",
        RECONCILE,
        "let outcome = match self.is_forgotten(target).await {",
        "let outcome = match self.is_forgotten(target).await.map(|_| false) {",
    ),
    planted(
        "c17_an_unpublish_leaves_the_directory",
        UNPUBLISH,
        "if with_directory {\n                    self.remove_target(target).await?;\n                }",
        "",
    ),
    planted("c22_a_named_copy_is_removed", SWEEP, "if facts.named {", "if false {"),
    planted(
        "c22_what_vanished_unseen_goes_at_the_first_tick",
        SWEEP,
        "if facts.deletion_seen || facts.unnamed_at_earlier_tick {",
        "if true {",
    ),
    planted("c22_the_epoch_is_not_asked", SWEEP, "if !facts.epoch_is_the_same {", "if false {"),
    planted("c23_a_copy_in_use_is_removed", SWEEP, "facts.in_use.then_some", "false.then_some"),
    planted(
        "c22_a_revision_that_went_back_is_believed",
        SWEEP,
        "before.went_back || answer < before.highest",
        "before.went_back",
    ),
    planted(
        "c22_what_the_store_noticed_is_not_asked",
        SWEEP,
        "before.went_back || answer < before.highest",
        "answer < before.highest",
    ),
    planted(
        "c22_another_cluster_is_believed",
        SWEEP,
        "Some(_) => MarkerVerdict::Waits(WaitingFor::MarkerDiffers),",
        "Some(_) => MarkerVerdict::Fits,",
    ),
    planted(
        "c22_the_watch_need_not_have_passed_the_head",
        SWEEP,
        "facts.reached.is_some_and(|reached| reached >= facts.wanted)",
        "facts.reached.is_some()",
    ),
    planted(
        "c22_the_marker_is_not_compared",
        SEARCH,
        "Ok(Some(waiting)) => return self.wait_for_person(waiting, count),",
        "Ok(Some(_)) => {}",
    ),
    planted("c22_a_confirmation_is_forgotten", CONFIRM, "self.went_back = false;", ""),
    planted(
        "c26_a_kept_copy_goes_before_its_time",
        "domain/kept.rs",
        "let left = trash_for?.saturating_sub(now.since(self.since));",
        "let left = (trash_for? / 2).saturating_sub(now.since(self.since));",
    ),
    planted(
        "c26_what_is_removed_is_not_kept",
        KEPT,
        "self.settings.brakes.trash_for?;",
        "self.settings.brakes.trash_for.filter(|_| false)?;",
    ),
    planted(
        "c26_what_is_kept_is_asked_before_the_trash_is_listed",
        "domain/use_cases/trash.rs",
        "let kept = self.ports.records.kept_trash().into_iter();",
        "let kept = Vec::<crate::domain::kept::KeptCopy>::new().into_iter();",
    ),
    planted(
        "c26_the_trash_makes_room_where_there_is_room",
        "domain/kept.rs",
        "u128::from(room.available) * 100 < u128::from(room.total) * u128::from(percent)",
        "u128::from(room.available) * 100 < u128::from(room.total) * u128::from(percent) * 11",
    ),
    planted(
        "c26_a_pass_beyond_the_limit_is_not_stopped",
        SWEEP,
        "limit.is_some_and(|limit| removable as u64 > u64::from(limit))",
        "limit.is_some_and(|limit| removable as u64 > u64::from(limit) + 1)",
    ),
    planted(
        "c26_a_confirmation_lets_through_what_comes_later",
        LIMIT,
        "removable.iter().all(|(handle, epoch)| self.limit.confirmed.get(handle) == Some(epoch));",
        "!self.limit.confirmed.is_empty();",
    ),
    planted(
        "c32_a_raised_count_is_not_written",
        EVENTS,
        "entry.series.last = entry.series.last.max(now);\n            entry.unsaved = true;",
        "entry.series.last = entry.series.last.max(now);",
    ),
    planted(
        "c32_what_came_during_a_post_is_not_posted",
        EVENTS,
        "entry.series.posted = posted.count;",
        "entry.series.posted = entry.series.count;",
    ),
    planted(
        "c32_a_series_ends_before_it_is_posted",
        EVENTS,
        "entry.series.posted == entry.series.count && now.since(entry.series.last) > window",
        "now.since(entry.series.last) > window",
    ),
];

fn repository() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("tests are run by cargo").into()
}

/// The file with the fault in it.
fn with_fault(fault: &Planted, repository: &Path) -> String {
    let path = repository.join("src").join(fault.file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let times = text.matches(fault.from).count();
    assert_eq!(times, 1, "{}: {} has {times} times {:?}", fault.name, fault.file, fault.from);
    text.replacen(fault.from, fault.to, 1)
}

#[test]
fn every_fault_can_still_be_planted() {
    for fault in &FAULTS {
        assert_ne!(with_fault(fault, &repository()), "", "{}", fault.name);
    }
}

/// What the copy is made of; all else of the repository is no part of the simulation.
const PARTS: [&str; 8] =
    ["Cargo.toml", "Cargo.lock", "build.rs", "proto", "src", "tests", "benches", "deploy"];

fn cargo(copy: &Path, arguments: &[&str]) -> std::process::Output {
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("tests are run by cargo"));
    // What this process was told, of seeds and by cargo, is for this process; some build scripts look at it.
    for (name, _) in std::env::vars_os() {
        let is_told = ["CARGO", "PER_NODE_"].iter().any(|start| name.to_string_lossy().starts_with(start));
        if is_told && name != "CARGO_HOME" {
            cargo.env_remove(name);
        }
    }
    // What it depends on is compiled already.
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from);
    cargo.args(arguments).current_dir(copy).env("CARGO_TARGET_DIR", target);
    // From one fault to the next little is new.
    cargo.env("CARGO_INCREMENTAL", "1").output().expect("cargo runs")
}

#[test]
#[ignore = "compiles the driver once for each fault"]
fn planted_faults_are_found() {
    let (repository, copy) = (repository(), std::env::temp_dir().join("per-node-planted"));
    std::fs::create_dir_all(&copy).expect("a directory");
    for part in PARTS {
        let copied =
            Command::new("cp").args(["--archive", "--update"]).arg(repository.join(part)).arg(&copy).status();
        assert!(copied.expect("cp runs").success(), "{part}");
    }
    let only = std::env::var("PER_NODE_PLANT").ok();
    let mut survivors = Vec::new();
    for fault in FAULTS.iter().filter(|fault| only.as_deref().is_none_or(|only| only == fault.name)) {
        let path = copy.join("src").join(fault.file);
        std::fs::write(&path, with_fault(fault, &repository)).expect("written");
        let built = cargo(&copy, &["test", "--test", "simulation", "--no-run"]);
        assert!(built.status.success(), "{}: {}", fault.name, String::from_utf8_lossy(&built.stderr));
        let output = cargo(&copy, &["test", "--test", "simulation", "hold_in_every_world"]);
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let found = said.lines().find(|line| line.starts_with("seed "));
        println!("{}: {}", fault.name, found.unwrap_or("not found"));
        if found.is_none() {
            survivors.push(fault.name);
        }
        std::fs::copy(repository.join("src").join(fault.file), &path).expect("put back");
    }
    std::fs::remove_dir_all(&copy).expect("removed");
    assert_eq!(survivors, [""; 0], "not found by the seeds of every run");
}
