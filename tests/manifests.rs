//! The manifests of deploy/ say what the contract and the binary say: nothing may drift.
//!
//! Everything is read as YAML values; no cluster is asked (the real cluster's cases apply the same files).

use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser as _};
use per_node::adapters::cli::{Command, CommandLine, ServeConfig};
use serde_json::{Value, json};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn base() -> PathBuf {
    deploy().join("base")
}

/// Every YAML file below a directory, in order. The chart's are templates, which tests/deploy renders.
fn yaml_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path == deploy().join("chart") {
            continue;
        }
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The documents of a file.
fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file");
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The one object of a kind in the base.
fn base_object(kind: &str) -> Value {
    let mut found: Vec<Value> = base_files()
        .iter()
        .flat_map(|path| documents(path))
        .filter(|object| object["kind"] == kind)
        .collect();
    assert_eq!(found.len(), 1, "one {kind}");
    found.remove(0)
}

/// The files that the base's kustomization lists.
fn base_files() -> Vec<PathBuf> {
    let kustomization = documents(&base().join("kustomization.yaml")).remove(0);
    let resources = kustomization["resources"].as_array().expect("resources").clone();
    resources.iter().map(|name| base().join(name.as_str().expect("a name"))).collect()
}

/// The plugin's container.
fn container() -> Value {
    let mut daemon_set = base_object("DaemonSet");
    let containers = daemon_set["spec"]["template"]["spec"]["containers"].take();
    assert_eq!(containers.as_array().map(Vec::len), Some(1));
    containers[0].clone()
}

/// The configuration that the binary makes of the container's arguments, on a node named `node`.
fn configuration() -> ServeConfig {
    configuration_of(&container()["args"])
}

fn configuration_of(arguments: &Value) -> ServeConfig {
    let arguments =
        arguments.as_array().expect("arguments").iter().map(|one| one.as_str().expect("a string"));
    let typed = ["per-node"].into_iter().chain(arguments).chain(["--node-id=node", "--pod-uid=uid"]);
    match CommandLine::try_parse_from(typed).expect("flags the binary knows").command {
        Command::Serve(flags) => flags.config().expect("values the binary takes"),
        Command::Confirm(_) | Command::Ls(_) | Command::Trash(_) => panic!("not serve"),
        #[cfg(feature = "demo")]
        Command::Demo(_) => panic!("not serve"),
    }
}

#[test]
fn the_arguments_are_flags_of_the_binary_and_its_defaults() {
    let written = configuration();
    let typed = ["per-node", "serve", "--node-id=node"];
    let Command::Serve(defaults) = CommandLine::try_parse_from(typed).expect("the defaults").command else {
        panic!("not serve")
    };
    let defaults = defaults.config().expect("the defaults");
    assert_eq!(written.copies_key.as_deref(), Some("uid"), "the operator's tool finds something to read");
    // What the manifest writes out, for an overlay to change, is what the binary would do by itself but for that; its log is
    // for machines.
    let plain = ServeConfig { log_format: defaults.log_format, copies_key: None, ..written };
    assert_eq!(format!("{plain:?}"), format!("{defaults:?}"));
}

#[test]
fn c49_the_component_turns_volume_health_on_and_changes_nothing_else() {
    let component = documents(&deploy().join("components/volume-health/kustomization.yaml")).remove(0);
    assert_eq!((&component["kind"], &component["resources"]), (&json!("Component"), &Value::Null));
    let patches = component["patches"].as_array().expect("patches");
    assert_eq!((patches.len(), &patches[0]["target"]), (1, &json!({"kind": "DaemonSet"})));
    let operations: Vec<Value> =
        serde_saphyr::from_str(patches[0]["patch"].as_str().expect("a patch")).expect("operations");
    let path = "/spec/template/spec/containers/0/args/-";
    assert_eq!(operations, [json!({"op": "add", "path": path, "value": "--volume-health"})]);
    let mut arguments = container()["args"].clone();
    arguments.as_array_mut().expect("arguments").push(operations[0]["value"].clone());
    let (with, base) = (configuration_of(&arguments), configuration());
    assert!(with.volume_health && !base.volume_health);
    let without = ServeConfig { volume_health: false, ..with };
    assert_eq!(format!("{without:?}"), format!("{base:?}"));
}

#[test]
fn the_environment_sets_only_what_the_binary_reads() {
    let command = CommandLine::command();
    let serve = command.find_subcommand("serve").expect("serve");
    let known: Vec<_> =
        serve.get_arguments().filter_map(|flag| flag.get_env()?.to_str().map(str::to_owned)).collect();
    for variable in container()["env"].as_array().expect("the environment") {
        let name = variable["name"].as_str().expect("a name");
        assert!(known.iter().any(|one| one == name), "{name} is no variable of the binary");
    }
    let from = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    assert_eq!(
        container()["env"],
        json!([from("NODE_NAME", "spec.nodeName"), from("POD_UID", "metadata.uid")])
    );
}

#[test]
fn c45_the_probes_ask_where_the_binary_answers() {
    let container = container();
    let ports = json!([{"name": "http", "containerPort": configuration().http.port(), "protocol": "TCP"}]);
    assert_eq!(container["ports"], ports);
    assert_eq!(container["livenessProbe"]["httpGet"], json!({"path": "/healthz", "port": "http"}));
    assert_eq!(container["readinessProbe"]["httpGet"], json!({"path": "/readyz", "port": "http"}));
}

#[test]
fn c45_the_scrape_annotations_lead_to_the_metrics() {
    let daemon_set = base_object("DaemonSet");
    let annotations = &daemon_set["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["prometheus.io/scrape"], "true");
    assert_eq!(annotations["prometheus.io/port"], configuration().http.port().to_string());
    assert_eq!(annotations["prometheus.io/path"], "/metrics");
}

#[test]
fn the_objects_and_the_binary_know_the_driver_by_one_name() {
    assert_eq!(base_object("CSIDriver")["metadata"]["name"], configuration().driver_name.as_str());
}

#[test]
fn every_manifest_is_a_kubernetes_object() {
    let files = yaml_files(&deploy());
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        for object in documents(&file) {
            let named = object["apiVersion"].is_string() && object["kind"].is_string();
            assert!(named, "{}: {object}", file.display());
        }
    }
}

#[test]
fn the_base_lists_every_manifest_beside_it() {
    let mut listed = base_files();
    listed.push(base().join("kustomization.yaml"));
    listed.sort();
    let mut there: Vec<_> =
        std::fs::read_dir(base()).expect("the base").map(|entry| entry.expect("an entry").path()).collect();
    there.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    there.sort();
    assert_eq!(listed, there);
}

#[test]
fn the_csi_driver_object_has_every_field_decided() {
    let object = base_object("CSIDriver");
    assert_eq!(object["metadata"]["name"], "per-node.liken.sh");
    // Unset fields mean other things than these (an unset attachRequired hangs every pod), so each is written down.
    assert_eq!(
        object["spec"],
        json!({
            "attachRequired": false,
            "podInfoOnMount": true,
            "volumeLifecycleModes": ["Persistent"],
            "storageCapacity": false,
            "fsGroupPolicy": "None",
            "requiresRepublish": false,
            "seLinuxMount": false,
        })
    );
}

#[test]
fn c32_the_plugin_may_do_no_more_than_the_contract_says() {
    assert_eq!(
        base_object("ClusterRole")["rules"],
        json!([
            {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["list", "watch"]},
            {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        ])
    );
    let binding = base_object("ClusterRoleBinding");
    let account = base_object("ServiceAccount")["metadata"]["name"].clone();
    assert_eq!(binding["roleRef"]["name"], base_object("ClusterRole")["metadata"]["name"]);
    assert_eq!(
        binding["subjects"],
        json!([{"kind": "ServiceAccount", "name": account, "namespace": base_object("Namespace")["metadata"]["name"]}])
    );
    assert_eq!(base_object("DaemonSet")["spec"]["template"]["spec"]["serviceAccountName"], account);
}

#[test]
fn c40_one_plugin_at_a_time_on_every_node_whatever_its_taints() {
    let daemon_set = base_object("DaemonSet");
    assert_eq!(daemon_set["spec"]["updateStrategy"]["rollingUpdate"]["maxSurge"], 0);
    let pod = &daemon_set["spec"]["template"]["spec"];
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(pod["priorityClassName"], "system-node-critical");
    assert_eq!(
        daemon_set["spec"]["selector"]["matchLabels"],
        daemon_set["spec"]["template"]["metadata"]["labels"]
    );
    // C42: the process ends within five seconds; the kubelet's patience is longer than that.
    assert!(pod["terminationGracePeriodSeconds"].as_u64() > Some(5));
}

#[test]
fn c44_the_mounts_propagate_as_the_plugin_demands_and_are_the_same_path_inside() {
    let (container, configuration) = (container(), configuration());
    let volumes = base_object("DaemonSet")["spec"]["template"]["spec"]["volumes"].clone();
    for (name, path, propagation, kind) in [
        ("kubelet-dir", configuration.kubelet_dir, "Bidirectional", "Directory"),
        ("store", configuration.store, "HostToContainer", "DirectoryOrCreate"),
    ] {
        let by_name = |list: &Value| {
            list.as_array()
                .and_then(|list| list.iter().find(|item| item["name"] == name))
                .cloned()
                .expect("an entry")
        };
        let (mount, volume) = (by_name(&container["volumeMounts"]), by_name(&volumes));
        assert_eq!(mount["mountPropagation"], propagation);
        assert_eq!(volume["hostPath"], json!({"path": path, "type": kind}));
        assert_eq!(mount["mountPath"], path.to_str().expect("a path"));
    }
}

#[test]
fn the_container_is_as_closed_as_bidirectional_propagation_allows() {
    let context = container()["securityContext"].clone();
    assert_eq!(context["privileged"], true);
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
    let labels = base_object("Namespace")["metadata"]["labels"].clone();
    assert_eq!(labels["pod-security.kubernetes.io/enforce"], "privileged");
}

#[test]
fn no_manifest_names_a_registry_or_a_secret() {
    for file in yaml_files(&deploy()) {
        let text = std::fs::read_to_string(&file).expect("a file");
        for object in documents(&file) {
            assert_ne!(object["kind"], "Secret", "{}", file.display());
        }
        for line in text.lines().filter(|line| line.trim_start().starts_with("image:")) {
            assert!(!line.contains('/'), "{}: {line}", file.display());
        }
    }
}

/// The examples are the product's page in other words: volume and claim fit together, and nothing asks for ReadWriteOnce.
#[test]
fn c02_the_examples_are_volumes_as_the_page_has_them() {
    let files = yaml_files(&deploy().join("examples"));
    assert_eq!(files.len(), 3);
    for file in files {
        let objects = documents(&file);
        let of = |kind: &str| {
            objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("a {kind}"))
        };
        let (volume, claim) = (of("PersistentVolume"), of("PersistentVolumeClaim"));
        let (volume_spec, claim_spec) = (&volume["spec"], &claim["spec"]);
        assert_eq!(volume_spec["csi"]["driver"], "per-node.liken.sh");
        assert_eq!(volume_spec["csi"]["volumeHandle"], volume["metadata"]["name"]);
        assert_eq!(volume_spec["persistentVolumeReclaimPolicy"], "Retain");
        assert_eq!(volume_spec["claimRef"]["name"], claim["metadata"]["name"]);
        assert_eq!(volume_spec["claimRef"]["namespace"], claim["metadata"]["namespace"]);
        assert_eq!(volume_spec["storageClassName"], claim_spec["storageClassName"]);
        assert_eq!(volume_spec["accessModes"], claim_spec["accessModes"]);
        assert_eq!(volume_spec["capacity"], claim_spec["resources"]["requests"]);
        assert_ne!(volume_spec["accessModes"], json!(["ReadWriteOnce"]));
    }
}
