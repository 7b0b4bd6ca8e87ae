//! Every YAML block of the documentation parses, and every volume in one is a volume that the driver takes and a claim can bind.

use std::collections::BTreeSet;

use per_node::domain::handle::Handle;
use serde_json::Value;

use super::pages::{blocks_of, read};

const DRIVER: &str = "per-node.liken.sh";

/// The objects of a block. One that is marked `fragment: WHY` is part of an object, or another tool's file.
fn objects() -> Vec<(String, Vec<Value>)> {
    let mut found = Vec::new();
    for (_, place, block) in blocks_of("yaml") {
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&block.text).unwrap_or_else(|error| panic!("{place}: {error}"));
        if block.marked("fragment:").is_none() {
            found.push((place, objects));
        }
    }
    found
}

#[test]
fn every_object_has_its_kind_and_a_name() {
    let all = objects();
    assert!(all.len() >= 6, "the guides are not where they were");
    for (place, objects) in all {
        for object in objects {
            let named = object["metadata"]["name"].is_string() || object["kind"] == "Kustomization";
            let known = object["apiVersion"].is_string() && object["kind"].is_string() && named;
            assert!(known, "{place}: mark it `fragment: WHY` if it is no object: {object}");
        }
    }
}

#[test]
fn c02_c03_every_volume_of_the_guides_is_one_that_the_driver_takes() {
    let mut volumes = 0;
    for (place, objects) in objects() {
        let claims = claims(&objects);
        for volume in objects.iter().filter(|object| object["kind"] == "PersistentVolume") {
            volumes += 1;
            let spec = &volume["spec"];
            assert_eq!(spec["csi"]["driver"], DRIVER, "{place}");
            let handle = spec["csi"]["volumeHandle"].as_str().expect("a handle");
            assert!(Handle::parse(handle).is_ok(), "{place}: {handle}");
            assert_eq!(volume["metadata"]["name"], handle, "{place}: by convention they are one name");
            assert_eq!(spec["persistentVolumeReclaimPolicy"], "Retain", "{place}");
            assert_ne!(spec["accessModes"][0], "ReadWriteOnce", "{place}: it promises what is not so");
            let reference = &spec["claimRef"];
            let claim = claims
                .iter()
                .find(|claim| reference["name"] == claim.name && reference["namespace"] == claim.namespace)
                .unwrap_or_else(|| panic!("{place}: no claim for {handle}"));
            assert_eq!(spec["storageClassName"], claim.spec["storageClassName"], "{place}: {handle}");
            assert_eq!(spec["accessModes"], claim.spec["accessModes"], "{place}: {handle}");
            let size = &claim.spec["resources"]["requests"]["storage"];
            assert_eq!(&spec["capacity"]["storage"], size, "{place}: {handle}");
        }
    }
    assert!(volumes >= 7, "{volumes} volumes");
}

struct Claim {
    namespace: String,
    name: String,
    spec: Value,
}

/// The claims of a block, also those that a StatefulSet makes of its templates.
fn claims(objects: &[Value]) -> Vec<Claim> {
    let mut found = Vec::new();
    for object in objects {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
        match object["kind"].as_str() {
            Some("PersistentVolumeClaim") => {
                found.push(Claim { namespace, name, spec: object["spec"].clone() })
            }
            Some("StatefulSet") => {
                let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
                for template in object["spec"]["volumeClaimTemplates"].as_array().into_iter().flatten() {
                    let stem = text(&template["metadata"]["name"]);
                    found.extend((0..replicas).map(|number| Claim {
                        namespace: namespace.clone(),
                        name: format!("{stem}-{name}-{number}"),
                        spec: template["spec"].clone(),
                    }));
                }
            }
            Some(_) | None => {}
        }
    }
    found
}

/// A pod that mounts a claim which no guide has would wait for ever.
#[test]
fn every_claim_that_a_pod_mounts_is_there() {
    for (place, objects) in objects() {
        let claims: BTreeSet<String> = claims(&objects).into_iter().map(|claim| claim.name).collect();
        for object in &objects {
            let pod =
                if object["kind"] == "Pod" { &object["spec"] } else { &object["spec"]["template"]["spec"] };
            for volume in pod["volumes"].as_array().into_iter().flatten() {
                if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
                    assert!(claims.contains(claim), "{place}: {claim}");
                }
            }
        }
    }
}

/// The README's volume is that of the first guide, so that whoever goes on reading meets no second one.
#[test]
fn the_readme_shows_the_volume_of_the_first_guide() {
    let handle = "volumeHandle: build-cache";
    assert!(read("README.md").contains(handle) && read("docs/guides/first-volume.md").contains(handle));
}
