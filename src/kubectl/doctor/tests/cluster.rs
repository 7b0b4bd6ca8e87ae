//! What the cluster has once.

use serde_json::json;

use super::*;

/// Changes the DaemonSet by its JSON.
fn change_daemon_set(facts: &mut Facts, change: impl FnOnce(&mut Value)) {
    let Seen::Is(daemon_sets) = &mut facts.daemon_sets else { panic!("a DaemonSet") };
    let mut value = serde_json::to_value(&daemon_sets[0]).expect("JSON");
    change(&mut value);
    daemon_sets[0] = object(value);
}

/// Changes the plugin's container.
fn change_container(facts: &mut Facts, change: impl FnOnce(&mut Value)) {
    change_daemon_set(facts, |daemon_set| {
        change(&mut daemon_set["spec"]["template"]["spec"]["containers"][0])
    });
}

#[test]
fn the_csi_driver_object_is_there_and_every_field_is_as_deploy_has_it() {
    let mut facts = healthy();
    facts.csi_driver = Seen::Absent;
    finds(&facts, Verdict::Fault, "CsiDriver");
    let mut wrong = installation::csi_driver();
    wrong.spec.attach_required = Some(true);
    facts.csi_driver = Seen::Is(wrong);
    let line = finds(&facts, Verdict::Fault, "CsiDriver");
    assert!(line.says.contains("attachRequired is true and should be false"), "{line:?}");
    let mut wrong = installation::csi_driver();
    wrong.spec.fs_group_policy = Some("File".into());
    facts.csi_driver = Seen::Is(wrong);
    finds(&facts, Verdict::Warning, "CsiDriver");
}

#[test]
fn c40_the_daemon_set_is_there_ready_and_never_surges() {
    let mut facts = healthy();
    facts.daemon_sets = Seen::Is(Vec::new());
    let line = finds(&facts, Verdict::Fault, "DaemonSet");
    let repair = line.repair.unwrap_or_default();
    assert!(repair.contains("helm install;") && repair.contains("--force-conflicts"), "{repair}");
    let mut facts = healthy();
    change_daemon_set(&mut facts, |one| one["status"]["numberReady"] = json!(2));
    assert!(finds(&facts, Verdict::Warning, "DaemonSet").says.contains("2 of 3"));
    for surge in [json!(1), json!("10%")] {
        let mut facts = healthy();
        change_daemon_set(&mut facts, |one| {
            one["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"] = surge;
        });
        assert!(finds(&facts, Verdict::Warning, "DaemonSet").says.contains("maxSurge"));
    }
}

#[test]
fn c44_the_kubelets_directory_propagates_what_is_mounted_below_it() {
    let mut facts = healthy();
    change_container(&mut facts, |one| one["volumeMounts"][0]["mountPropagation"] = json!("HostToContainer"));
    assert!(finds(&facts, Verdict::Fault, "Propagation").says.contains("HostToContainer"));
    change_container(&mut facts, |one| one["volumeMounts"][0]["mountPropagation"] = Value::Null);
    assert!(finds(&facts, Verdict::Fault, "Propagation").says.contains("None"));
}

#[test]
fn c44_the_kubelets_directory_has_one_path_here_and_on_the_host() {
    let mut facts = healthy();
    change_daemon_set(&mut facts, |one| {
        one["spec"]["template"]["spec"]["volumes"][0]["hostPath"]["path"] = json!("/data/kubelet");
    });
    let line = finds(&facts, Verdict::Fault, "KubeletDirectory");
    assert!(line.says.contains("/var/lib/kubelet here is /data/kubelet on the host"), "{line:?}");
    change_daemon_set(&mut facts, |one| {
        one["spec"]["template"]["spec"]["volumes"][0] = json!({"name": "kubelet-dir", "emptyDir": {}});
    });
    finds(&facts, Verdict::Fault, "KubeletDirectory");
    // A flag that names what is not mounted, written as two arguments.
    let mut facts = healthy();
    change_container(&mut facts, |one| one["args"] = json!(["serve", "--kubelet-dir", "/elsewhere"]));
    let mut lines = examine(&facts);
    lines.retain(|line| line.verdict == Verdict::Fault);
    assert_eq!(lines.iter().map(|line| line.check).collect::<Vec<_>>(), ["Propagation", "KubeletDirectory"]);
}

#[test]
fn the_container_may_mount() {
    let mut facts = healthy();
    change_container(&mut facts, |one| one["securityContext"]["privileged"] = json!(false));
    finds(&facts, Verdict::Fault, "Privileges");
    let mut facts = healthy();
    change_container(&mut facts, |one| one["securityContext"]["runAsUser"] = json!(1000));
    assert!(finds(&facts, Verdict::Fault, "Privileges").says.contains("1000"));
}

#[test]
fn each_right_that_the_plugin_lacks_is_named_with_what_it_costs() {
    for (verb, resource, _) in installation::rights() {
        let mut facts = healthy();
        facts.rights = super::rights(&format!("{verb} {resource}"));
        let line = finds(&facts, Verdict::Fault, "Rights");
        assert!(line.says.contains(&format!("may not {verb} {resource}")), "{line:?}");
        assert_eq!(line.says.contains("nothing is removed"), resource != "events", "{line:?}");
    }
}

#[test]
fn events_that_cannot_be_read_are_said_by_what_is_unread() {
    let mut facts = healthy();
    facts.events = Seen::Unread;
    assert!(examine(&facts).iter().all(|line| line.check != "Events"));
}

#[test]
fn more_than_one_version_is_a_roll_that_has_not_ended() {
    let mut facts = healthy();
    n2(&mut facts).heard = heard(|report| report["version"] = json!("0.2.0"));
    let line = finds(&facts, Verdict::Warning, "PluginVersions");
    assert!(line.says.ends_with("0.1.0 on 2, 0.2.0 on 1"), "{line:?}");
}

#[test]
fn a_clock_of_this_machine_that_is_off_is_told_once() {
    let mut facts = healthy();
    for node in facts.nodes.values_mut() {
        node.heard = heard(|report| report["at"] = json!("2026-11-30T05:00:00Z"));
    }
    let line = finds(&facts, Verdict::Warning, "OwnClock");
    assert!(line.says.contains("3600 s"), "{line:?}");
}
