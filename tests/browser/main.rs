//! `kubectl per-node ui` in a real browser without a window: what is on the page, by keyboard, search and screen reader, with
//! hostile names, in dark and at the width of a phone, small and with twenty thousand copies.
//!
//! It needs a browser of the Chromium family (`PER_NODE_BROWSER`, or one on the `PATH`). Without one the cases are ignored and
//! shown as that; where `PER_NODE_REQUIRE_BROWSER=1` is set (in CI) they run or fail.

mod cases;
#[path = "../kubectl/cluster.rs"]
#[allow(dead_code)]
mod cluster;
mod devtools;
#[path = "../support/large_cluster.rs"]
mod large_cluster;
#[path = "../support/objects_api.rs"]
#[allow(dead_code)]
mod objects_api;
#[path = "../support/objects_exec.rs"]
#[allow(dead_code)]
mod objects_exec;
mod served;

use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use devtools::{Browser, Page};

/// A case: it says what it found wrong by panicking.
pub type Case = fn(Page) -> Pin<Box<dyn Future<Output = ()>>>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Arc::new(Runtime::new().expect("a runtime"));
    let browser = Arc::new(OnceCell::new());
    let is_required = std::env::var_os("PER_NODE_REQUIRE_BROWSER").is_some_and(|value| value == "1");
    let lacks_browser = devtools::executable().is_none() && !is_required;
    let trials = cases::all().into_iter().map(|(name, case)| {
        let (runtime, browser) = (runtime.clone(), browser.clone());
        let run = move || {
            runtime.block_on(async {
                let browser: &Browser = browser.get_or_init(Browser::start).await;
                case(browser.page().await).await;
            });
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(lacks_browser)
    });
    let ended = libtest_mimic::run(&arguments, trials.collect());
    // The browser ends before the process does.
    drop((browser, runtime));
    ended.exit_code()
}
