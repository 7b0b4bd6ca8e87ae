//! One copy a node, one pod a copy.

use tonic::Code;

use super::STORE;
use crate::demo::kubelet::Pod;
use crate::demo::play::{On, Play};

/// C2.
pub fn volume_and_claim(play: &mut Play) -> anyhow::Result<()> {
    play.report.step("A person writes a volume and a claim");
    play.create_volume(&STORE)?;
    play.report.lines(&[
        "PersistentVolume       example-store    driver per-node.liken.sh, volumeHandle example-store,"
            .to_owned(),
        "                                        ReadWriteMany, 20Gi (a hint, no limit), Retain".to_owned(),
        "PersistentVolumeClaim  example/store    bound to it, and to no other".to_owned(),
    ]);
    play.show_copies();
    for on in [On::One, On::Two] {
        let is_empty = !play.node(on).has_copy(STORE.handle);
        play.report.promise(is_empty, "a volume alone makes no copy");
    }
    Ok(())
}

/// C1, C10.
pub async fn a_pod_writes(play: &mut Play) -> anyhow::Result<Pod> {
    play.report.step("A pod starts on node one and writes");
    let pod = play.pod("web-1");
    play.mount(On::One, &pod, &STORE, Code::Ok).await?;
    play.write(On::One, &pod, &STORE, "web-1 was here")?;
    play.show_copies();
    play.report.promise(play.one.has_copy(STORE.handle), "node one has a copy");
    play.report.promise(!play.two.has_copy(STORE.handle), "node two has none");
    Ok(pod)
}

/// C11.
pub async fn the_same_pod_again(play: &mut Play, pod: &Pod) -> anyhow::Result<()> {
    play.report.step("The kubelet asks again for the same pod, as it does after a restart");
    for _ in 0..2 {
        play.mount(On::One, pod, &STORE, Code::Ok).await?;
    }
    let target = play.one.kubelet.target(pod, &STORE);
    let mounts = play.one.mounts_at(&target).await?;
    play.report.note(&format!("Mounts at the pod's target: {mounts}."));
    play.report.promise(mounts == 1, "there is one mount at the target");
    Ok(())
}

/// C12, C30, C31. The kubelet comes again with a growing backoff; here the clock is stepped instead.
pub async fn a_second_pod_is_refused(play: &mut Play) -> anyhow::Result<Pod> {
    play.report.step("A second pod on node one is refused, and its event counts");
    let pod = play.pod("web-2");
    for pause in [0, 45, 70] {
        if pause > 0 {
            play.step_clock(pause);
            play.report.note(&format!("{pause} seconds later the kubelet tries again:"));
        }
        play.mount(On::One, &pod, &STORE, Code::FailedPrecondition).await?;
    }
    play.step_clock(5);
    play.describe(&pod, "PerNodeVolumeHeld", 3).await?;
    Ok(pod)
}

/// C1, C17, C20.
pub async fn the_copy_outlives_its_pod(play: &mut Play, first: &Pod, second: &Pod) -> anyhow::Result<()> {
    play.report.step("The pod ends; the next one finds its copy, and so does the first when it comes back");
    play.unmount(On::One, first, &STORE).await?;
    play.mount(On::One, second, &STORE, Code::Ok).await?;
    play.read(On::One, second, &STORE, "web-1 was here")?;
    play.write(On::One, second, &STORE, "web-2 too")?;
    play.unmount(On::One, second, &STORE).await?;
    let again = play.pod("web-1");
    play.mount(On::One, &again, &STORE, Code::Ok).await?;
    play.read(On::One, &again, &STORE, "web-1 was here / web-2 too")?;
    play.unmount(On::One, &again, &STORE).await?;
    Ok(())
}

/// C1.
pub async fn each_node_has_its_own(play: &mut Play) -> anyhow::Result<()> {
    play.report.step("Node two has a copy of its own, empty the first time");
    let (here, there) = (play.pod("web-1"), play.pod("web-3"));
    play.mount(On::One, &here, &STORE, Code::Ok).await?;
    play.mount(On::Two, &there, &STORE, Code::Ok).await?;
    play.read(On::Two, &there, &STORE, "")?;
    play.write(On::Two, &there, &STORE, "web-3 on node two")?;
    play.show_copies();
    play.unmount(On::One, &here, &STORE).await?;
    play.unmount(On::Two, &there, &STORE).await?;
    Ok(())
}
