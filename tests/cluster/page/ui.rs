//! `kubectl per-node ui` for a real cluster, in a browser without a window: what the page shows of a copy that is held and
//! refused, and that it goes on by itself. How the page looks is for tests/browser.

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::case::run;
use crate::cluster::cluster;
use crate::devtools::{Browser, Page};
use crate::manifest;
use crate::tool::Ui;

const FIRST_CELL: &str = "document.querySelector('#matrix [role=gridcell]')";

/// A page, and what drives it. The cases' own client has a runtime of its own, so no step of a case runs in this one.
struct Window {
    runtime: Runtime,
    page: Page,
    _browser: Browser,
}

impl Window {
    fn open(address: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (browser, page) = runtime.block_on(async {
            let browser = Browser::start().await;
            let mut page = browser.page().await;
            page.look(1280, 800, "light").await;
            page.open(address).await;
            page.until(FIRST_CELL).await;
            (browser, page)
        });
        Self { runtime, page, _browser: browser }
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        self.runtime.block_on(self.page.evaluate(expression))
    }

    /// Types words into the search.
    fn search(&mut self, words: &str) {
        self.runtime.block_on(async {
            self.page.press("/").await;
            self.page.call("Input.insertText", json!({ "text": words })).await;
        });
    }

    /// Waits until the first cell's sentence has all of these.
    fn until_told(&mut self, words: &[&str]) {
        let words = json!(words);
        let told =
            format!("{FIRST_CELL} && {words}.every((words) => {FIRST_CELL}.ariaLabel.includes(words))");
        self.runtime.block_on(self.page.until(&told));
        println!("{}", self.evaluate(&format!("{FIRST_CELL}.ariaLabel")));
    }
}

#[test]
#[ignore = "needs the cluster of tests/cluster/run"]
fn c12_the_page_shows_who_holds_a_copy_who_was_refused_it_and_who_gets_it_next() {
    run("ui-page", |case| {
        let node = &case.cluster.first;
        let handle = case.bound_volume("v", "ReadWriteMany");
        case.running_pod("holder", node, &handle, "echo some > /data/file");
        case.apply(&manifest::pod("waiter", Some(node.name), &handle, "true"));
        case.wait_event("waiter", "PerNodeVolumeHeld");

        let served = Ui::start(&cluster().kubeconfig());
        let mut window = Window::open(&served.address);
        let summary = window.evaluate("document.getElementById('summary').innerText");
        assert!(summary.as_str().is_some_and(|summary| summary.contains(" · 2 nodes · ")), "{summary}");
        window.search(&handle);
        let here = format!("{handle} on {}: ", node.name);
        let (holder, waiter) = (format!("{}/holder", case.name), format!("{}/waiter", case.name));
        window.until_told(&[&here, &format!("held by {holder} for "), &format!("refused {waiter} ")]);
        let rows = window.evaluate("document.querySelectorAll('#matrix [role=rowheader]').length");
        assert_eq!(rows, 1, "the search leaves the volume");
        let refusals = window.evaluate("document.getElementById('lanes').innerText");
        assert!(refusals.as_str().is_some_and(|told| told.contains(&waiter)), "{refusals}");

        // The page goes on by itself.
        case.delete("pod", "holder");
        case.wait_running("waiter");
        window.until_told(&[&here, &format!("held by {waiter} for ")]);
        case.delete("pod", "waiter");
        window.until_told(&[&here, "not held"]);
        window.page.forgive_changes_of_the_network();
        window.page.is_at_peace_with(&served.address);
    });
}
