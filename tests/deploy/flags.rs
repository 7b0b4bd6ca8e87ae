//! Every flag of `per-node serve` has a value under `serve`, which reaches the binary as it is, and what the binary refuses the
//! schema refuses before anything is installed.

use std::collections::BTreeSet;

use clap::{CommandFactory as _, Parser as _};
use per_node::adapters::cli::{Command, CommandLine, ServeConfig};
use serde_json::{Value, json};

use super::render::{arguments, objects, template};
use super::tool::chart;

/// What the downward API gives every plugin.
const OF_THE_POD: [&str; 2] = ["--node-id=node", "--pod-uid=uid"];

/// A value of each flag that is not the default, as the chart takes it.
fn samples() -> Vec<(&'static str, Value)> {
    vec![
        ("driver-name", json!("fast.example.org")),
        ("kubelet-dir", json!("/data/kubelet")),
        ("store", json!("/data/copies")),
        ("store-mount-required", json!(true)),
        ("copy-mode", json!("0750")),
        ("sweep-every", json!("30s")),
        ("trash-for", json!("3d")),
        ("sweep-limit", json!(4_000_000_000_u32)),
        ("event-window", json!("1h 30m")),
        ("volume-health", json!(true)),
        ("http", json!("[::1]:9900")),
        ("http-copies", json!(false)),
        ("log-format", json!("text")),
        ("seccomp", json!("off")),
        ("endpoint", json!("unix:///data/csi.sock")),
        ("kubelet-endpoint", json!("unix:/host/csi.sock")),
        ("registration-dir", json!("")),
        ("node-id", json!("rack-1")),
        ("pod-uid", json!("key")),
        ("kubeconfig", json!("/etc/kubeconfig")),
        ("standalone", json!(true)),
    ]
}

/// The long names of the flags that the binary has.
fn flags() -> BTreeSet<String> {
    let command = CommandLine::command();
    let serve = command.find_subcommand("serve").expect("serve");
    let names = serve.get_arguments().filter_map(|flag| flag.get_long().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

/// `store-mount-required` is `storeMountRequired` in the chart.
fn value_name(flag: &str) -> String {
    let mut words = flag.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

/// The configuration of a command line. A flag that comes twice counts as it comes last, as variables of the pod do not.
fn configuration(arguments: &[String]) -> ServeConfig {
    let given =
        |flag: &str| arguments.iter().any(|one| one.starts_with(flag.split('=').next().expect("a name")));
    let of_the_pod = OF_THE_POD.iter().filter(|flag| !given(flag)).map(|flag| (*flag).to_owned());
    let typed = ["per-node".to_owned()].into_iter().chain(arguments.to_vec()).chain(of_the_pod);
    match CommandLine::try_parse_from(typed).expect("flags the binary knows").command {
        Command::Serve(flags) => flags.config().expect("values the binary takes"),
        Command::Confirm(_) | Command::Ls(_) | Command::Trash(_) => panic!("not serve"),
        #[cfg(feature = "demo")]
        Command::Demo(_) => panic!("not serve"),
    }
}

/// What the chart makes of some values under `serve`.
fn by_chart(serve: &Value) -> Result<Vec<String>, String> {
    let rendered = template("per-node", &[&format!("--set-json=serve={serve}")])?;
    Ok(arguments(&objects(&rendered)))
}

#[test]
fn every_flag_is_a_value_and_every_value_is_a_flag() {
    let values: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(chart().join("values.yaml")).expect("values"))
            .expect("YAML");
    let there: BTreeSet<String> = values["serve"].as_object().expect("serve").keys().cloned().collect();
    assert_eq!(there, flags().iter().map(|flag| value_name(flag)).collect());
    assert_eq!(flags(), samples().into_iter().map(|(flag, _)| flag.to_owned()).collect(), "samples");
}

/// Set alone, each value changes the configuration to what its flag would make of it.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn each_value_reaches_the_binary_as_its_flag() {
    let plain = by_chart(&json!({})).expect("the defaults");
    for (flag, value) in samples() {
        let by_value = by_chart(&json!({ value_name(flag): value })).expect("the chart takes it");
        let mut by_flag = plain.clone();
        by_flag.retain(|one| one.split('=').next() != Some(&format!("--{flag}")));
        match &value {
            Value::Bool(true) => by_flag.push(format!("--{flag}")),
            Value::Bool(false) => {}
            Value::String(text) => by_flag.push(format!("--{flag}={text}")),
            other => by_flag.push(format!("--{flag}={other}")),
        }
        let (chart, typed) = (configuration(&by_value), configuration(&by_flag));
        assert_eq!(format!("{chart:?}"), format!("{typed:?}"), "{flag}");
        assert_ne!(
            format!("{chart:?}"),
            format!("{:?}", configuration(&plain)),
            "{flag}: no other than the default"
        );
    }
}

/// The paths of the flags are also those of the mounts, and the port is the container's.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn c44_paths_and_port_are_the_same_inside_and_outside() {
    let serve = json!({
        "kubeletDir": "/data/kubelet", "store": "/data/copies", "http": "[::]:9900", "storeMountRequired": true
    });
    let rendered =
        objects(&template("per-node", &[&format!("--set-json=serve={serve}")]).expect("it renders"));
    let daemon_set = rendered.iter().find(|object| object["kind"] == "DaemonSet").expect("a DaemonSet");
    let pod = &daemon_set["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["ports"][0]["containerPort"], 9900);
    for (at, path) in ["/data/kubelet", "/data/copies"].into_iter().enumerate() {
        assert_eq!(container["volumeMounts"][at]["mountPath"], path);
        assert_eq!(pod["volumes"][at]["hostPath"], json!({"path": path, "type": "Directory"}));
    }
}

/// What `--help` refuses, the schema refuses, and names the value.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn c44_what_the_binary_refuses_the_schema_refuses() {
    for (name, value) in [
        ("driverName", json!("UPPER")),
        ("driverName", json!("")),
        ("driverName", json!(".a")),
        ("driverName", json!("a".repeat(64))),
        ("kubeletDir", json!("")),
        ("kubeletDir", json!("var/lib/kubelet")),
        ("store", json!("/a/../b")),
        // The binary takes it and means another path than the mount would.
        ("store", json!("/a/")),
        ("store", json!("/")),
        ("storeMountRequired", json!("yes")),
        // Unquoted, YAML makes 488 of 0750.
        ("copyMode", json!(488)),
        ("copyMode", json!("8")),
        ("copyMode", json!("0o777")),
        ("copyMode", json!("17777")),
        ("sweepEvery", json!("soon")),
        ("sweepEvery", json!("0s")),
        ("sweepEvery", json!("99999999999999d")),
        ("sweepEvery", json!(600)),
        ("trashFor", json!("forever")),
        ("sweepLimit", json!(-1)),
        ("sweepLimit", json!("many")),
        ("sweepLimit", json!(4_294_967_296_u64)),
        ("eventWindow", json!("-1m")),
        ("http", json!("9808")),
        ("http", json!(":9808")),
        ("logFormat", json!("xml")),
        ("seccomp", json!(false)),
        ("seccomp", json!("log")),
        ("endpoint", json!("tcp://127.0.0.1:1")),
        ("endpoint", json!("unix://relative/csi.sock")),
        ("registrationDir", json!("relative")),
        ("kubeconfig", json!("relative")),
        ("nodeId", json!("n".repeat(257))),
        ("sweepEvry", json!("10m")),
    ] {
        let refused = by_chart(&json!({ name: value })).expect_err(&format!("serve.{name}={value} is taken"));
        assert!(refused.contains("/serve") && refused.contains("schema"), "serve.{name}={value}: {refused}");
        assert!(refused.contains(name), "serve.{name}={value}: {refused}");
    }
    let both = by_chart(&json!({"kubeconfig": "/etc/kubeconfig", "standalone": true}));
    assert!(both.expect_err("together").contains("/serve"));
}

/// Values outside of `serve` that would make an object the API server refuses, or a plugin that is not found.
#[test]
#[ignore = "needs the tools of tests/deploy/build-tools"]
fn the_schema_refuses_other_bad_values() {
    for (name, value) in [
        ("image", json!({"repository": ""})),
        ("image", json!({"digest": "latest"})),
        ("image", json!({"pullPolicy": "Sometimes"})),
        ("maxUnavailable", json!(0)),
        ("maxUnavailable", json!("0%")),
        ("nodeSelector", json!({"plugin": true})),
        ("podLabels", json!({"app.kubernetes.io/name": "other"})),
        ("extraVolumes", json!([{"name": "store", "emptyDir": {}}])),
        ("tolerations", json!({"operator": "Exists"})),
        ("storee", json!("/data")),
        ("csiDriver", json!({"attachRequired": true})),
        ("podMonitor", json!({"create": "yes"})),
        ("podMonitor", json!({"interval": "soon"})),
        ("podMonitor", json!({"interval": "30"})),
        ("podMonitor", json!({"interval": "1s1m"})),
        ("podMonitor", json!({"interval": 30})),
        ("podMonitor", json!({"labels": {"release": 1}})),
        ("prometheusRule", json!({"labels": {"release": true}})),
        ("prometheusRule", json!({"interval": "30s"})),
        ("prometheusRule", json!({"runbooks": "runbooks.example.org"})),
        ("prometheusRule", json!({"runbooks": "https://example.org/ # here"})),
        ("dashboard", json!({"labels": {"grafana_dashboard": 1}})),
    ] {
        let refused = template("per-node", &[&format!("--set-json={name}={value}")]);
        let refused = refused.expect_err(&format!("{name}={value} is taken"));
        assert!(refused.contains(name) && refused.contains("schema"), "{name}={value}: {refused}");
    }
}
