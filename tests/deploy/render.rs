//! What the chart and an overlay render to, as objects.

use std::path::Path;

use serde_json::Value;

use super::tool::{chart, repository, run};

/// An installation: the overlay, the values file of the same name, and the namespace.
pub struct Installation {
    pub name: &'static str,
    pub namespace: &'static str,
}

/// Every distribution, and a second installation beside the first.
pub const INSTALLATIONS: [Installation; 8] = [
    Installation { name: "vanilla", namespace: "per-node" },
    Installation { name: "k0s", namespace: "per-node" },
    Installation { name: "microk8s", namespace: "per-node" },
    Installation { name: "k3s", namespace: "per-node" },
    Installation { name: "rke2", namespace: "per-node" },
    Installation { name: "talos", namespace: "per-node" },
    Installation { name: "openshift", namespace: "per-node" },
    Installation { name: "second-instance", namespace: "per-node-fast" },
];

impl Installation {
    /// The values file that goes with it.
    pub fn values(&self) -> String {
        format!("--values={}", chart().join("values").join(self.name).with_extension("yaml").display())
    }

    /// What `helm template` makes of the chart.
    pub fn by_chart(&self) -> Vec<Value> {
        // The base has a name for an overlay to replace, the chart the image that it was released with.
        objects(
            &template(self.namespace, &[&self.values(), "--set=image.tag=latest"])
                .expect("the chart renders"),
        )
    }

    /// What `kustomize build` makes of the overlay.
    pub fn by_overlay(&self) -> Vec<Value> {
        let overlay = repository().join("deploy/overlays").join(self.name);
        objects(&run("kustomize", ["build".as_ref(), overlay.as_os_str()]).expect("the overlay renders"))
    }
}

/// `helm template`, with a release called per-node and more arguments.
pub fn template(namespace: &str, more: &[&str]) -> Result<String, String> {
    template_of(&chart(), namespace, more)
}

/// The same of a chart elsewhere, or of its package.
pub fn template_of(chart: &Path, namespace: &str, more: &[&str]) -> Result<String, String> {
    let chart = chart.to_str().expect("a path of text");
    let first = ["template", "per-node", chart, "--namespace", namespace];
    run("helm", first.iter().chain(more))
}

/// The objects of a stream of YAML.
pub fn objects(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// Whether helm makes an object for a test alone.
pub fn is_hook(object: &Value) -> bool {
    !object["metadata"]["annotations"]["helm.sh/hook"].is_null()
}

/// The plugin's arguments in what was rendered.
pub fn arguments(objects: &[Value]) -> Vec<String> {
    let daemon_set = objects.iter().find(|object| object["kind"] == "DaemonSet").expect("a DaemonSet");
    let arguments = daemon_set["spec"]["template"]["spec"]["containers"][0]["args"].as_array().expect("args");
    arguments.iter().map(|one| one.as_str().expect("a string").to_owned()).collect()
}
