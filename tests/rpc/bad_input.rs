//! Requests that no publish may follow from: each has its code and its event, and leaves nothing.

use per_node::domain::refusal::Reason;
use per_node::proto::csi::volume_capability::access_mode::Mode;
use per_node::proto::csi::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use per_node::proto::csi::{NodePublishVolumeRequest, VolumeCapability};
use prost::Message;
use tonic::Code;

use super::raw;
use super::rig::{KUBELET_DIR, Rig, capability};

type Change = Box<dyn Fn(&mut NodePublishVolumeRequest)>;

/// A publish with one thing wrong; a word of the answer.
struct Case {
    what: String,
    says: &'static str,
    change: Change,
}

fn case(what: &str, says: &'static str, change: impl Fn(&mut NodePublishVolumeRequest) + 'static) -> Case {
    Case { what: what.to_owned(), says, change: Box::new(change) }
}

fn bad_handles() -> Vec<Case> {
    let long = "a".repeat(254);
    [
        ("", "empty"),
        (long.as_str(), "at most 253"),
        ("a\0b", "character"),
        ("a\nb", "character"),
        ("..", "segment"),
        ("a/../b", "character"),
        ("/etc", "character"),
        ("Upper", "character"),
        ("a_b", "character"),
        ("-a", "letter or digit"),
        ("a..b", "segment"),
        ("é", "character"),
    ]
    .map(|(handle, says)| {
        let handle = handle.to_owned();
        case(&format!("the handle {handle:?}"), says, move |request| request.volume_id.clone_from(&handle))
    })
    .into()
}

fn bad_targets() -> Vec<Case> {
    let (deep, long) =
        (format!("{KUBELET_DIR}{}", "/d".repeat(2100)), format!("{KUBELET_DIR}/{}", "n".repeat(256)));
    [
        ("", "empty"),
        ("pods/x/mount", "not absolute"),
        ("/var/lib/kubelet/../x", "'..'"),
        ("/var/lib/kubelet/a\0b", "NUL"),
        ("/var/lib/kubelet", "--kubelet-dir"),
        ("/", "--kubelet-dir"),
        ("/etc", "--kubelet-dir"),
        ("/var/lib/kubeletx/pods", "--kubelet-dir"),
        (deep.as_str(), "longer"),
        (long.as_str(), "longer"),
    ]
    .map(|(target, says)| {
        let target = target.to_owned();
        let what = format!("the target {:?}", target.chars().take(40).collect::<String>());
        case(&what, says, move |request| request.target_path.clone_from(&target))
    })
    .into()
}

fn mount(mount: MountVolume) -> Option<VolumeCapability> {
    let access_mode = Some(AccessMode { mode: Mode::MultiNodeMultiWriter.into() });
    Some(VolumeCapability { access_type: Some(AccessType::Mount(mount)), access_mode })
}

fn bad_capabilities() -> Vec<Case> {
    let mut cases = vec![
        case("no capability", "no volume capability", |r| r.volume_capability = None),
        case("an empty capability", "access type", |r| {
            r.volume_capability = Some(VolumeCapability::default())
        }),
        case("no access mode", "no access mode", |r| {
            let mut without = capability(&[], Mode::MultiNodeMultiWriter);
            without.access_mode = None;
            r.volume_capability = Some(without);
        }),
        case("a block volume", "block", |r| {
            let access_type = Some(AccessType::Block(BlockVolume {}));
            let access_mode = Some(AccessMode { mode: Mode::SingleNodeWriter.into() });
            r.volume_capability = Some(VolumeCapability { access_type, access_mode });
        }),
    ];
    for mode in [0, 8, -1, i32::MAX] {
        cases.push(case(&format!("access mode {mode}"), "access mode", move |r| {
            let mut unknown = capability(&[], Mode::MultiNodeMultiWriter);
            unknown.access_mode = Some(AccessMode { mode });
            r.volume_capability = Some(unknown);
        }));
    }
    let too_many = "ro,".repeat(1366);
    for flag in
        ["bind", "remount", "suid;dev", "ro\0", "ro\n", "", " ro", "uid=0", "context=x", too_many.as_str()]
    {
        let flag = flag.to_owned();
        let what = format!("the flag {:?}", flag.chars().take(10).collect::<String>());
        cases.push(case(&what, "mount option", move |r| {
            r.volume_capability =
                mount(MountVolume { mount_flags: vec![flag.clone()], ..Default::default() });
        }));
    }
    for group in ["root", "-1", "4294967295", "1 ", "0x1", "1\n"] {
        cases.push(case(&format!("the group {group:?}"), "group", move |r| {
            let volume_mount_group = group.to_owned();
            r.volume_capability = mount(MountVolume { volume_mount_group, ..Default::default() });
        }));
    }
    cases
}

async fn check(cases: Vec<Case>, target_is_there: bool, code: Code) {
    for case in cases {
        let rig = Rig::start().await;
        let mut request = rig.request("example-store", "u1");
        (case.change)(&mut request);
        if target_is_there {
            rig.node.make_directory(&request.target_path);
        }
        let target = request.target_path.clone();
        let was_there = rig.node.exists(&target);
        let status = rig.publish(request).await.expect_err(&case.what);
        assert_eq!(status.code(), code, "{}: {status:?}", case.what);
        assert!(status.message().contains(case.says), "{}: {status:?}", case.what);
        assert!(status.details().is_empty(), "{}: {status:?}", case.what);
        rig.is_untouched(&case.what);
        assert_eq!(rig.node.exists(&target), was_there, "{} changed the target", case.what);
        let events = rig.events().await;
        let told: Vec<_> = events.iter().map(|event| (event.reason, event.message.as_str())).collect();
        assert_eq!(told, [(Reason::VolumeRefused, status.message())], "{}", case.what);
        assert_eq!(events[0].subject.to_string(), "pod example/name-u1");
    }
}

#[tokio::test]
async fn c03_a_bad_handle_is_refused_with_the_rule_it_broke() {
    check(bad_handles(), false, Code::InvalidArgument).await;
}

#[tokio::test]
async fn c12_a_bad_handle_is_final_also_where_the_target_is_there() {
    check(bad_handles(), true, Code::InvalidArgument).await;
}

#[tokio::test]
async fn c18_a_bad_target_is_refused_and_the_flag_is_named() {
    check(bad_targets(), false, Code::InvalidArgument).await;
}

#[tokio::test]
async fn c05_a_capability_that_cannot_be_is_refused() {
    check(bad_capabilities(), false, Code::InvalidArgument).await;
}

#[tokio::test]
async fn c12_where_the_target_is_there_a_wrong_request_is_not_final() {
    check(bad_capabilities(), true, Code::Aborted).await;
}

#[tokio::test]
async fn c05_four_kibibytes_of_good_flags_are_taken() {
    let rig = Rig::start().await;
    let mut request = rig.request("example-store", "u1");
    let mut flags = vec!["noexec,".repeat(585); 1];
    flags[0].pop();
    assert_eq!(flags[0].len(), 4094);
    request.volume_capability = mount(MountVolume { mount_flags: flags, ..Default::default() });
    let target = request.target_path.clone();
    rig.publish(request).await.expect("published");
    assert!(rig.node.flags(&target).expect("a mount").no_exec);
}

#[tokio::test]
async fn c05_attributes_and_secrets_decide_nothing() {
    let rig = Rig::start().await;
    let mut request = rig.request("example-store", "u1");
    for key in ["ro", "path", "../../etc", "mountOptions", "", "\0"] {
        request.volume_context.insert(key.to_owned(), "/etc\0..".to_owned());
        request.publish_context.insert(key.to_owned(), "noexec".to_owned());
        request.secrets.insert(key.to_owned(), "noexec".to_owned());
    }
    request.staging_target_path = "/etc/../x".to_owned();
    let target = request.target_path.clone();
    rig.publish(request).await.expect("published");
    let flags = rig.node.flags(&target).expect("a mount");
    assert!(!flags.read_only && !flags.no_exec);
    assert_eq!(rig.node.copy_names(), ["example-store"]);
}

#[tokio::test]
async fn c30_a_request_that_names_no_pod_posts_no_event() {
    let rig = Rig::start().await;
    for missing in ["uid", "name", "namespace"] {
        let mut request = rig.request("Bad", "u1");
        request.target_path = format!("{KUBELET_DIR}/elsewhere");
        request.volume_context.remove(&format!("csi.storage.k8s.io/pod.{missing}"));
        let status = rig.publish(request).await.expect_err("refused");
        assert_eq!(status.code(), Code::InvalidArgument);
    }
    assert_eq!(rig.events().await, []);
}

#[tokio::test]
async fn bytes_that_are_no_request_are_the_callers_fault() {
    let rig = Rig::start().await;
    let mut not_utf8 = rig.request("example-store", "u1").encode_to_vec();
    let at = not_utf8.windows(4).position(|bytes| bytes == b"exam").expect("the handle");
    not_utf8[at] = 0xff;
    let mut cut = rig.request("example-store", "u1").encode_to_vec();
    cut.pop();
    for (what, bytes) in [("a string that is no UTF-8", not_utf8), ("a cut message", cut)] {
        let answer = raw::call(rig.connect().await, "/csi.v1.Node/NodePublishVolume", bytes).await;
        let status = answer.expect_err(what);
        assert_eq!(status.code(), Code::InvalidArgument, "{what}: {status:?}");
        assert!(status.message().contains("protobuf") && status.details().is_empty(), "{status:?}");
        rig.is_untouched(what);
    }
}

#[tokio::test]
async fn a_request_beyond_every_object_of_an_api_server_is_not_read() {
    let rig = Rig::start().await;
    let mut request = rig.request("example-store", "u1");
    request.volume_context.insert("filler".to_owned(), "x".repeat(5 << 20));
    let status = rig.publish(request).await.expect_err("refused");
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    rig.is_untouched("a huge request");
    // As large as an object can be is no matter.
    let mut request = rig.request("example-store", "u1");
    request.volume_context.insert("filler".to_owned(), "x".repeat(3 << 19));
    rig.publish(request).await.expect("published");
}

#[tokio::test]
async fn c17_an_unpublish_without_its_fields_is_refused_and_of_anything_unknown_fine() {
    let rig = Rig::start().await;
    let target = rig.target("u1");
    assert_eq!(rig.unpublish("", &target).await.expect_err("no id").code(), Code::InvalidArgument);
    assert_eq!(rig.unpublish("a", "").await.expect_err("no target").code(), Code::InvalidArgument);
    for volume_id in ["never-seen", "Bad/Handle", "..", "a\0b", &"x".repeat(300)] {
        for path in [&target, "/etc", "relative", "/a/../b", "/var/lib/kubelet/a\0b", "/"] {
            rig.unpublish(volume_id, path)
                .await
                .unwrap_or_else(|status| panic!("{volume_id} {path}: {status:?}"));
        }
    }
    rig.is_untouched("an unpublish of nothing");
}

#[tokio::test]
async fn c46_statistics_of_what_is_not_there_are_not_found() {
    let rig = Rig::start().await;
    let request = rig.request("example-store", "u1");
    let target = request.target_path.clone();
    rig.publish(request).await.expect("published");
    assert_eq!(rig.statistics("", &target).await.expect_err("no id").code(), Code::InvalidArgument);
    assert_eq!(rig.statistics("a", "").await.expect_err("no path").code(), Code::InvalidArgument);
    for (volume_id, path) in [
        ("other", target.as_str()),
        ("Bad/Handle", &target),
        ("example-store", "some/path"),
        ("example-store", "/etc"),
        ("example-store", "/var/lib/kubelet/a\0b"),
        ("example-store", "/var/lib/kubelet/../x"),
        ("example-store", KUBELET_DIR),
    ] {
        let status = rig.statistics(volume_id, path).await.expect_err(path);
        assert_eq!(status.code(), Code::NotFound, "{volume_id} {path}: {status:?}");
    }
}
