//! docs/reference/metrics.md is what `/metrics` says of itself: each family with its kind, its labels and its meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use prometheus_client::encoding::text;

use super::doubles::{Stopped, Store, Watched};
use super::metrics::registry;
use super::{Readiness, Sources};
use crate::adapters::generated;
use crate::domain::health::Room;
use crate::domain::tally::{StoreRoom, Tally};
use crate::domain::time::{Monotonic, Wall};
use crate::ports::cluster::WatchHealth;
use crate::ports::copies::Counted;

/// One family of the page.
#[derive(Default)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

/// The page of a driver that has something to say in each family.
fn page() -> String {
    let tally = Arc::new(Tally::default());
    tally.answered("NodePublishVolume", "OK");
    tally.sync_failed("forbidden");
    tally.api_called("watch", "gone");
    let room = Room { available: 1, total: 2 };
    tally.set_room(Some(StoreRoom { bytes: room, inodes: room }));
    let health = WatchHealth { last_sync: Some(Monotonic::default()), ..WatchHealth::default() };
    let sources = Sources {
        tally,
        copies: Arc::new(Store(Counted::default())),
        clock: Arc::new(Stopped),
        cluster: Some(Arc::new(Watched(Mutex::new(health)))),
        readiness: Readiness::default(),
        started: Wall::default(),
        copies_page: None,
    };
    let mut page = String::new();
    text::encode(&mut page, &registry(sources)).expect("a page");
    page
}

/// The families by the names that a person asks Prometheus for.
fn families(page: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut kind, mut help) = (String::new(), String::new());
    for line in page.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", _, text] => text.clone_into(&mut help),
            ["#", "TYPE", _, word] => word.clone_into(&mut kind),
            ["#", ..] => {}
            _ => {
                let sample = line.rsplit_once(' ').expect("a value").0;
                let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
                let family = families.entry(name.to_owned()).or_default();
                (family.kind, family.help) = (kind.clone(), help.clone());
                let pairs = labels.trim_end_matches('}').split(',').filter_map(|pair| pair.split_once('='));
                family.labels.extend(pairs.map(|(label, _)| label.to_owned()));
            }
        }
    }
    families
}

#[test]
fn c45_the_metrics_of_the_reference_are_those_of_the_page() {
    let families = families(&page());
    assert!(families.len() > 25, "{} families", families.len());
    let mut made = generated::head(&["metric", "type", "labels", ""]);
    for (name, family) in families {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        made += &generated::row(&[&format!("`{name}`"), &family.kind, &labels.join(", "), &family.help]);
    }
    generated::agree("metrics.md", "metrics", &made);
}
