//! Causes between the pod and its volume.

use serde_json::{Value, json};

use super::*;

fn change_claim(facts: &mut Facts, by: impl FnOnce(&mut Value)) {
    change(&mut facts.claims[0].claim, by);
}

/// Changes the volume that is reserved for the claim.
fn change_candidate(facts: &mut Facts, by: impl FnOnce(&mut Value)) {
    let Seen::Is(candidates) = &mut facts.claims[0].candidates else { panic!("candidates") };
    let mut value = serde_json::to_value(&candidates[0]).expect("JSON");
    by(&mut value);
    candidates[0] = object(value);
}

/// As `pending`, with the claim naming the volume instead of the volume naming the claim.
fn named() -> Facts {
    let mut facts = pending();
    change_claim(&mut facts, |claim| claim["spec"]["volumeName"] = json!("cache"));
    let mut volume = volume_value();
    volume["spec"]["claimRef"] = Value::Null;
    facts.claims[0].volume = Seen::Is(object(volume));
    facts.claims[0].candidates = Seen::Is(Vec::new());
    facts
}

#[test]
fn a_pod_that_only_waits_for_the_binder_has_the_schedulers_word() {
    let finding = finds(&pending(), &["Unscheduled"]);
    assert!(finding.evidence[0].contains("unbound immediate PersistentVolumeClaims"), "{finding:?}");
}

#[test]
fn a_claim_that_is_not_there() {
    let mut facts = pending();
    facts.claims[0].claim = Seen::Absent;
    facts.claims[0].candidates = Seen::Unasked;
    let finding = finds(&facts, &["ClaimMissing", "Unscheduled"]);
    assert!(finding.remedy.contains("manifest cache -n ci"), "{finding:?}");
}

#[test]
fn a_claim_that_is_being_deleted() {
    let mut facts = pending();
    change_claim(&mut facts, |claim| {
        claim["status"]["phase"] = json!("Bound");
        claim["metadata"]["deletionTimestamp"] = json!(NOW);
    });
    finds(&facts, &["ClaimTerminating", "Unscheduled"]);
}

#[test]
fn c20_a_claim_whose_volume_was_deleted() {
    let mut facts = pending();
    change_claim(&mut facts, |claim| {
        claim["status"]["phase"] = json!("Lost");
        claim["spec"]["volumeName"] = json!("cache");
    });
    facts.claims[0].volume = Seen::Absent;
    let finding = finds(&facts, &["ClaimLost", "Unscheduled"]);
    assert!(finding.remedy.contains("status cache") && finding.remedy.contains("same handle"), "{finding:?}");
    // Made anew, it is the claim that has to follow: nobody is told to delete a volume that has copies.
    facts.claims[0].volume = Seen::Is(object(volume_value()));
    let finding = finds(&facts, &["ClaimLost", "Unscheduled"]);
    assert!(finding.remedy.contains("leave the volume"), "{finding:?}");
}

#[test]
fn c21_a_pod_that_runs_with_the_copy_of_a_deleted_volume_is_told_of_it() {
    let mut facts = healthy();
    change_pod(&mut facts, |pod| {
        pod["status"]["phase"] = json!("Running");
        pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        pod["status"]["containerStatuses"] = Value::Null;
    });
    change_claim(&mut facts, |claim| claim["status"]["phase"] = json!("Lost"));
    facts.claims[0].volume = Seen::Absent;
    let finding = finds(&facts, &["ClaimLost"]);
    assert_eq!(finding.certainty, Certainty::Note);
    assert!(finding.remedy.contains("before the pod ends"), "{finding:?}");
}

#[test]
fn c20_a_volume_that_keeps_the_uid_of_a_claim_that_is_gone() {
    let mut facts = pending();
    change_candidate(&mut facts, |volume| volume["spec"]["claimRef"]["uid"] = json!("an-older-uid"));
    let finding = finds(&facts, &["ClaimRefUid", "Unscheduled"]);
    assert_eq!(finding.remedy, "kubectl per-node release cache");
    assert!(finding.evidence[0].contains("an-older-uid") && finding.evidence[1].contains("claim-uid"));
}

#[test]
fn a_volume_that_the_claim_names_and_that_is_not_there() {
    let mut facts = named();
    facts.claims[0].volume = Seen::Absent;
    finds(&facts, &["VolumeMissing", "Unscheduled"]);
}

#[test]
fn a_volume_that_is_another_claims() {
    let mut facts = named();
    change(&mut facts.claims[0].volume, |volume| {
        volume["spec"]["claimRef"] = json!({"namespace": "other", "name": "cache", "uid": "x"});
    });
    let finding = finds(&facts, &["VolumeOfAnotherClaim", "Unscheduled"]);
    assert!(finding.sentence.contains("other/cache"), "{finding:?}");
}

#[test]
fn a_reserved_volume_that_is_being_deleted() {
    let mut facts = pending();
    change_candidate(&mut facts, |volume| volume["metadata"]["deletionTimestamp"] = json!(NOW));
    finds(&facts, &["ReservedVolumeTerminating", "Unscheduled"]);
}

#[test]
fn a_class_that_differs_where_the_binder_compares_it() {
    let other = |claim: &mut Value| claim["spec"]["storageClassName"] = json!("fast");
    let mut facts = named();
    change_claim(&mut facts, other);
    let finding = finds(&facts, &["ClassMismatch", "Unscheduled"]);
    assert_eq!(finding.evidence, ["spec.storageClassName: the claim has \"fast\", the volume \"per-node\""]);
    // A volume that is reserved for the claim is bound whatever its class.
    let mut facts = pending();
    change_claim(&mut facts, other);
    finds(&facts, &["Unscheduled"]);
    // One that is nobody's may have been meant.
    change_candidate(&mut facts, |volume| volume["spec"]["claimRef"] = Value::Null);
    assert_eq!(finds(&facts, &["ClassMismatch", "Unscheduled"]).certainty, Certainty::Likely);
}

#[test]
fn a_mode_that_the_volume_does_not_have() {
    for mut facts in [pending(), named()] {
        change_claim(&mut facts, |claim| claim["spec"]["accessModes"] = json!(["ReadWriteOncePod"]));
        finds(&facts, &["ModeMismatch", "Unscheduled"]);
    }
}

#[test]
fn c02_a_claim_that_asks_for_more_than_the_volume_has() {
    for mut facts in [pending(), named()] {
        change_claim(&mut facts, |claim| claim["spec"]["resources"]["requests"]["storage"] = json!("21Gi"));
        let finding = finds(&facts, &["SizeMismatch", "Unscheduled"]);
        assert_eq!(finding.evidence, ["storage: the claim has 21Gi, the volume 20Gi"]);
    }
    let mut facts = pending();
    change_claim(&mut facts, |claim| claim["spec"]["resources"]["requests"]["storage"] = json!("20480Mi"));
    finds(&facts, &["Unscheduled"]);
}

#[test]
fn c05_a_claim_for_a_block_device() {
    let mut facts = pending();
    change_claim(&mut facts, |claim| claim["spec"]["volumeMode"] = json!("Block"));
    finds(&facts, &["VolumeModeMismatch", "Unscheduled"]);
}

#[test]
fn c02_a_claim_that_no_volume_is_for() {
    let mut facts = pending();
    facts.claims[0].candidates = Seen::Is(Vec::new());
    change_pod(&mut facts, |pod| pod["status"]["conditions"] = json!([]));
    let finding = finds(&facts, &["NoVolumeForClaim", "Unscheduled"]);
    assert_eq!(finding.certainty, Certainty::Likely);
    assert!(finding.remedy.contains("kubectl per-node manifest cache -n ci"), "{finding:?}");
    // A claim of another class waits for its own provisioner.
    change_claim(&mut facts, |claim| claim["spec"]["storageClassName"] = json!("fast"));
    finds(&facts, &["Unscheduled"]);
}

#[test]
fn an_inline_volume() {
    let mut facts = healthy();
    facts.claims.clear();
    change_pod(&mut facts, |pod| {
        pod["spec"]["volumes"] = json!([{"name": "data", "csi": {"driver": "per-node.liken.sh"}}]);
    });
    finds(&facts, &["InlineVolume"]);
}

#[test]
fn c03_a_handle_that_breaks_a_rule() {
    for (handle, rule) in
        [("", "is empty"), ("Upper", "'U'"), ("a..b", "empty segment"), ("-a", "starts or ends")]
    {
        let mut facts = healthy();
        change(&mut facts.claims[0].volume, |volume| volume["spec"]["csi"]["volumeHandle"] = json!(handle));
        // The driver's own event says the same and is not repeated; the kubelet's repeats the driver's.
        let text = per_node::domain::handle::Handle::parse(handle).expect_err("none").to_string();
        facts.events = Seen::Is(vec![
            event("PerNodeVolumeRefused", "per-node.liken.sh", &text, 1),
            event("FailedMount", "kubelet", &format!("rpc error: code = InvalidArgument desc = {text}"), 1),
        ]);
        let finding = finds(&facts, &["HandleRule"]);
        assert!(finding.sentence.contains(rule), "{finding:?}");
    }
}

#[test]
fn c05_a_block_volume_that_is_bound() {
    let mut facts = healthy();
    change(&mut facts.claims[0].volume, |volume| volume["spec"]["volumeMode"] = json!("Block"));
    finds(&facts, &["BlockVolume"]);
}

#[test]
fn c05_a_mount_option_that_is_not_served_is_not_repeated() {
    let mut facts = healthy();
    change(&mut facts.claims[0].volume, |volume| {
        volume["spec"]["mountOptions"] = json!(["ro", "key=SECRET"])
    });
    let finding = finds(&facts, &["MountOptions"]);
    assert!(!format!("{finding:?}").contains("SECRET"));
    assert!(
        finding.remedy.contains("and then delete the pod"),
        "the kubelet looks at no mended volume: {finding:?}"
    );
}

#[test]
fn c14_one_handle_twice_in_one_pod() {
    let mut facts = healthy();
    let mut twin = facts.claims[0].clone();
    twin.name = "second".into();
    facts.claims.push(twin);
    let finding = finds(&facts, &["HandleTwice"]);
    assert!(finding.evidence[0].contains("cache and second"), "{finding:?}");
}

#[test]
fn a_bound_volume_that_is_being_deleted_is_a_note() {
    let mut facts = healthy();
    change(&mut facts.claims[0].volume, |volume| volume["metadata"]["deletionTimestamp"] = json!(NOW));
    assert_eq!(finds(&facts, &["VolumeTerminating"]).certainty, Certainty::Note);
}
