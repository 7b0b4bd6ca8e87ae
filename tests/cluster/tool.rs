//! The operator's tool as people have it: on the PATH, where kubectl finds it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::cluster::cluster;
use super::wait::wait_for;

/// `kubectl per-node` with these arguments.
pub fn tool(arguments: &[&str]) -> Output {
    let directory = Path::new(env!("CARGO_BIN_EXE_kubectl-per_node")).parent().expect("a directory");
    let mut path = directory.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    Command::new("kubectl")
        .arg("per-node")
        .args(arguments)
        .env("KUBECONFIG", cluster().kubeconfig())
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .expect("kubectl is on the PATH that run sets")
}

/// The same with `-o json`, decoded. Panics with what it said where it has no answer.
pub fn tool_json(arguments: &[&str]) -> Value {
    let output = tool(&[arguments, &["-o", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "kubectl per-node {}: {error}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

/// Waits until `why` names a cause for a pod. Gives back that finding.
pub fn wait_cause(namespace: &str, pod: &str, cause: &str) -> Value {
    let mut last = Value::Null;
    let mut look = || {
        last = tool_json(&["why", pod, "-n", namespace]);
        let findings = last["findings"].as_array()?;
        findings.iter().find(|finding| finding["cause"] == cause).cloned()
    };
    let finding = wait_for(&format!("why {namespace}/{pod} to be {cause}"), &mut look);
    println!("{cause}: {} do: {}", finding["sentence"], finding["remedy"]);
    finding
}
