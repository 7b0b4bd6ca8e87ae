//! The stage of a kill: a node with a traced driver, on which another pod runs the whole time, and what must be so when
//! all is over.

use std::fs;
use std::path::Path;

use nix::libc;
use per_node::domain::holds::TargetState;
use tonic::Code;

use crate::node::Node;
use crate::tracer::{Denied, Kill, Traced, Treatment};

/// What a publish finds.
pub struct Setting {
    pub title: &'static str,
    pub copy_is_there: bool,
    pub target_is_there: bool,
    /// As if the kernel lacked the newer calls.
    pub old_kernel: bool,
    /// The last call that attaches fails, so that all is undone.
    pub fails: bool,
}

pub const NEW: Setting = Setting {
    title: "publish, new copy",
    copy_is_there: false,
    target_is_there: false,
    old_kernel: false,
    fails: false,
};
pub const OLD: Setting = Setting { title: "publish, old copy", copy_is_there: true, ..NEW };
pub const AFTER_REBOOT: Setting = Setting { title: "publish, after a reboot", target_is_there: true, ..OLD };
pub const STAGED: Setting = Setting { title: "publish, staged", old_kernel: true, ..NEW };
pub const FAILING: Setting = Setting { title: "publish that fails", fails: true, ..NEW };

/// The calls that 5.6 lacks.
const NEWER: [i64; 5] = [
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    // statmount and listmount, which libc does not name on every target.
    libc::SYS_mount_setattr + 15,
    libc::SYS_mount_setattr + 16,
];

fn treatment(kill: Kill, setting: &Setting) -> Treatment {
    let denied = NEWER.iter().filter(|_| setting.old_kernel);
    let denied = denied.map(|&number| Denied { number, errno: libc::ENOSYS, counted_only: false });
    let failing = Denied { number: libc::SYS_move_mount, errno: libc::EIO, counted_only: true };
    let denied = denied.chain(setting.fails.then_some(failing)).collect();
    Treatment { kill, denied, from_the_start: false }
}

/// A node with a traced driver, on which another pod runs the whole time.
pub struct Stage {
    pub node: Node,
    pub traced: Traced,
    /// The mounts when it was set.
    pub mounts: Vec<String>,
}

impl Stage {
    pub fn new(kill: Kill, setting: &Setting) -> Stage {
        Stage::on(Node::standalone(), kill, setting)
    }

    pub fn on(node: Node, kill: Kill, setting: &Setting) -> Stage {
        let traced = node.start_traced(treatment(kill, setting));
        node.wait_served(&traced);
        node.wait_marked();
        node.publish("other", "bystander").expect("published");
        fs::write(node.target("bystander").join("file"), "the bystander's").expect("write");
        if setting.copy_is_there {
            node.publish("data", "earlier").expect("published");
            fs::create_dir(node.target("earlier").join("sub")).expect("mkdir");
            fs::write(node.target("earlier").join("sub/file"), "written before").expect("write");
            node.unpublish("data", "earlier").expect("unpublished");
        }
        if setting.target_is_there {
            fs::create_dir(node.target("pod")).expect("mkdir");
        }
        let mounts = node.mounts();
        Stage { node, traced, mounts }
    }

    pub fn old_data_is_whole(&self) {
        let read = |path: &Path| fs::read_to_string(path).expect("the file");
        assert_eq!(read(&self.node.copy("data").join("sub/file")), "written before");
    }

    /// The pod that had nothing to do with it.
    pub fn bystander_noticed_nothing(&self) {
        let file = self.node.target("bystander").join("file");
        assert_eq!(fs::read_to_string(&file).expect("its file"), "the bystander's");
        fs::write(file, "the bystander's").expect("it can write");
        let held = self.node.publish("other", "rival").expect_err("it holds its copy");
        assert_eq!(held.code(), Code::FailedPrecondition);
        assert!(!self.node.target("rival").exists(), "a refusal leaves nothing");
    }

    /// Nothing of any pod but the bystander's is left.
    pub fn is_as_before(&self, setting: &Setting) {
        let Stage { node, mounts, .. } = self;
        assert_eq!(node.mounts(), *mounts, "mounts");
        assert_eq!(node.names("trash"), [""; 0], "trash");
        assert_eq!(node.target("pod").exists(), setting.target_is_there, "the target directory");
        assert_eq!(node.copy("data").exists(), setting.copy_is_there, "the copy");
        let records = node.target_records();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_eq!((records[0].handle.as_str(), records[0].state), ("other", TargetState::Held));
        if setting.copy_is_there {
            self.old_data_is_whole();
        }
    }
}
