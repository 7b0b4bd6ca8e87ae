//! The cases.

use serde_json::{Value, json};

use crate::Case;
use crate::cluster::{copy, healthy, holder, plugin, refusal, report, tells, volume};
use crate::devtools::Page;
use crate::large_cluster::{Shape, fill};
use crate::objects_api::{Backend, ObjectsApi};
use crate::served::Served;

/// By name.
pub fn all() -> Vec<(&'static str, Case)> {
    vec![
        ("every_copy_has_a_cell_that_says_what_it_is", |page| Box::pin(cells(page))),
        ("a_search_leaves_what_fits_and_escape_brings_the_rest_back", |page| Box::pin(search(page))),
        ("the_keyboard_goes_through_the_table_to_the_details_and_back", |page| Box::pin(keyboard(page))),
        ("a_screen_reader_has_a_name_for_everything", |page| Box::pin(names(page))),
        ("names_that_are_markup_are_shown_and_never_run", |page| Box::pin(hostile(page))),
        ("dark_and_at_the_width_of_a_phone_nothing_overflows", |page| Box::pin(layouts(page))),
        ("twenty_thousand_copies_are_a_few_hundred_elements", |page| Box::pin(large(page))),
        ("what_changes_is_shown_and_said_and_a_server_that_ended_is_told", |page| Box::pin(live(page))),
    ]
}

const CELLS: &str = "document.querySelectorAll('#matrix [role=gridcell]').length > 0";
/// The label of what has the keyboard.
const FOCUSED: &str = "document.activeElement.getAttribute('aria-label')";

async fn opened(page: &mut Page, api: &ObjectsApi) -> Served {
    let served = Served::start(api).await;
    page.look(1280, 800, "light").await;
    page.open(&served.address).await;
    page.until(CELLS).await;
    served
}

async fn text_of(page: &mut Page, id: &str) -> String {
    let text = page.evaluate(&format!("document.getElementById('{id}').innerText")).await;
    text.as_str().unwrap_or_default().to_owned()
}

async fn labels(page: &mut Page, role: &str) -> Vec<String> {
    let all = format!("[...document.querySelectorAll('#matrix [role={role}]')].map((one) => one.ariaLabel)");
    serde_json::from_value(page.evaluate(&all).await).expect("labels")
}

async fn cells(mut page: Page) {
    let api = healthy().await;
    plugin(&api, "node-3", "Running", Backend::Refuses);
    let served = opened(&mut page, &api).await;
    let told = labels(&mut page, "gridcell").await;
    for label in [
        "build-cache on node-1: 1.2Gi; held by ci/runner-0 for 3h12m; refused ci/runner-1 42 times",
        "build-cache on node-2: 0; held by ci/runner-2",
        "forgotten on node-1: 512; not held; no PersistentVolume names it",
        "models on node-2: a copy that is not yet counted; not held",
        "unused on node-1: no copy",
        "unused on node-3: the node does not answer",
    ] {
        assert!(told.iter().any(|one| one == label), "{label} is not in {told:#?}");
    }
    assert_eq!(labels(&mut page, "rowheader").await.len(), 4);
    let summary = text_of(&mut page, "summary").await;
    assert_eq!(summary, "4 volumes · 3 nodes · 4 copies · 1.2Gi");
    let problems = text_of(&mut page, "problems").await;
    assert!(problems.starts_with("1 node does not answer: node-3"), "{problems}");
    let refusals = text_of(&mut page, "lanes").await;
    assert!(refusals.contains("ci/runner-1 on node-1: build-cache, 42 times, last 90s ago"), "{refusals}");
    page.is_at_peace_with(&served.address);
}

async fn search(mut page: Page) {
    let served = opened(&mut page, &healthy().await).await;
    page.press("/").await;
    assert_eq!(page.evaluate("document.activeElement.id").await, "search");
    page.call("Input.insertText", json!({ "text": "RUNNER-2" })).await;
    assert_eq!(labels(&mut page, "rowheader").await, ["build-cache, Bound, 1.2Gi"]);
    assert_eq!(labels(&mut page, "columnheader").await, ["Volume", "node-2"]);
    page.press("Escape").await;
    assert_eq!(labels(&mut page, "rowheader").await.len(), 4);
    let click = "document.querySelector('#kinds button:nth-child(4)').click()";
    page.evaluate(click).await;
    assert_eq!(labels(&mut page, "rowheader").await, ["forgotten, Orphan, 512"]);
    let pressed = "document.querySelector('#kinds button:nth-child(4)').ariaPressed";
    assert_eq!(page.evaluate(pressed).await, "true");
    page.evaluate(click).await;
    page.press("/").await;
    page.call("Input.insertText", json!({ "text": "nothing-like-this" })).await;
    assert_eq!(text_of(&mut page, "nothing").await, "Nothing fits the search.");
    page.is_at_peace_with(&served.address);
}

async fn keyboard(mut page: Page) {
    let served = opened(&mut page, &healthy().await).await;
    // The first stop of the tabulator key leads past everything else.
    page.evaluate("document.querySelector('.skip').focus()").await;
    page.evaluate("document.querySelector('.skip').click()").await;
    let at = async |page: &mut Page| page.evaluate(FOCUSED).await.as_str().unwrap_or_default().to_owned();
    assert!(at(&mut page).await.starts_with("build-cache on node-1: "));
    for (key, label) in [
        ("ArrowRight", "build-cache on node-2: "),
        ("ArrowRight", "build-cache on node-2: "),
        ("ArrowDown", "forgotten on node-2: no copy"),
        ("End", "forgotten on node-2: no copy"),
        ("Home", "forgotten, Orphan"),
        ("^End", "unused on node-2: no copy"),
        ("^Home", "build-cache, Bound"),
        ("ArrowUp", "Volume"),
        ("ArrowRight", "node-1"),
        ("ArrowDown", "build-cache on node-1: "),
    ] {
        page.press(key).await;
        let told = at(&mut page).await;
        assert!(told.starts_with(label), "{key}: {told}");
    }
    assert_eq!(page.evaluate("document.querySelectorAll('#matrix [tabindex=\"0\"]').length").await, 1);
    let outline = "getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(page.evaluate(outline).await, "solid", "it is seen where the keyboard is");
    page.press("Enter").await;
    assert_eq!(page.evaluate("document.activeElement.id").await, "details-head");
    let details = text_of(&mut page, "details").await;
    for word in [
        "build-cache on node-1",
        "1,288,490,189 bytes",
        "20,412",
        "30m ago",
        "ci/runner-0, for 3h12m",
        "2026-11-29T23:48:00Z",
    ] {
        assert!(details.contains(word), "{word}: {details}");
    }
    assert!(details.contains("volume build-cache is held on this node by pod ci/runner-0"), "{details}");
    page.press("Escape").await;
    assert!(at(&mut page).await.starts_with("build-cache on node-1: "));
    assert_eq!(page.evaluate("document.getElementById('details').hidden").await, true);
    page.is_at_peace_with(&served.address);
}

async fn names(mut page: Page) {
    let served = opened(&mut page, &healthy().await).await;
    page.evaluate("document.querySelector('#matrix [role=gridcell]').click()").await;
    let tree = page.call("Accessibility.getFullAXTree", json!({})).await;
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for node in tree["nodes"].as_array().expect("nodes").iter().filter(|node| node["ignored"] != true) {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        *seen.entry(role.to_owned()).or_default() += 1;
        let needs_name = [
            "grid",
            "gridcell",
            "rowheader",
            "columnheader",
            "button",
            "searchbox",
            "combobox",
            "region",
            "image",
        ];
        let name = node["name"]["value"].as_str().unwrap_or_default();
        assert!(!needs_name.contains(&role) || !name.trim().is_empty(), "a {role} without a name: {node}");
    }
    for (role, count) in [("grid", 1), ("row", 5), ("gridcell", 8), ("rowheader", 4), ("columnheader", 3)] {
        assert_eq!(seen.get(role), Some(&count), "{role}: {seen:?}");
    }
    assert!(seen.contains_key("status") && seen.contains_key("searchbox"), "{seen:?}");
    page.is_at_peace_with(&served.address);
}

async fn hostile(mut page: Page) {
    let api = ObjectsApi::start().await;
    let mut copies = Vec::new();
    let mut refusals = Vec::new();
    let evil = [
        "<script>window.owned=1</script>",
        "<img src=x onerror=window.owned=1>",
        "</script><svg onload=window.owned=1>",
        "\"onmouseover=window.owned=1 x=\"",
        "javascript:window.owned=1",
        "__proto__",
        "constructor",
        "\u{202e}gpj.exe\u{0}",
    ];
    for (number, name) in evil.iter().enumerate() {
        volume(&api, &format!("volume-{number}"), name, "<b>Bound</b>", Some("<i>Bound</i>"));
        let mut held = copy(name, 1 << number, 1);
        held.holders = vec![holder(name, Some("2026-11-30T01:00:00Z"))];
        copies.push(held);
        let mut refused = refusal(name, name, 1, "2026-11-30T02:59:00Z");
        refused.message = (*name).to_owned();
        refusals.push(refused);
    }
    copies.push(copy("<u>orphan</u>", 1, 1));
    let mut told = report("<s>node</s>", copies);
    told.refusals = refusals;
    told.sweep.get_or_insert_default().notes = vec!["<em>note</em>".to_owned()];
    plugin(&api, "node", "Running", tells(report("node", vec![])));
    let mut pod = api.object("/api/v1/namespaces/per-node/pods/per-node-node").expect("put");
    pod["spec"]["nodeName"] = "<s>node</s>".into();
    api.put("/api/v1/namespaces/per-node/pods/per-node-node", pod);
    let answer = serde_json::to_string(&told).expect("JSON");
    api.serve_pod(
        "per-node",
        "per-node-node",
        Backend::Answer(std::sync::Arc::new(move |_: &str, _: &axum::http::HeaderMap| (200, answer.clone()))),
    );
    let served = opened(&mut page, &api).await;
    page.evaluate("document.getElementById('more').click()").await;
    page.evaluate("document.querySelector('#problems details').open = true").await;
    for row in 1..=evil.len() {
        page.evaluate(&format!("document.querySelectorAll('#matrix [role=gridcell]')[{}].click()", row - 1))
            .await;
        let details = text_of(&mut page, "details").await;
        assert!(details.contains("<s>node</s>"), "{details}");
    }
    let told = labels(&mut page, "gridcell").await.join("\n");
    for name in &evil[..7] {
        assert!(told.contains(&format!("held by ci/{name} for 120m")), "{name}: {told}");
    }
    assert!(told.contains("ci/\u{fffd}gpj.exe\u{fffd}"), "what would turn the text around is seen: {told}");
    assert!(text_of(&mut page, "problems").await.contains("<em>note</em>"));
    assert_eq!(page.evaluate("typeof window.owned").await, "undefined");
    let inserted = "document.querySelectorAll('img, svg, em, u, s, body script:not([nonce])').length";
    assert_eq!(page.evaluate(inserted).await, 0);
    let planted = "(() => { const script = document.createElement('script'); try { script.text = 'window.owned=1'; } \
                   catch { return 'refused'; } document.body.append(script); return typeof window.owned; })()";
    assert_eq!(page.evaluate(planted).await, "refused", "also where the page's own script had a flaw");
    page.complaints.retain(|complaint| !complaint.contains("TrustedScript"));
    page.is_at_peace_with(&served.address);
}

async fn layouts(mut page: Page) {
    let api = ObjectsApi::start().await;
    let shape = Shape {
        nodes: 30,
        volumes: 40,
        copies: 40,
        late: std::time::Duration::ZERO,
        mute: 1,
        is_lively: false,
    };
    fill(&api, shape);
    let long = format!("a-name-{}", "that-is-long-".repeat(15));
    volume(&api, &long, &long, "Released", None);
    let served = opened(&mut page, &api).await;
    for (width, height) in [(1280, 800), (768, 1024), (390, 844), (320, 568)] {
        for scheme in ["light", "dark"] {
            page.look(width, height, scheme).await;
            page.evaluate("document.getElementById('more').click()").await;
            page.evaluate("document.querySelectorAll('#matrix [role=gridcell]')[9].click()").await;
            let inner = page
                .evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
                .await;
            assert_eq!(inner[0], inner[1], "{width} wide, {scheme}");
            let beyond = "[...document.querySelectorAll('header *, #tools > *, #problems, main > *, #refusals, #lanes button, footer')] \
                .filter((one) => one.getBoundingClientRect().right > window.innerWidth + 1).map((one) => one.id || one.tagName)";
            assert_eq!(page.evaluate(beyond).await, json!([]), "{width} wide, {scheme}");
            assert_eq!(page.evaluate(LOW_CONTRAST).await, json!([]), "{width} wide, {scheme}");
        }
    }
    let moving = "[...document.querySelectorAll('*')].filter((one) => getComputedStyle(one).animationName !== 'none').length";
    assert_eq!(page.evaluate(moving).await, 0, "nothing moves for who does not want that");
    page.is_at_peace_with(&served.address);
}

/// The texts whose contrast to what they stand on is below 4.5, as WCAG counts it.
const LOW_CONTRAST: &str = "(() => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
    const ground = (element) => {
        for (let one = element; one; one = one.parentElement) {
            const color = parse(getComputedStyle(one).backgroundColor);
            if (color.length < 4 || color[3] === 1) return color;
        }
        return [255, 255, 255];
    };
    const bad = new Set();
    for (const element of document.querySelectorAll('body *')) {
        const has = [...element.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
        if (!has || !element.checkVisibility() || ['SCRIPT', 'NOSCRIPT', 'OPTION'].includes(element.tagName)) continue;
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))];
        if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) bad.add(`${element.tagName}.${element.className}: ${element.textContent.slice(0, 30)}`);
    }
    return [...bad];
})()";

async fn large(mut page: Page) {
    let api = ObjectsApi::start().await;
    let shape = Shape {
        nodes: 100,
        volumes: 200,
        copies: 200,
        late: std::time::Duration::ZERO,
        mute: 3,
        is_lively: false,
    };
    fill(&api, shape);
    let served = opened(&mut page, &api).await;
    assert!(text_of(&mut page, "summary").await.starts_with("201 volumes · 100 nodes · 19,401 copies · "));
    assert_eq!(page.evaluate("document.getElementById('matrix').ariaRowCount").await, "202");
    assert_eq!(page.evaluate("document.getElementById('matrix').ariaColCount").await, "101");
    page.evaluate("document.querySelector('.skip').click()").await;
    page.press("^End").await;
    let last = page.evaluate(FOCUSED).await;
    assert!(last.as_str().is_some_and(|label| label.starts_with("volume-199 on ")), "{last}");
    page.press("^ArrowRight").await;
    let last = page.evaluate(FOCUSED).await;
    assert!(last.as_str().is_some_and(|label| label.starts_with("volume-199 on node-0099: ")), "{last}");
    let is_seen = "(() => { const [a, b] = [document.activeElement, document.getElementById('matrix')].map((one) => one.getBoundingClientRect()); \
        return a.left >= b.left && a.right <= b.right + 1 && a.top >= b.top && a.bottom <= b.bottom + 1; })()";
    assert_eq!(page.evaluate(is_seen).await, true);
    for place in ["0", "1e6", "2345"] {
        let scroll = format!("document.getElementById('matrix').scrollTo({place}, {place})");
        page.evaluate(&scroll).await;
        let drawn = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => \
            done(document.querySelectorAll('#matrix [role=gridcell]').length))))";
        let cells = page.evaluate(drawn).await.as_u64().expect("a number");
        assert!((100..3000).contains(&cells), "{cells} cells at {place}");
    }
    // The cell that has the keyboard is still there, though nobody sees it.
    assert_eq!(page.evaluate(FOCUSED).await, last);
    page.press("/").await;
    page.call("Input.insertText", json!({ "text": "node-0042 volume-07" })).await;
    assert_eq!(labels(&mut page, "rowheader").await.len(), 10);
    assert_eq!(
        labels(&mut page, "columnheader").await,
        ["Volume".to_owned(), column_of(&mut page, "node-0042").await]
    );
    page.is_at_peace_with(&served.address);
}

async fn column_of(page: &mut Page, node: &str) -> String {
    let told = labels(page, "columnheader").await;
    told.into_iter().find(|label| label.starts_with(node)).unwrap_or_default()
}

async fn live(mut page: Page) {
    let api = healthy().await;
    let mut served = opened(&mut page, &api).await;
    page.evaluate("document.querySelector('.skip').click()").await;
    page.press("ArrowDown").await;
    let before = page.evaluate(FOCUSED).await;
    let copies = vec![copy("a-new-one", 5 << 30, 7), copy("build-cache", 1, 1), copy("forgotten", 512, 2)];
    plugin(&api, "node-1", "Running", tells(report("node-1", copies)));
    volume(&api, "a-new-one", "a-new-one", "Bound", Some("Bound"));
    page.until("document.getElementById('summary').innerText.startsWith('5 volumes')").await;
    let said = page.evaluate("document.getElementById('announce').textContent").await;
    assert_eq!(said, "1 new copy; 1 fewer held");
    assert_eq!(page.evaluate(FOCUSED).await, before, "the keyboard stays with its cell, which has moved");
    page.is_at_peace_with(&served.address);
    served.process.kill().await.expect("it ends");
    page.until("document.getElementById('age').classList.contains('late')").await;
    let problems = text_of(&mut page, "problems").await;
    assert!(problems.contains("does not answer any more"), "{problems}");
    assert_ne!(page.evaluate(CELLS).await, Value::Bool(false), "what was seen last stays");
}
