//! An API server that is late, that is not there, that refuses: no call of the kubelet's notices, nothing is removed
//! without its word, it is asked seldom, and afterwards every event is told with its whole count.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join;

use crate::api_server::{ApiServer, Behaviour, Fault};
use crate::node::{Node, runtime};
use crate::soak::{PATIENCE, Soak, api, create_volumes, eventually, node, numbered};
use crate::{Case, pods, size};

/// Pods that are refused again and again, each at a volume of its own.
const REFUSED: usize = 8;
/// Volumes whose pods come and go.
const USED: usize = 4;
/// Its PersistentVolume is deleted while the API server is out of order.
const DOOMED: &str = "doomed";

/// One way to be out of order.
struct Outage {
    behaviour: Behaviour,
    /// What may be asked in a minute, beside the first tries of everything that is under way.
    requests_a_minute_max: f64,
    first_requests_max: f64,
    /// Longer than this is taken for a call that waits for the API server.
    hang_limit: Duration,
}

pub fn cases() -> Vec<Case> {
    vec![
        ("c19_c32_c41_a_late_api_server_holds_up_no_call_and_loses_no_event", late),
        ("c19_c22_c32_c41_no_api_server_holds_up_no_call_removes_nothing_and_loses_no_event", away),
        (
            "c19_c22_c27_c32_a_refusing_api_server_is_asked_seldom_removes_nothing_and_loses_no_event",
            refusing,
        ),
    ]
}

fn late(name: &'static str) {
    let late_by = size(Duration::from_secs(3), Duration::from_secs(5));
    let behaviour = Behaviour { late_by, ..Behaviour::default() };
    // A life that waited for one answer would take as long as that.
    let hang_limit = late_by * u32::try_from(lives_min()).expect("a small number");
    // It does answer: the watch, the sweeps and the events go on, each with one request at a time.
    let requests_a_minute_max = 3.0 * 60.0 / late_by.as_secs_f64();
    outage(name, Outage { behaviour, requests_a_minute_max, first_requests_max: 16.0, hang_limit });
}

fn away(name: &'static str) {
    let behaviour = Behaviour { away: true, ..Behaviour::default() };
    // Each series is tried by itself, after pauses that double up to a minute; the watch's do up to half of one.
    let first_requests_max = 8.0 * REFUSED as f64;
    outage(name, Outage { behaviour, requests_a_minute_max: 20.0, first_requests_max, hang_limit: PATIENCE });
}

fn refusing(name: &'static str) {
    let retry_after_s = size(1, 5);
    let fails = Some(Fault::Status(429, Some(retry_after_s)));
    let behaviour = Behaviour { fails, ..Behaviour::default() };
    // One event each time the server allows it, however many wait, and the watch.
    let requests_a_minute_max = 60.0 / retry_after_s as f64 + 4.0;
    outage(name, Outage { behaviour, requests_a_minute_max, first_requests_max: 16.0, hang_limit: PATIENCE });
}

fn outage(name: &'static str, outage: Outage) {
    let answers = !outage.behaviour.away && outage.behaviour.fails.is_none();
    let (held, used) = (numbered("held", REFUSED), numbered("used", USED));
    let node = node();
    create_volumes(&node, &[held.clone(), used.clone(), vec![DOOMED.to_owned()]].concat());
    let soak = Soak::begin(name, node);
    let node = &soak.node;
    let api = api(node);
    let refused = async |number: usize| {
        pods::refused(node, &held[number], &rival(number)).await;
    };
    runtime().block_on(async {
        pods::live(node, DOOMED, "doomed-pod").await;
        pods::each(USED, async |number| pods::live(node, &used[number], &format!("early-{number}")).await)
            .await;
        pods::each(REFUSED, async |number| pods::start(node, &held[number], &holder(number)).await).await;
        // Half of the series are there before, and patched; the others are created afterwards.
        pods::each(REFUSED / 2, refused).await;
    });
    eventually(
        || if counts(api).len() > REFUSED / 2 { vec![] } else { vec!["events are missing".to_owned()] },
    );
    let copies = node.names("copies");
    api.behave(|behaviour| *behaviour = outage.behaviour);
    api.end_watches(true);
    api.store(|store| store.delete_volume(DOOMED).expect("the volume"));
    let (requests, began) = (api.requests(), Instant::now());
    let refusals = runtime().block_on(async {
        let during = tokio::time::timeout(outage.hang_limit, during(node, &used, refused));
        during.await.expect("no call waits for the API server")
    });
    let (requests, minutes) = (api.requests() - requests, began.elapsed().as_secs_f64() / 60.0);
    if !answers {
        assert_eq!(node.names("copies"), copies, "nothing is removed without the API server's word");
    }
    let bound = outage.first_requests_max + minutes * outage.requests_a_minute_max;
    println!("{name}: {requests} requests in {minutes:.2} minutes, {} refusals", refusals * REFUSED);
    assert!(requests as f64 <= bound, "{requests} requests in {minutes:.2} minutes, at most {bound}");
    api.behave(|behaviour| *behaviour = Behaviour::default());
    eventually(|| what_is_not_told(api, refusals));
    eventually(|| node.names("copies").into_iter().filter(|copy| copy == DOOMED).collect());
    runtime().block_on(pods::each(REFUSED, async |number| {
        pods::end(node, &held[number], &holder(number)).await;
    }));
    soak.end();
}

/// How many lives each used volume sees at least.
fn lives_min() -> usize {
    size(20, 100)
}

/// Pods come and go, and others are refused, for as long as the outage lasts. Answers how often each was refused.
async fn during(node: &Node, used: &[String], refused: impl AsyncFn(usize)) -> usize {
    let began = Instant::now();
    let goes_on = || began.elapsed() < size(Duration::from_secs(3), Duration::from_secs(180));
    let lives = pods::each(USED, async |number| {
        let mut count = 0;
        while count < lives_min() || goes_on() {
            pods::live(node, &used[number], &format!("pod-{number}-{count}")).await;
            count += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let refusals = async {
        let mut count = 0;
        while count == 0 || goes_on() {
            pods::each(REFUSED, &refused).await;
            count += 1;
            tokio::time::sleep(size(Duration::from_millis(300), Duration::from_secs(5))).await;
        }
        count
    };
    join(lives, refusals).await.1
}

fn holder(number: usize) -> String {
    format!("holder-{number}")
}

fn rival(number: usize) -> String {
    format!("rival-{number}")
}

/// By the pod's UID, how often the API server's events say that it was refused.
fn counts(api: &ApiServer) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for event in api.events() {
        let pod = event["involvedObject"]["uid"].as_str().expect("a pod's event").to_owned();
        *counts.entry(pod).or_default() += event["count"].as_u64().expect("a count");
    }
    counts
}

/// Where the events do not say what happened.
fn what_is_not_told(api: &ApiServer, refusals: usize) -> Vec<String> {
    let counts = counts(api);
    let wrong = (0..REFUSED).map(|number| {
        let expected = (refusals + usize::from(number < REFUSED / 2)) as u64;
        (rival(number), counts.get(&rival(number)).copied().unwrap_or_default(), expected)
    });
    let wrong = wrong.filter(|(_, told, expected)| told != expected);
    wrong.map(|(pod, told, expected)| format!("{pod}: {told} refusals told, {expected} were")).collect()
}
