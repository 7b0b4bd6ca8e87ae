//! `/copies` over HTTP, of a driver that is called over its socket: who is told, what, and how much at a time.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use http::{Request, StatusCode};
use per_node::adapters::http::{CopiesPage, PageKey, Readiness, Sources, router};
use per_node::domain::time::Wall;
use per_node::proto::report::{KEY_HEADER, NodeReport, PAGE_COPIES_MAX, RefusalToTell};
use tower::ServiceExt;

use crate::rig::{NODE_ID, Rig, handle};

const KEY: &str = "11111111-2222-4333-8444-555555555555";
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

fn sources(rig: &Rig, key: Option<PageKey>) -> Sources {
    Sources {
        tally: rig.driver.tally().clone(),
        copies: rig.ports.copies.clone(),
        clock: rig.ports.clock.clone(),
        cluster: rig.ports.cluster.clone(),
        readiness: Readiness::default(),
        started: Wall { unix_ms: 1_800_000_000_000 },
        copies_page: key.map(|key| CopiesPage {
            driver: Arc::clone(&rig.driver),
            node_id: NODE_ID.to_owned(),
            key,
        }),
    }
}

async fn ask(rig: &Rig, request: Request<Body>) -> (StatusCode, Vec<u8>) {
    let answer = router(sources(rig, PageKey::new(KEY))).oneshot(request).await.expect("an answer");
    let status = answer.status();
    (status, to_bytes(answer.into_body(), BODY_BYTES_MAX).await.expect("a body").to_vec())
}

fn get(path: &str, key: Option<&str>) -> Request<Body> {
    let request = Request::get(path);
    let request = key.map(|key| request.header(KEY_HEADER, key)).unwrap_or_else(|| Request::get(path));
    request.body(Body::empty()).expect("a request")
}

async fn report(rig: &Rig, path: &str) -> NodeReport {
    let (status, body) = ask(rig, get(path, Some(KEY))).await;
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).expect("a report")
}

#[tokio::test]
async fn c45_without_the_pods_uid_nothing_is_told_but_how_to_ask() {
    let rig = Rig::start().await;
    rig.publish(rig.request("secret-handle", "u1")).await.expect("published");
    let longer = format!("{KEY}0");
    for key in [
        None,
        Some(""),
        Some("0"),
        Some(&KEY[1..]),
        Some(&longer),
        Some("11111111-2222-4333-8444-555555555556"),
    ] {
        let (status, body) = ask(&rig, get("/copies", key)).await;
        let refusal: RefusalToTell = serde_json::from_slice(&body).expect("a refusal");
        assert_eq!((status, refusal.kind.as_str()), (StatusCode::FORBIDDEN, "Refusal"), "{key:?}");
        assert!(refusal.message.contains(KEY_HEADER), "{}", refusal.message);
        assert!(!String::from_utf8_lossy(&body).contains("secret-handle"));
    }
}

#[tokio::test]
async fn c45_without_the_flag_there_is_no_such_page_and_with_it_nothing_can_be_changed() {
    let rig = Rig::start().await;
    let answer = router(sources(&rig, None)).oneshot(get("/copies", Some(KEY))).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let request = Request::builder().method(method).uri("/copies").header(KEY_HEADER, KEY);
        let (status, _) = ask(&rig, request.body(Body::empty()).expect("a request")).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    let (status, _) = ask(&rig, get("/copies?limit=9", Some(KEY))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn c45_a_report_says_who_has_what_and_who_was_refused() {
    let rig = Rig::start().await;
    rig.publish(rig.request("data", "u1")).await.expect("published");
    rig.publish(rig.request("data", "u2")).await.expect_err("held");
    let report = report(&rig, "/copies").await;
    assert_eq!((report.node.as_str(), report.driver.as_str()), (NODE_ID, "per-node.liken.sh"));
    assert_eq!(
        (report.at.as_str(), report.started_at.as_deref()),
        ("2027-01-15T08:00:00Z", Some("2027-01-15T08:00:00Z"))
    );
    let [copy] = report.copies.as_slice() else { panic!("{report:?}") };
    let [holder] = copy.holders.as_slice() else { panic!("{copy:?}") };
    assert_eq!(
        (holder.namespace.as_deref(), holder.pod.as_deref(), holder.uid.as_deref(), holder.since.as_deref()),
        (Some("example"), Some("name-u1"), Some("u1"), Some("2027-01-15T08:00:00Z"))
    );
    let [refusal] = report.refusals.as_slice() else { panic!("{report:?}") };
    assert_eq!(
        (refusal.handle.as_deref(), refusal.pod.as_deref(), refusal.reason.as_str(), refusal.count),
        (Some("data"), Some("name-u2"), "PerNodeVolumeHeld", 1)
    );
    let sweep = report.sweep.expect("told");
    assert!(sweep.synced && sweep.live && sweep.waiting_for.is_none(), "{sweep:?}");
}

#[tokio::test]
async fn c45_thousands_of_copies_come_in_pages_that_are_bounded() {
    let rig = Rig::start().await;
    let copies = PAGE_COPIES_MAX * 2 + 7;
    for number in 0..copies {
        rig.node.put_copy(&handle(&format!("copy-{number:05}")), "file", b"x");
    }
    rig.driver.measure_copies().await;
    let mut names = Vec::new();
    let mut path = "/copies".to_owned();
    loop {
        let page = report(&rig, &path).await;
        assert!(page.copies.len() <= PAGE_COPIES_MAX);
        assert_eq!(page.copies_total, copies as u64);
        names.extend(page.copies.into_iter().map(|copy| copy.handle));
        let Some(after) = page.after else { break };
        path = format!("/copies?after={after}");
    }
    let expected: Vec<String> = (0..copies).map(|number| format!("copy-{number:05}")).collect();
    assert_eq!(names, expected);
    let one = report(&rig, "/copies?handle=copy-00042").await;
    assert_eq!((one.copies.len(), one.after), (1, None));
}
