//! C31 to C33: the book of event series, by its values.

use std::time::Duration;

use per_node::domain::event_series::{
    MESSAGE_LENGTH_MAX, Post, PostOutcome, Recorded, SERIES_MAX, Series, SeriesBook, SeriesKey,
};
use per_node::domain::pod::{PodName, PodReference, PodUid, Subject};
use per_node::domain::refusal::Reason;
use per_node::domain::time::{Monotonic, Wall};

const WINDOW: Duration = Duration::from_secs(600);

fn key(name: &str, message: &str) -> SeriesKey {
    let pod = PodReference {
        name: PodName::parse("ns", name).unwrap(),
        uid: PodUid::parse(&name.chars().take(40).collect::<String>()).unwrap(),
    };
    SeriesKey::new(pod, Reason::VolumeHeld, message.to_owned())
}

fn wall(seconds: u64) -> Wall {
    Wall { unix_ms: 1_000_000_000_000 + seconds * 1000 }
}

fn at(seconds: u64) -> Monotonic {
    Monotonic(Duration::from_secs(seconds))
}

fn book() -> SeriesBook {
    SeriesBook::new(WINDOW, [])
}

#[track_caller]
fn created(book: &SeriesBook, now: Monotonic) -> Series {
    match book.next_post(now) {
        Some(Post::Create(series)) => series,
        other => panic!("no create: {other:?}"),
    }
}

#[track_caller]
fn patched(book: &SeriesBook, now: Monotonic) -> Series {
    match book.next_post(now) {
        Some(Post::Patch(series)) => series,
        other => panic!("no patch: {other:?}"),
    }
}

#[test]
fn c31_a_series_is_created_then_patched_with_absolute_counts() {
    let mut book = book();
    book.record(key("p", "m"), wall(0));
    book.record(key("p", "m"), wall(1));
    let first = created(&book, at(0));
    assert_eq!((first.count, first.first, first.last), (2, wall(0), wall(1)));
    assert!(book.settle(&first, PostOutcome::Taken, at(0)));
    assert_eq!(book.next_post(at(0)), None);
    book.record(key("p", "m"), wall(2));
    let second = patched(&book, at(0));
    assert_eq!((second.count, second.first, second.last, second.name), (3, wall(0), wall(2), first.name));
}

#[test]
fn c32_series_are_kept_as_plugins_before_kept_them_and_of_a_node_too() {
    let mut book = SeriesBook::new(WINDOW, []);
    book.record(key("p", "m"), wall(1));
    book.record(SeriesKey::new(Subject::Node("n".into()), Reason::SweepStopped, "m".into()), wall(1));
    let kept = book.take_unsaved();
    let written: Vec<_> =
        kept.iter().map(|series| serde_json::to_value(series).unwrap()["key"].clone()).collect();
    let pod = serde_json::json!({
        "pod": { "namespace": "ns", "name": "p", "uid": "p" }, "reason": "PerNodeVolumeHeld", "message": "m",
    });
    let node = serde_json::json!({ "node": "n", "reason": "PerNodeSweepStopped", "message": "m" });
    assert!(written.contains(&pod) && written.contains(&node), "{written:?}");
    for series in kept {
        let text = serde_json::to_string(&series).unwrap();
        assert_eq!(serde_json::from_str::<Series>(&text).unwrap(), series);
    }
}

#[test]
fn c31_the_window_is_counted_from_the_last_refusal() {
    let mut book = book();
    for seconds in [0, 600, 1200] {
        book.record(key("p", "m"), wall(seconds));
    }
    assert_eq!(created(&book, at(0)).count, 3);
    book.record(key("p", "m"), wall(1801));
    assert_eq!(book.depth(), 2);
}

#[test]
fn c31_a_calendar_that_jumps_back_goes_on_and_loses_no_time() {
    let mut book = book();
    book.record(key("p", "m"), wall(5000));
    book.record(key("p", "m"), wall(10));
    let series = created(&book, at(0));
    assert_eq!((series.count, series.first, series.last), (2, wall(5000), wall(5000)));
}

#[test]
fn c33_pod_reason_and_message_each_make_another_series() {
    let mut book = book();
    let mut other_reason = key("p", "m");
    other_reason.reason = Reason::MountFailed;
    for key in [key("p", "m"), key("q", "m"), key("p", "n"), other_reason] {
        book.record(key, wall(0));
    }
    assert_eq!(book.depth(), 4);
}

#[test]
fn c32_a_name_is_the_same_in_any_process_and_a_valid_object_name() {
    let name_of = |pod: &str, message: &str, seconds| {
        let mut book = book();
        book.record(key(pod, message), wall(seconds));
        created(&book, at(0)).name.as_str().to_owned()
    };
    assert_eq!(name_of("web-0", "m", 0), name_of("web-0", "m", 0));
    assert_ne!(name_of("web-0", "m", 0), name_of("web-0", "n", 0));
    assert_ne!(name_of("web-0", "m", 0), name_of("web-0", "m", 1));
    assert!(name_of("web-0", "m", 0).starts_with("web-0."));
    let long = format!("{}.{}", "a".repeat(199), "b".repeat(53));
    let name = name_of(&long, "m", 0);
    assert!(name.len() <= 253 && !name.contains(".."), "{name}");
}

#[test]
fn c33_a_long_message_is_cut_at_a_character() {
    let message = format!("{}ä", "m".repeat(MESSAGE_LENGTH_MAX - 1));
    assert_eq!(key("p", &message).message, "m".repeat(MESSAGE_LENGTH_MAX - 1));
    assert_eq!(key("p", &"m".repeat(MESSAGE_LENGTH_MAX)).message.len(), MESSAGE_LENGTH_MAX);
}

#[test]
fn c32_a_create_that_meets_an_event_patches_and_a_patch_that_meets_none_creates() {
    let mut book = book();
    book.record(key("p", "m"), wall(0));
    let series = created(&book, at(0));
    assert!(book.settle(&series, PostOutcome::AlreadyThere, at(0)));
    let series = patched(&book, at(0));
    assert!(book.settle(&series, PostOutcome::Gone, at(0)));
    let again = created(&book, at(0));
    assert_eq!((again.count, again.first), (1, wall(0)));
}

#[test]
fn c32_failures_wait_longer_each_time_and_never_longer_than_a_minute() {
    let mut book = book();
    book.record(key("p", "m"), wall(0));
    let mut now = at(0);
    let mut waits = Vec::new();
    for _ in 0..8 {
        let series = created(&book, now);
        book.settle(&series, PostOutcome::Retry { after: None }, now);
        let due = book.next_due().unwrap();
        assert_eq!(book.next_post(now), None);
        waits.push(due.since(now).as_secs());
        now = due;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    let series = created(&book, now);
    let asked = |seconds| PostOutcome::Retry { after: Some(Duration::from_secs(seconds)) };
    book.settle(&series, asked(3600), now);
    assert_eq!(book.next_due().unwrap().since(now), Duration::from_secs(60));
}

#[test]
fn c32_a_server_that_names_a_wait_is_heard() {
    let mut book = book();
    book.record(key("p", "m"), wall(0));
    let series = created(&book, at(0));
    book.settle(&series, PostOutcome::Retry { after: Some(Duration::from_secs(7)) }, at(0));
    assert_eq!(book.next_due(), Some(at(7)));
}

#[test]
fn c32_a_server_that_names_a_wait_is_left_alone_by_every_series() {
    let mut book = book();
    book.record(key("p", "m"), wall(0));
    let series = created(&book, at(0));
    book.record(key("q", "m"), wall(0));
    book.settle(&series, PostOutcome::Retry { after: Some(Duration::from_secs(7)) }, at(0));
    assert_eq!((book.next_post(at(6)), book.next_due()), (None, Some(at(7))));
    assert_eq!(created(&book, at(7)).key.subject.name(), "q");
    // A failure without such a word is that series' alone.
    let other = created(&book, at(7));
    book.settle(&other, PostOutcome::Retry { after: None }, at(7));
    assert_eq!(created(&book, at(7)).key.subject.name(), "p");
}

#[test]
fn c32_a_refusal_during_a_post_is_posted_after_it() {
    let mut book = book();
    book.record(key("p", "m"), wall(0));
    let posted = created(&book, at(0));
    book.record(key("p", "m"), wall(1));
    book.settle(&posted, PostOutcome::Taken, at(0));
    assert_eq!(patched(&book, at(0)).count, 2);
}

#[test]
fn c32_an_ended_series_is_gone_and_the_next_refusal_begins_another() {
    let mut book = book();
    book.record(key("p", "m"), wall(0));
    let series = created(&book, at(0));
    assert!(!book.settle(&series, PostOutcome::Ended, at(0)));
    assert!(!book.has(&series.name));
    assert!(!book.settle(&series, PostOutcome::Taken, at(0)));
    book.record(key("p", "m"), wall(5));
    assert_eq!(created(&book, at(0)).count, 1);
}

#[test]
fn c32_a_kept_series_goes_on_where_it_was() {
    let mut first = book();
    first.record(key("p", "m"), wall(0));
    let series = created(&first, at(0));
    first.settle(&series, PostOutcome::Taken, at(0));
    let kept = first.take_unsaved();
    assert_eq!((kept.len(), kept[0].posted), (1, 1));
    let mut second = SeriesBook::new(WINDOW, kept);
    second.record(key("p", "m"), wall(600));
    let series = patched(&second, at(0));
    assert_eq!((series.count, series.first), (2, wall(0)));
}

#[test]
fn c32_what_changed_is_handed_out_once_to_be_saved() {
    let mut book = book();
    book.record(key("p", "m"), wall(0));
    let name = created(&book, at(0)).name;
    assert!(book.has_unsaved());
    assert_eq!(book.take_unsaved().len(), 1);
    assert!(!book.has_unsaved());
    assert_eq!((book.take_unsaved(), book.take_unsaved_of(&name)), (vec![], None));
    book.keep_unsaved(&name);
    assert_eq!(book.take_unsaved_of(&name).map(|series| series.count), Some(1));
    assert!(!book.has_unsaved());
}

#[test]
fn c32_a_full_book_drops_what_is_posted_whole_and_never_what_is_not() {
    let mut book = book();
    for number in 0..SERIES_MAX {
        assert_eq!(book.record(key(&format!("p{number}"), "m"), wall(0)), Recorded::Counted);
    }
    assert_eq!(book.record(key("more", "m"), wall(1)), Recorded::Dropped);
    let posted = created(&book, at(0));
    book.settle(&posted, PostOutcome::Taken, at(0));
    assert_eq!(book.record(key("more", "m"), wall(1)), Recorded::Counted);
    assert!(!book.has(&posted.name));
    assert_eq!(book.record(key("p7", "m"), wall(2)), Recorded::Counted, "one that goes on needs no room");
}

#[test]
fn c31_a_series_expires_once_it_is_posted_whole_and_past_the_window() {
    let mut book = book();
    book.record(key("p", "m"), wall(0));
    assert_eq!(book.expire(wall(10_000)), []);
    let series = created(&book, at(0));
    book.settle(&series, PostOutcome::Taken, at(0));
    assert_eq!(book.expire(wall(600)), []);
    assert_eq!(book.expire(wall(601)), [series.name]);
}
