//! Read-only mounts, one pod in the whole cluster, and a handle that is none.

use std::io::ErrorKind;

use tonic::Code;

use super::{DATABASE, STORE};
use crate::demo::kubelet::{Access, Pod, Volume};
use crate::demo::play::{NOTES, On, Play};

/// C4.
pub async fn read_only(play: &mut Play) -> anyhow::Result<()> {
    play.report.step("A pod that mounts read-only reads and cannot write");
    let pod = play.pod("reader");
    play.mount_as(On::Two, &pod, &STORE, true, Code::Ok).await?;
    play.read(On::Two, &pod, &STORE, "web-3 on node two")?;
    if play.cluster.ground.is_real() {
        refused_write(play, &pod);
    } else {
        play.report.note(
            "Not shown: the rootless double writes read-only down and enforces it for nobody; the kernel does.",
        );
    }
    play.unmount(On::Two, &pod, &STORE).await?;
    Ok(())
}

fn refused_write(play: &mut Play, pod: &Pod) {
    let path = play.two.kubelet.target(pod, &STORE).join(NOTES);
    let written = std::fs::OpenOptions::new().append(true).open(path);
    let (kind, said) = match written {
        Ok(_) => (None, "written".to_owned()),
        Err(error) => (Some(error.kind()), error.to_string()),
    };
    play.report.act("node-two", "example/reader", &format!("writes {NOTES}"), &said);
    play.report.promise(kind == Some(ErrorKind::ReadOnlyFilesystem), "the kernel refuses the write");
}

/// C4, C12.
pub async fn read_write_once_pod(play: &mut Play) -> anyhow::Result<()> {
    play.report.step("ReadWriteOncePod: one pod in the whole cluster");
    play.create_volume(&DATABASE)?;
    let (first, other) = (play.pod("db-0"), play.pod("db-1"));
    play.mount(On::One, &first, &DATABASE, Code::Ok).await?;
    play.write(On::One, &first, &DATABASE, "rows of node one")?;
    play.report.note(
        "The scheduler keeps every other pod of the claim Pending. One that is bound to a node by hand meets the \
         driver:",
    );
    play.mount(On::One, &other, &DATABASE, Code::FailedPrecondition).await?;
    play.unmount(On::One, &first, &DATABASE).await?;
    play.report.note("The next pod starts on node two, and gets that node's copy:");
    let moved = play.pod("db-0");
    play.mount(On::Two, &moved, &DATABASE, Code::Ok).await?;
    play.read(On::Two, &moved, &DATABASE, "")?;
    play.write(On::Two, &moved, &DATABASE, "rows of node two")?;
    play.unmount(On::Two, &moved, &DATABASE).await?;
    Ok(())
}

/// C3, C30.
pub async fn bad_handle(play: &mut Play) -> anyhow::Result<()> {
    play.report.step("A handle that is no DNS-1123 subdomain is refused, with the rule it breaks");
    let pod = play.pod("typo");
    let volume = Volume { name: "example-typo", handle: "Example_Store", access: Access::ReadWriteMany };
    play.mount(On::One, &pod, &volume, Code::InvalidArgument).await?;
    play.step_clock(5);
    play.describe(&pod, "PerNodeVolumeRefused", 1).await?;
    play.report.promise(!play.one.has_copy(volume.handle), "no copy has such a name");
    Ok(())
}
