//! Kernels that lack calls: with any of the newer ones missing the driver does the same, without the older ones it says so
//! at the start (C44).

use per_node::adapters::linux::self_check;
use per_node::domain::mount_options::MountOptions;

use crate::Case;
use crate::kernel::{self, Newer};
use crate::namespace::Peer;
use crate::setting::PLAIN;
use crate::world::{World, lines_at, own_lines_at};

pub fn cases() -> Vec<Case> {
    vec![
        Case::new("c05_any_set_of_the_newer_calls_may_be_missing", every_set),
        Case::new("c44_a_kernel_without_openat2_is_refused", || refused(libc::SYS_openat2, "openat2")),
        Case::new("c44_a_kernel_without_statx_is_refused", || {
            refused(libc::SYS_statx, "STATX_ATTR_MOUNT_ROOT")
        }),
    ]
}

fn every_set() {
    for set in 0..1u32 << Newer::ALL.len() {
        let is_in = |number: &usize| set & 1 << number != 0;
        let lacks: Vec<Newer> = (0..Newer::ALL.len()).filter(is_in).map(|at| Newer::ALL[at]).collect();
        let told = format!("without {lacks:?}");
        kernel::run_without(lacks, move || published_seen_and_gone(World::new(PLAIN), &told));
    }
}

fn published_seen_and_gone(world: World, told: &str) {
    let peer = Peer::start();
    let read_only = MountOptions { read_only: Some(true), no_exec: Some(true), ..Default::default() };
    let target = world.publish("h", "t", &read_only);
    for table in [std::fs::read("/proc/self/mountinfo").unwrap(), peer.mountinfo()] {
        let lines = lines_at(&table, target.as_path());
        assert_eq!(lines.len(), 1, "{told}");
        assert_eq!(String::from_utf8_lossy(&lines[0].options), "ro,noexec,relatime", "{told}");
    }
    assert!(world.look(&target).visible().is_some_and(|shown| shown.at_root), "{told}");
    assert_eq!(world.showing("h").len(), 1, "{told}");
    assert_eq!(world.detach(&target), Ok(()), "{told}");
    assert_eq!(own_lines_at(target.as_path()), [], "{told}");
    assert_eq!(world.showing("h"), [], "{told}");
}

fn refused(call: libc::c_long, what: &str) {
    let what = what.to_owned();
    let check = move || {
        kernel::without_numbers(&[call]);
        let line = self_check::check_kubelet_dir(std::path::Path::new("/")).unwrap_err().to_string();
        assert_eq!(line, format!("the kernel lacks {what}: per-node needs Linux 5.8 or newer"));
    };
    kernel::run_without(Vec::new(), check);
}
