//! What a request names: handles, trash entries, target paths, mount flags. What is accepted is one thing, in one spelling,
//! where it must be.

use std::path::{Component, Path};

use per_node::domain::handle::{HANDLE_LENGTH_MAX, Handle};
use per_node::domain::mount_options::{AccessTime, MountOptions, MountOptionsError};
use per_node::domain::target::{KubeletDir, TargetPath};
use per_node::domain::trash::TrashId;
use proptest::collection::vec;
use proptest::prelude::*;

use super::runner::fuzz;

/// Strings near a handle: pieces that are allowed and pieces that are not, in any order.
fn near_a_handle() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-z0-9]{1,3}",
        2 => Just(".".to_owned()),
        2 => Just("-".to_owned()),
        1 => prop::sample::select(vec!["/", "..", "\0", "A", "_", " ", "\n", "é", "\u{ff0e}", "%2e", "\\"]).prop_map(str::to_owned),
        1 => "[a-z0-9]{60,130}",
        1 => ".{1,2}",
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// C3 in other words than the parser's.
fn is_a_subdomain(raw: &str) -> bool {
    let edge =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    let label = |label: &str| {
        let bytes = label.as_bytes();
        edge(bytes.first())
            && edge(bytes.last())
            && bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase() || *byte == b'-')
    };
    raw.len() <= HANDLE_LENGTH_MAX && raw.split('.').all(label)
}

#[test]
fn c03_a_handle_is_a_subdomain_and_one_component_and_comes_back_as_it_was() {
    fuzz("handle", 2000, &near_a_handle(), |raw| {
        let parsed = Handle::parse(&raw);
        prop_assert_eq!(parsed.is_ok(), is_a_subdomain(&raw), "{:?}", parsed);
        let Ok(handle) = parsed else { return Ok(()) };
        let components: Vec<Component<'_>> = handle.as_path().components().collect();
        prop_assert_eq!(components, [Component::Normal(raw.as_ref())]);
        let joined = Path::new("/store/copies").join(handle.as_path());
        prop_assert_eq!(joined.parent(), Some(Path::new("/store/copies")));
        prop_assert_eq!(Handle::parse(&handle.to_string()), Ok(handle.clone()));
        let json = serde_json::to_string(&handle).expect("a handle is text");
        prop_assert_eq!(serde_json::from_str::<Handle>(&json).expect("as it was written"), handle);
        Ok(())
    });
}

#[test]
fn c03_a_handle_that_is_none_is_none_in_a_record_either() {
    fuzz("handle_record", 2000, &near_a_handle(), |raw| {
        let json = serde_json::to_string(&raw).expect("text");
        prop_assert_eq!(serde_json::from_str::<Handle>(&json).is_ok(), is_a_subdomain(&raw));
        Ok(())
    });
}

#[test]
fn c03_a_trash_entry_is_never_a_handles_name_twice() {
    let name = prop_oneof![near_a_handle(), "t[0-9]{0,22}", "t?[+-]?[0-9]{1,20}"];
    fuzz("trash", 2000, &name, |name| {
        if let Some(id) = TrashId::parse(&name) {
            prop_assert_eq!(id.to_string(), name);
        }
        Ok(())
    });
}

fn near_a_target() -> impl Strategy<Value = String> {
    let start = prop::sample::select(vec![
        "/var/lib/kubelet",
        "/data/kubelet",
        "/var/lib/kubelets",
        "/var/lib",
        "/",
        "",
        "var/lib/kubelet",
        "//var/lib/kubelet",
    ]);
    let piece = prop_oneof![
        6 => prop::sample::select(vec!["/", "/pods", "/u-1", "/volumes", "/kubernetes.io~csi", "/pv", "/mount"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["/.", "/..", "/...", "//", "/ ", "\n", "\0", "/volume-subpaths", "/é"]).prop_map(str::to_owned),
        1 => "/[a-z]{250,260}",
        1 => "/.{1,3}",
    ];
    let shaped = "/var/lib/kubelet/pods/[a-z0-9-]{1,8}/volumes/kubernetes.io~csi/[a-z]{1,4}/mount/?";
    prop_oneof![4 => (start, vec(piece, 0..9)).prop_map(|(start, rest)| start.to_owned() + &rest.concat()), 1 => shaped]
}

#[test]
fn c18_a_target_that_is_taken_lies_below_the_kubelets_directory_in_one_spelling() {
    let kubelet = KubeletDir::new("/var/lib/kubelet".into(), "/data/kubelet".into());
    fuzz("target", 2000, &near_a_target(), |raw| {
        let any = TargetPath::parse(&raw, &kubelet);
        let for_publish = TargetPath::parse_for_publish(&raw, &kubelet);
        if let (Ok(any), Ok(taken)) = (&any, &for_publish) {
            prop_assert_eq!(any, taken);
        }
        prop_assert!(any.is_ok() || for_publish.is_err(), "a publish takes what an unpublish does not");
        let Ok(target) = for_publish else { return Ok(()) };
        let text = target.as_path().to_str().expect("it was text");
        let rest = text.strip_prefix("/data/kubelet/").expect("below the real directory");
        let names: Vec<&str> = rest.split('/').collect();
        prop_assert!(
            names
                .iter()
                .all(|name| !matches!(*name, "" | "." | "..") && name.len() <= 255 && !name.contains('\0'))
        );
        prop_assert_eq!(TargetPath::parse_for_publish(text, &kubelet), Ok(target.clone()), "once more");
        let other = format!("/var/lib/kubelet/{rest}");
        if other.len() <= 4095 {
            prop_assert_eq!(
                TargetPath::parse_for_publish(&other, &kubelet),
                Ok(target.clone()),
                "the other spelling"
            );
        }
        if let Some(uid) = target.pod_uid(&kubelet) {
            prop_assert_eq!(uid.as_str(), names[1]);
            prop_assert_eq!((names.len(), names[0], names[5]), (6, "pods", "mount"));
        }
        Ok(())
    });
}

const FLAGS: [&str; 13] = [
    "ro",
    "rw",
    "exec",
    "noexec",
    "suid",
    "nosuid",
    "dev",
    "nodev",
    "diratime",
    "nodiratime",
    "noatime",
    "relatime",
    "norelatime",
];

/// C5 by a table: the last word about each flag counts, one unknown word spoils all.
fn by_the_table(entries: &[String], readonly: bool) -> Option<MountOptions> {
    let mut options = MountOptions::default();
    for flag in entries.iter().flat_map(|entry| entry.split(',')) {
        let (name, value) = match flag.strip_prefix("no") {
            Some(name) => (name, false),
            None => (flag, true),
        };
        match (name, value) {
            ("ro", true) => options.read_only = Some(true),
            ("rw", true) => options.read_only = Some(false),
            ("exec", on) => options.no_exec = Some(!on),
            ("suid", on) => options.no_suid = Some(!on),
            ("dev", on) => options.no_dev = Some(!on),
            ("diratime", on) => options.no_dir_access_time = Some(!on),
            ("atime", false) => options.access_time = Some(AccessTime::Never),
            ("atime" | "relatime", true) => options.access_time = Some(AccessTime::Relative),
            ("relatime", false) => options.access_time = Some(AccessTime::Strict),
            _ => return None,
        }
    }
    if readonly {
        options.read_only = Some(true);
    }
    Some(options)
}

#[test]
fn c05_mount_flags_are_read_by_the_table_and_never_repeated() {
    let known = prop::sample::select(FLAGS.to_vec()).prop_map(str::to_owned);
    let flag = prop_oneof![
        20 => known.clone(),
        4 => vec(known, 1..5).prop_map(|flags| flags.join(",")),
        1 => "[a-z]{1,3}(ro|exec|time)?",
        1 => ".{0,6}",
        1 => prop::sample::select(vec!["bind", "remount", "nonoexec", "noro", "norw", "RO", "ro ", ",", "suid=1"]).prop_map(str::to_owned),
    ];
    fuzz("flags", 2000, &(vec(flag, 0..6), any::<bool>()), |(flags, readonly)| {
        match MountOptions::parse(&flags, readonly) {
            Ok(options) => prop_assert_eq!(Some(options), by_the_table(&flags, readonly)),
            Err(MountOptionsError::Unsupported) => prop_assert_eq!(None, by_the_table(&flags, readonly)),
            Err(MountOptionsError::TooLong) => {
                prop_assert!(flags.iter().map(String::len).sum::<usize>() > 4096);
            }
        }
        Ok(())
    });
}
