//! What an API server sends: any bytes are an error or mean what a general reader of JSON makes of them. A list is never
//! shorter than it was (C22).

use per_node::adapters::kube::volume::{Page, WatchEvent, read_event, read_page};
use per_node::domain::handle::Handle;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::Value;

use super::runner::{fuzz, mutated};

const DRIVER: &str = "per-node.liken.sh";
const WORDS: &[&str] = &[
    "\"items\":[",
    "\"items\":null",
    "]",
    "}",
    "{",
    ",",
    "\"metadata\":{}",
    "\"spec\":{",
    "\"csi\":null",
    "\"csi\":{",
    "\"driver\":\"per-node.liken.sh\"",
    "\"driver\":\"other\"",
    "\"volumeHandle\":\"h\"",
    "\"volumeHandle\":null",
    "\"uid\":\"\"",
    "\"resourceVersion\":\"0\"",
    "\"resourceVersion\":\"-1\"",
    "18446744073709551616",
    "\"continue\":\"x\"",
    "\\u0000",
    "\\ud800",
    "ADDED",
    "DELETED",
    "BOOKMARK",
    "ERROR",
    "null",
    "[[[[[[[[",
];

/// The same by a general reader: UID and handle of a volume of this driver.
fn named(object: &Value) -> Option<(&str, Option<Handle>)> {
    let uid = object["metadata"]["uid"].as_str()?;
    let csi = &object["spec"]["csi"];
    let ours = csi["driver"] == DRIVER;
    Some((uid, csi["volumeHandle"].as_str().filter(|_| ours).and_then(|raw| Handle::parse(raw).ok())))
}

fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

fn agrees(page: &Page, value: &Value) -> Result<(), TestCaseError> {
    prop_assert_eq!(Some(page.revision), revision(value));
    // A list has its items; what has none is something else, and no proof that there are none.
    let items = value.get("items").expect("a page without items was taken for a list");
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    prop_assert_eq!(page.item_count, items.len());
    let ours: Vec<(&str, Option<Handle>)> =
        items.iter().filter_map(named).filter(|(_, handle)| handle.is_some()).collect();
    let read: Vec<(&str, Option<Handle>)> =
        page.volumes.iter().map(|volume| (volume.uid.as_str(), volume.handle.clone())).collect();
    prop_assert_eq!(read, ours);
    let next = value["metadata"]["continue"].as_str().filter(|token| !token.is_empty());
    prop_assert_eq!(page.next.as_deref(), next);
    Ok(())
}

#[test]
fn c22_a_page_of_any_bytes_is_an_error_or_all_that_it_says() {
    fuzz("page", 1000, &mutated("page", WORDS), |body| {
        let Ok(page) = read_page(&body, DRIVER) else { return Ok(()) };
        // What is passed over is not looked at as closely by ours: a broken escape in a label is nobody's business.
        let Ok(value) = serde_json::from_slice::<Value>(&body) else { return Ok(()) };
        agrees(&page, &value)
    });
}

#[test]
fn c22_an_event_of_any_bytes_is_an_error_or_what_it_says() {
    fuzz("watch", 1000, &mutated("watch", WORDS), |line| {
        let Ok(event) = read_event(&line, DRIVER) else { return Ok(()) };
        let Ok(value) = serde_json::from_slice::<Value>(&line) else { return Ok(()) };
        let object = &value["object"];
        let (kinds, volume, at) = match &event {
            WatchEvent::Named { volume, revision } => {
                (&["ADDED", "MODIFIED"][..], Some(volume), Some(*revision))
            }
            WatchEvent::Deleted { volume, revision } => (&["DELETED"][..], Some(volume), Some(*revision)),
            WatchEvent::Bookmark { revision, .. } => (&["BOOKMARK"][..], None, Some(*revision)),
            WatchEvent::Failed(_) => (&["ERROR"][..], None, None),
        };
        prop_assert!(value["type"].as_str().is_some_and(|kind| kinds.contains(&kind)), "{:?}", event);
        if let Some(at) = at {
            prop_assert_eq!(Some(at), revision(object));
        }
        if let Some(volume) = volume {
            prop_assert_eq!(Some((volume.uid.as_str(), volume.handle.clone())), named(object));
            prop_assert!(!volume.uid.is_empty());
        }
        Ok(())
    });
}
