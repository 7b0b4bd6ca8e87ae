//! What deleting removes, and what it does not.

use tonic::Code;

use super::{DATABASE, STORE};
use crate::demo::play::{On, Play};
use crate::demo::wait::until;

/// More than `--sweep-every`: at least one tick of the sweep is due afterwards.
const PAST_A_TICK_SECONDS: u64 = 660;

/// C20.
pub async fn claim_deleted(play: &mut Play) -> anyhow::Result<()> {
    play.report.step("The claim is deleted: the volume is Released, nothing is lost");
    play.step_clock(PAST_A_TICK_SECONDS);
    play.report
        .note("Eleven minutes pass on the play's clock, so that the sweep has its turn on both nodes.");
    for on in [On::One, On::Two] {
        let swept = play.node(on).sweep().await;
        play.report.promise(swept, "the sweep has its turn");
    }
    play.show_copies();
    for on in [On::One, On::Two] {
        for volume in [STORE, DATABASE] {
            let kept = play.node(on).has_copy(volume.handle);
            play.report.promise(kept, "every copy is still there");
        }
    }
    Ok(())
}

/// C21. The copy on node one goes at once, that on node two when its pod has left.
pub async fn volume_deleted_while_held(play: &mut Play) -> anyhow::Result<()> {
    play.report.step("A volume is deleted while a pod holds its copy on node two");
    let pod = play.pod("db-0");
    play.mount(On::Two, &pod, &DATABASE, Code::Ok).await?;
    play.report.note("kubectl delete pv example-database, and somebody takes its finalizer off by hand.");
    play.cluster.api.delete_volume(DATABASE.name);
    let gone = until(async || !play.one.has_copy(DATABASE.handle)).await;
    play.swept(On::One, "nobody holds its copy: removed", gone);
    let kept = play.two.sweep().await && play.two.has_copy(DATABASE.handle);
    play.swept(On::Two, "example/db-0 holds its copy: kept", kept);
    play.show_copies();
    play.read(On::Two, &pod, &DATABASE, "rows of node two")?;
    play.unmount(On::Two, &pod, &DATABASE).await?;
    let gone = until(async || !play.two.has_copy(DATABASE.handle)).await;
    play.swept(On::Two, "nobody holds its copy: removed", gone);
    play.show_copies();
    Ok(())
}

/// C20, C21.
pub async fn volume_deleted(play: &mut Play) -> anyhow::Result<()> {
    play.report.step("The last volume is deleted: every copy of it goes");
    play.cluster.api.delete_volume(STORE.name);
    for on in [On::One, On::Two] {
        let gone = until(async || play.node(on).is_bare()).await;
        play.swept(on, "nobody holds its copy: removed", gone);
    }
    play.show_copies();
    Ok(())
}
