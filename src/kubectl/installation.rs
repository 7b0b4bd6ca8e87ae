//! What deploy/ installs, as the commands expect to find it. The manifests themselves are the source, so that a judgement of
//! a cluster and what is applied to one cannot drift apart.
//!
//! It reads no cluster and no file at run time.

#[cfg(test)]
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::api::storage::v1::CSIDriver;
use serde::de::DeserializeOwned;

/// The driver's name where nobody gave it another.
pub const DRIVER_NAME: &str = "per-node.liken.sh";
/// The container that runs the plugin.
pub const CONTAINER: &str = "per-node";
/// The service account of the plugin's pods.
pub const SERVICE_ACCOUNT: &str = "per-node";
/// What the plugin's pods are found by.
pub const POD_LABELS: &str = "app.kubernetes.io/name=per-node";

const RBAC: &str = include_str!("../../deploy/base/rbac.yaml");
const CSI_DRIVER: &str = include_str!("../../deploy/base/csi-driver.yaml");
#[cfg(test)]
const DAEMON_SET: &str = include_str!("../../deploy/base/daemon-set.yaml");

/// The CSIDriver object as it is installed.
pub fn csi_driver() -> CSIDriver {
    object(CSI_DRIVER)
}

/// What the plugin's service account may do: verb, resource, and the one object's name where it is one.
pub fn rights() -> Vec<(String, String, Option<String>)> {
    let objects: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(RBAC).expect("deploy/base/rbac.yaml is YAML");
    let role = objects.into_iter().find(|object| object["kind"] == "ClusterRole").expect("a ClusterRole");
    let role: ClusterRole = serde_json::from_value(role).expect("a ClusterRole of the API");
    let mut rights = Vec::new();
    for rule in role.rules.into_iter().flatten() {
        let name = rule.resource_names.into_iter().flatten().next();
        for resource in rule.resources.into_iter().flatten() {
            rights.extend(rule.verbs.iter().map(|verb| (verb.clone(), resource.clone(), name.clone())));
        }
    }
    rights
}

/// The DaemonSet as it is installed.
#[cfg(test)]
pub fn daemon_set() -> DaemonSet {
    object(DAEMON_SET)
}

fn object<T: DeserializeOwned>(text: &str) -> T {
    // The text is compiled in and the test below reads it: it cannot be anything else at run time.
    serde_saphyr::from_str(text).expect("a manifest of deploy/ is an object of the API")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifests_are_objects_of_the_api_and_say_what_the_constants_say() {
        assert_eq!(csi_driver().metadata.name.as_deref(), Some(DRIVER_NAME));
        assert_eq!(csi_driver().spec.attach_required, Some(false));
        let daemon_set = daemon_set();
        let template = daemon_set.spec.template;
        let pod = template.spec.expect("a pod");
        assert_eq!(pod.service_account_name.as_deref(), Some(SERVICE_ACCOUNT));
        assert_eq!(pod.containers.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), [CONTAINER]);
        let labels = template.metadata.expect("metadata").labels.expect("labels");
        let rights: Vec<String> =
            rights().into_iter().map(|(verb, resource, _)| format!("{verb} {resource}")).collect();
        let all = [
            "list persistentvolumes",
            "watch persistentvolumes",
            "get namespaces",
            "create events",
            "patch events",
        ];
        assert_eq!(rights, all);
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(labels, [POD_LABELS]);
    }
}
