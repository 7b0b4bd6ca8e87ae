//! What `manifest` prints is what the API takes, says what every field is for, and has the shape of deploy/examples.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::installation::DRIVER_NAME;

fn request(mode: Mode, workload: Option<Workload>) -> Request {
    let text = str::to_owned;
    let (name, namespace, size) = (text("build-cache"), text("ci"), text("20Gi"));
    Request { name, namespace, size, mode, driver_name: DRIVER_NAME.to_owned(), workload }
}

/// Every request that is allowed.
fn requests() -> Vec<Request> {
    let workloads =
        [None, Some(Workload::StatefulSet), Some(Workload::DaemonSet), Some(Workload::Deployment)];
    let mut requests = Vec::new();
    for mode in [Mode::Rwx, Mode::Rwop] {
        for workload in workloads {
            if (mode, workload) != (Mode::Rwop, Some(Workload::DaemonSet)) {
                requests.push(request(mode, workload));
            }
        }
    }
    requests
}

#[track_caller]
fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Decodes as the API does and encodes again: a field that the API does not know would be lost.
#[track_caller]
fn strictly<T: DeserializeOwned + Serialize>(object: &Value) -> T {
    let decoded: T =
        serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"));
    let again = serde_json::to_value(&decoded).expect("an object");
    assert_eq!(&again, object);
    decoded
}

#[test]
fn c02_everything_printed_is_an_object_of_the_api_to_the_last_field() {
    for request in requests() {
        let text = manifest(&request).expect("allowed");
        let objects = documents(&text);
        assert_eq!(objects.len(), 2 + usize::from(request.workload.is_some()), "{text}");
        let volume: PersistentVolume = strictly(&objects[0]);
        let claim: PersistentVolumeClaim = strictly(&objects[1]);
        let (volume, claim_spec) = (volume.spec.expect("a spec"), claim.spec.expect("a spec"));
        assert_eq!(volume.access_modes, claim_spec.access_modes);
        assert_eq!(volume.access_modes.expect("a mode"), [request.mode.access_mode()]);
        match request.workload {
            None => {}
            Some(Workload::StatefulSet) => drop(strictly::<StatefulSet>(&objects[2])),
            Some(Workload::DaemonSet) => drop(strictly::<DaemonSet>(&objects[2])),
            Some(Workload::Deployment) => drop(strictly::<Deployment>(&objects[2])),
        }
    }
}

/// The keys of an object, all the way down; lists are looked into.
fn shape(object: &Value, at: &str, into: &mut Vec<String>) {
    match object {
        Value::Object(fields) => {
            for (name, value) in fields {
                shape(value, &format!("{at}/{name}"), into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| shape(item, &format!("{at}/-"), into)),
        _ => into.push(at.to_owned()),
    }
}

fn shapes(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    shape(object, "", &mut found);
    found.sort();
    found
}

#[test]
fn c02_volume_and_claim_have_the_shape_of_the_examples() {
    for (mode, example) in [
        (Mode::Rwx, include_str!("../../../deploy/examples/one-volume-many-nodes.yaml")),
        (Mode::Rwop, include_str!("../../../deploy/examples/single-writer.yaml")),
    ] {
        let printed = documents(&manifest(&request(mode, None)).expect("allowed"));
        let example = documents(example);
        for object in &printed {
            let twin = example.iter().find(|one| one["kind"] == object["kind"]).expect("in the example");
            assert_eq!(shapes(object), shapes(twin));
            for same in ["storageClassName", "accessModes", "persistentVolumeReclaimPolicy"] {
                assert_eq!(object["spec"][same], twin["spec"][same], "{same}");
            }
            assert_eq!(object["spec"]["csi"]["driver"], twin["spec"]["csi"]["driver"]);
        }
    }
}

#[test]
fn c12_whatever_the_workload_the_old_pod_goes_before_the_new_one_starts() {
    let workload = |mode, kind| documents(&manifest(&request(mode, Some(kind))).expect("allowed")).remove(2);
    let one_by_one = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
    assert_eq!(workload(Mode::Rwx, Workload::Deployment)["spec"]["strategy"], one_by_one);
    assert_eq!(workload(Mode::Rwx, Workload::DaemonSet)["spec"]["updateStrategy"], one_by_one);
    assert_eq!(workload(Mode::Rwop, Workload::Deployment)["spec"]["strategy"], json!({"type": "Recreate"}));
    for (mode, kind) in [
        (Mode::Rwx, Workload::Deployment),
        (Mode::Rwx, Workload::StatefulSet),
        (Mode::Rwop, Workload::Deployment),
        (Mode::Rwop, Workload::StatefulSet),
    ] {
        let object = workload(mode, kind);
        assert_eq!(object["spec"]["replicas"], 1);
        assert_eq!(
            object["spec"]["selector"]["matchLabels"],
            object["spec"]["template"]["metadata"]["labels"]
        );
        assert_eq!(object["spec"]["volumeClaimTemplates"], Value::Null);
        let apart = &object["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"];
        assert_eq!(apart.is_object(), mode == Mode::Rwx, "{kind:?} {mode:?}");
    }
    assert_eq!(
        manifest(&request(Mode::Rwop, Some(Workload::DaemonSet))),
        Err(ManifestError::OncePodOnEveryNode)
    );
}

#[test]
fn every_field_below_a_spec_that_a_person_might_wonder_about_says_what_it_is_for() {
    // What is only the way to such a field, or what every object has.
    const BARE: [&str; 17] = [
        "apiVersion",
        "metadata",
        "spec",
        "csi",
        "resources",
        "matchLabels",
        "app",
        "template",
        "type",
        "rollingUpdate",
        "podAntiAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "labelSelector",
        "containers",
        "volumeMounts",
        "volumes",
        "persistentVolumeClaim",
    ];
    for request in requests() {
        let text = manifest(&request).expect("allowed");
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            assert!(line.chars().count() <= 140, "{line}");
            let Some((key, _)) = line.trim().split_once(':') else { continue };
            let is_comment = key.starts_with('#') || key.starts_with('-');
            let said = at > 0 && lines[at - 1].trim().starts_with("# ");
            assert!(is_comment || said || BARE.contains(&key), "no comment at {line:?} in\n{text}");
        }
    }
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Request)) -> String {
    let mut request = request(Mode::Rwx, None);
    change(&mut request);
    manifest(&request).expect_err("refused").to_string()
}

#[test]
fn c03_a_name_that_is_no_handle_is_refused_by_its_rule() {
    for (name, rule) in [
        ("", "is empty"),
        ("Build", "'B'"),
        ("build_cache", "'_'"),
        ("-build", "starts or ends with '-'"),
        ("build.", "empty segment"),
        (&"a".repeat(254), "254 bytes"),
    ] {
        let line = refused(|request| request.name = name.to_owned());
        assert!(line.contains(rule) && line.starts_with("NAME "), "{line}");
    }
    let long = refused(|request| {
        request.name = "a".repeat(53);
        request.workload = Some(Workload::StatefulSet);
    });
    assert!(long.contains("StatefulSet") && long.contains("52 bytes"), "{long}");
    let dotted = refused(|request| {
        request.name = "a.b".into();
        request.workload = Some(Workload::Deployment);
    });
    assert!(dotted.contains("Deployment") && dotted.contains("DNS-1123 label"), "{dotted}");
    // Without a workload the whole range of handles is a volume's.
    let mut longest = request(Mode::Rwx, None);
    longest.name = format!("{}.{}", "a".repeat(200), "b".repeat(52));
    assert!(manifest(&longest).is_ok());
}

#[test]
fn a_namespace_and_a_size_are_refused_by_their_rules() {
    for namespace in ["", "a.b", "A", "-a", &"a".repeat(64)] {
        let line = refused(|request| request.namespace = namespace.to_owned());
        assert!(line.starts_with("--namespace ") && line.contains("DNS-1123 label"), "{line}");
    }
    for (size, rule) in
        [("20GB", "as 20Gi"), ("0", "more than 0"), ("-1Gi", "more than 0"), ("much", "as 20Gi")]
    {
        let line = refused(|request| request.size = size.to_owned());
        assert!(line.starts_with("--size ") && line.contains(rule), "{line}");
    }
}

#[test]
fn what_yaml_takes_for_something_else_stays_text() {
    for name in ["1234", "0x1f", "1e3", "true", "no", "null", "2026-11-30", "1.5"] {
        let mut request = request(Mode::Rwx, None);
        request.name = name.into();
        request.size = "1000".into();
        request.driver_name = "9.example".into();
        let objects = documents(&manifest(&request).expect("a handle"));
        assert_eq!(objects[0]["metadata"]["name"], *name);
        assert_eq!(objects[0]["spec"]["csi"]["volumeHandle"], *name);
        assert_eq!(objects[0]["spec"]["capacity"]["storage"], "1000");
        assert_eq!(objects[0]["spec"]["csi"]["driver"], "9.example");
    }
    for size in ["20Gi", "1e3", "1E", "5k", "1.5T", "100m"] {
        let mut request = request(Mode::Rwx, None);
        request.size = size.into();
        let objects = documents(&manifest(&request).expect("a size"));
        assert_eq!(objects[1]["spec"]["resources"]["requests"]["storage"], *size);
    }
}
